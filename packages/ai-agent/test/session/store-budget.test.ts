import { join } from 'node:path'
import { openSessionStore } from '@sandlot/storage/store/open'
import { isOutcome } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../src/tools/tool.ts'
import { AgentBench, ask, happened, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const KiB = 1024
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const draw = defineTool({
  name: 'draw',
  description: 'Draws and prints.',
  kind: 'other',
  input: z.strictObject({}),
  readOnly: true,
  title: () => 'Draw',
  // oxlint-disable-next-line require-yield
  async *execute(_args, ctx) {
    await ctx.output.save(0, new Uint8Array(20 * KiB))
    const image = { type: 'image' as const, mimeType: 'image/png' as const, data: PIXEL }
    return { status: 'completed', forModel: 'drawn', content: [{ type: 'content', content: image }] }
  },
})

test('X-A3 beyond the budget: no outputs and no images, and each says so; a text is answered', async () => {
  const call = { id: 'c', name: 'draw', args: {} }
  const script = [toolCalls([call]), textAnswer('Drawn.'), textAnswer('Yes.')]
  await using bench = await AgentBench.start(script)
  const room = { userBytes: 0, freeBytes: () => Number.MAX_SAFE_INTEGER }
  const store = await openSessionStore(join(bench.folder, 'limited.db'), { room })
  const core = await bench.core({ tools: [draw], wrap: (parts) => ({ ...parts, store }) })
  const session = await newSession(core)
  await ask(session, 'go')
  const outcome = session.log.find(isOutcome)
  const words =
    'The image cannot be stored: your chats have used up their storage (SANDLOT_STORE_MB). Delete chats to make room.'
  expect(outcome).toMatchObject({
    status: 'completed',
    content: [{ type: 'content', content: { type: 'text', text: words } }],
    rawOutput: { forModel: `drawn\n[${words}]` },
    _meta: { sandlot: { outputInfo: { bytes: 20 * KiB, unstored: { from: 0, why: 'budget' } } } },
  })
  expect(await store.outputs.read(session.id, 'c', 0, 10)).toHaveLength(0)

  const images = [{ mimeType: 'image/png', data: PIXEL }] as const
  await expect(session.prompt('look', { images })).rejects.toMatchObject({ code: 'store_full' })
  await ask(session, 'and a text?')
  expect(happened(session.log, 'prompt_ended')).toMatchObject([
    { reason: 'completed' },
    { reason: 'completed' },
  ])
  await core.leave()
  await store.close()
})
