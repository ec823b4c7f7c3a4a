/** Data for the model's provider alone leaves by no way that people have. */
import { makeMeta, replayId } from '@sandlot/shared/chat/event-meta'
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { unzipSync } from 'fflate'
import { expect, test } from 'vitest'
import { setUp, startHarness } from '../../support/harness.ts'

const CANARY = 'canary-7c1e'

test('what a provider wants back with an answer is in no export, snapshot, output or search', async () => {
  const harness = await startHarness()
  const ann = await setUp(harness)
  const { id: userId } = (await (await ann.get('/api/me')).json()) as { id: string }
  const { store } = harness.agent
  await store.sessions.create({ id: 's', userId, cwd: '/workspace', mode: 'manual', at: 1_000 })
  const replay = { wire: 'responses', origin: 'o', items: [{ raw: { encrypted_content: CANARY } }] }
  const meta = makeMeta({ promptId: 'p1' }, 2_000)
  const content = { type: 'text', text: 'Said aloud.' } as const
  await store.log.append('s', [
    makeSandlotEvent({ type: 'prompt_started' }, { promptId: 'p1' }, 2_000),
    {
      sessionUpdate: 'agent_message_chunk',
      messageId: 'm1',
      content,
      _meta: { ...meta, sandlot: { ...meta.sandlot, forProvider: { replay } } },
    },
    makeSandlotEvent(
      { type: 'prompt_ended', reason: 'completed', stopReason: 'end_turn' },
      { promptId: 'p1' },
      2_000,
    ),
  ])
  const stored = replayId('0'.repeat(64))
  await store.outputs.append('s', stored, 0, Buffer.from(CANARY))
  expect(JSON.stringify(await store.log.read('s'))).toContain(CANARY)

  const output = await ann.get(`/api/sessions/s/outputs/${encodeURIComponent(stored)}`)
  expect(output.status).toBe(404)
  const snapshot = await ann.post('/api/sessions/s/snapshots', { outputs: true })
  const { id: link } = (await snapshot.json()) as { id: string }
  const exports = ['json', 'markdown', 'html'].map((format) => `/api/sessions/s/export?format=${format}`)
  const texts = await Promise.all(
    [...exports, `/api/snapshots/${link}`].map(async (url) => (await ann.get(url)).text()),
  )
  const archive = unzipSync(new Uint8Array(await (await ann.get('/api/export')).arrayBuffer()))
  texts.push(
    Object.entries(archive)
      .map(([name, bytes]) => name + Buffer.from(bytes).toString())
      .join('\n'),
  )
  for (const text of texts) {
    expect(text).toContain('Said aloud.')
    expect(text).not.toContain(CANARY)
    expect(text).not.toContain('replay')
  }
  expect(await (await ann.get(`/api/search?q=${CANARY}`)).json()).toMatchObject({ hits: [] })
  expect(await (await ann.get('/api/search?q=aloud')).json()).toMatchObject({ hits: [{ id: 'm1' }] })
  await harness.close()
})
