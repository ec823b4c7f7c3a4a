/** Sandlot without a Docker engine: features that work, and messages of those that do not. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { textAnswer, toolCalls } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { startOAuthServer } from '../../packages/ai-agent/test/mcp/oauth/server.ts'
import { useWorld, type World } from './fixture.ts'

const calendar = await startOAuthServer()
const folder = await mkdtemp(join(tmpdir(), 'sandlot-e2e-config-'))
const config = join(folder, 'sandlot.json')
await writeFile(
  config,
  JSON.stringify({ mcpServers: { cal: { url: calendar.url, auth: { type: 'oauth' } } } }),
)
afterAll(async () => {
  await calendar[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

// A frozen engine: its kernel accepts connections, and no process answers.
const held = new Set<Socket>()
const frozen = createServer((socket) => held.add(socket.on('error', () => {}))).listen(
  join(folder, 'frozen.sock'),
)
await once(frozen, 'listening')
afterAll(() => {
  for (const socket of held) socket.destroy()
  frozen.close()
})

/** Tests without an engine: everything that needs one says so. */
function saysSo(world: () => World): void {
  test('the chat says so, the model gets a result, nothing hangs', async () => {
    const { ada, script, sandlot } = world()
    const { requests } = script(
      toolCalls([{ id: 'c', name: 'run_shell_command', args: { command: 'true' } }]),
      textAnswer('The sandbox is not available right now.'),
    )
    await ada.say('run true')
    await ada.cardIs(0, 'failed')
    await ada.answers.filter({ hasText: 'The sandbox is not available' }).waitFor()
    expect(String(requests()[1]?.body.messages.at(-1)?.content)).toMatch(/docker|engine/i)
    expect(await ada.card(0).innerText()).toMatch(/sandbox/i)
    const ready = (await (await fetch(`${sandlot.url}/readyz`)).json()) as {
      reasons: { part: string; ok: boolean }[]
    }
    expect(ready.reasons).toContainEqual(expect.objectContaining({ part: 'sandbox', ok: false }))
  })
}

describe('a Docker engine that does not answer', () => {
  saysSo(useWorld({ SANDLOT_DEFAULT_MODE: 'yolo', DOCKER_HOST: `unix://${join(folder, 'frozen.sock')}` }))
})

describe('a Docker engine that is down', () => {
  const world = useWorld({
    SANDLOT_DEFAULT_MODE: 'yolo',
    SANDLOT_CONFIG: config,
    DOCKER_HOST: 'unix:///nonexistent/docker.sock',
  })
  saysSo(world)

  test('an MCP server that wants a sign-in: the card leads there, the person agrees, and its tool works', async () => {
    const { ada, script } = world()
    const { requests } = script(
      toolCalls([{ id: 'connect', name: 'connect_cal', args: {} }]),
      textAnswer('Please sign in.'),
    )
    await ada.say('what is in my calendar?')
    await ada.answers.filter({ hasText: 'Please sign in.' }).waitFor()
    expect(JSON.stringify(requests()[0]?.body.tools)).toContain('"name":"connect_cal"')
    const link = ada.card(0).locator(`a[href^="${calendar.origin}/authorize"]`)
    const [signIn] = await Promise.all([ada.context.waitForEvent('page'), link.click()])
    await signIn.getByText('cal is connected.').waitFor()
    await signIn.close()

    const { requests: next } = script(
      toolCalls([{ id: 'look', name: 'look', args: {} }]),
      textAnswer('Nothing today.'),
    )
    await ada.say('and now?')
    await ada.answers.filter({ hasText: 'Nothing today.' }).waitFor()
    expect(JSON.stringify(next()[0]?.body.tools)).toContain('"name":"look"')
    await ada.cardIs(1, 'completed')
  })

  test('an image is attached, read by the model, and still there after a reload', async () => {
    const { ada, script } = world()
    const { requests } = script(textAnswer('One pixel.'))
    const png =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const file = { name: 'pixel.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') }
    await ada.page.getByTestId('image-files').setInputFiles([file])
    await ada.page.locator('[data-testid=attachments] [data-state=there]').waitFor()
    await ada.say('what is this?')
    await ada.answers.filter({ hasText: 'One pixel.' }).waitFor()
    expect(JSON.stringify(requests()[0]?.body.messages)).toContain(`data:image/png;base64,${png}`)
    await ada.page.reload()
    const shown = ada.page.getByTestId('message-images').getByRole('img')
    await shown.waitFor()
    await expect.poll(() => shown.evaluate((one) => (one as HTMLImageElement).naturalWidth)).toBe(1)
  })
})
