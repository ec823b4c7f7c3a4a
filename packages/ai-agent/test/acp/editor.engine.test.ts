/**
 * `--stdio` with real containers, as an editor starts it: the rows of the ACP page that need a sandbox, and that nothing
 * runs on when the editor goes. The client is the SDK's own, which refuses what is not in the protocol.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import {
  type ClientConnection,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type SessionUpdate,
  client,
  methods,
  ndJsonStream,
} from '@agentclientprotocol/sdk'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { AgentFolder, type AgentProcess } from '../support/agent-process.ts'
import { type FakeProvider, startFakeProvider, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'

let provider: FakeProvider
let folder: AgentFolder

beforeEach(async () => {
  provider = await startFakeProvider()
  folder = new AgentFolder()
})

afterEach(async () => {
  await folder.killAll()
  const backend = createDockerBackend({ deployment: deploymentKeys(join(folder.path, 'keys')).id })
  for (const one of await backend.list({})) {
    await backend.remove(one.id)
    await backend.inventory.volumes.remove(one.name.split('-').slice(0, 3).join('-'))
  }
  await backend.inventory.close()
  await folder[Symbol.asyncDispose]()
  await provider.close()
})

interface Editor {
  agent: AgentProcess
  connection: ClientConnection
  updates: SessionUpdate[]
  permissions: RequestPermissionRequest[]
  /** Requests of the agent other than for permission. */
  unexpected: string[]
  newSession(): Promise<string>
  prompt(sessionId: string): Promise<{ stopReason: string }>
}

async function editor(meta: Record<string, unknown> = {}): Promise<Editor> {
  const env = { OPENAI_BASE_URL: provider.baseUrl, OPENAI_MODEL: 'fake', DOCKER_HOST: '' }
  const agent = folder.start(env, ['--stdio'])
  const { stdin, stdout } = agent.child
  if (stdin === null || stdout === null) throw new Error('the agent has no pipes')
  // The process's own reader wants text; the SDK wants bytes.
  const bytes = new Readable()
    .wrap(stdout.setEncoding('latin1'))
    .map((text: string) => Buffer.from(text, 'latin1'))
  const updates: SessionUpdate[] = []
  const permissions: RequestPermissionRequest[] = []
  const unexpected: string[] = []
  const connection = client({ name: 'editor' })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      permissions.push(params)
      return { outcome: { outcome: 'selected', optionId: 'allow_once' } }
    })
    .onRequest('*', ({ method }) => {
      unexpected.push(method)
      throw new Error('an editor that is asked for this has lost')
    })
    .connect(
      ndJsonStream(
        Writable.toWeb(stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(bytes) as ReadableStream<Uint8Array>,
      ),
    )
  const { agent: remote } = connection
  await remote.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true, _meta: meta },
  })
  return {
    agent,
    connection,
    updates,
    permissions,
    unexpected,
    newSession: async () => {
      const { sessionId } = await remote.request(methods.agent.session.new, {
        cwd: '/workspace',
        mcpServers: [],
      })
      return sessionId
    },
    prompt: (sessionId) =>
      remote.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: 'go' }] }),
  }
}

/** Updates of one call, merged as a client does. */
function callOf(updates: readonly SessionUpdate[], id: string): Record<string, unknown>[] {
  return updates.filter((update) => 'toolCallId' in update && update.toolCallId === id)
}

const run = (id: string, command: string) => ({ id, name: 'run_shell_command', args: { command } })

test('diffs with absolute paths, locations, permission, live output as bounded text, and no fs or terminal', async () => {
  provider.add(
    toolCalls([
      { id: 'w', name: 'write_file', args: { path: 'notes/a.txt', content: 'one\n' } },
      {
        id: 'e',
        name: 'edit_file',
        args: { path: 'notes/a.txt', edits: [{ old_text: 'one', new_text: 'two' }] },
      },
      run(
        's',
        'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.2; done; touch b.txt; cat notes/a.txt; exit 3',
      ),
    ]),
    textAnswer('Done.'),
  )
  const one = await editor()
  const sessionId = await one.newSession()
  expect(await one.prompt(sessionId)).toMatchObject({ stopReason: 'end_turn' })

  const written = callOf(one.updates, 'w')
  expect(written[0]).toMatchObject({ kind: 'edit', locations: [{ path: '/workspace/notes/a.txt' }] })
  expect(written.at(-1)).toMatchObject({
    status: 'completed',
    content: [{ type: 'diff', path: '/workspace/notes/a.txt', newText: 'one\n' }],
  })
  expect(callOf(one.updates, 'e').at(-1)).toMatchObject({
    content: [{ type: 'diff', path: '/workspace/notes/a.txt' }],
  })

  expect(one.permissions.map(({ toolCall }) => toolCall.toolCallId)).toEqual(['s'])
  const shell = callOf(one.updates, 's')
  const repeated = shell.filter(({ status, content }) => status === undefined && content !== undefined)
  expect(repeated.length).toBeGreaterThan(0)
  expect(repeated.length).toBeLessThan(8)
  expect(JSON.stringify(repeated[0])).toContain('line 1')
  expect(shell.at(-1)).toMatchObject({ status: 'completed' })
  expect(JSON.stringify(shell.at(-1))).toMatch(/line 6.*two/)

  expect(one.unexpected).toEqual([])
  one.agent.child.stdin?.end()
  expect(await one.agent.ended).toBe(0)
  for (const line of one.agent.stdout.trim().split('\n'))
    expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
})

test('a client that knows the terminal convention gets a terminal, its data and its exit; end of stdin kills what runs', async () => {
  provider.add(
    toolCalls([run('t', 'echo in a terminal; exit 3')]),
    toolCalls([run('u', 'echo begun; setsid sleep 4711 & exec sleep 4711')]),
  )
  const one = await editor({ terminal_output: true })
  const sessionId = await one.newSession()
  await one.connection.agent.request(methods.agent.session.setMode, { sessionId, modeId: 'yolo' })
  const prompting = one.prompt(sessionId).catch(() => 'gone')
  // The command's own text holds the word too: only its output says that it runs.
  await expect
    .poll(() => JSON.stringify(callOf(one.updates, 'u')), { timeout: 60_000 })
    .toContain('"terminal_output":{"terminal_id":"u","data":"begun\\n"}')
  await expect.poll(sleeping).toBe(2)
  const terminal = callOf(one.updates, 't')
  expect(terminal).toMatchObject(
    expect.arrayContaining([
      expect.objectContaining({
        content: [{ type: 'terminal', terminalId: 't' }],
        _meta: expect.objectContaining({ terminal_info: { terminal_id: 't' } }),
      }),
      expect.objectContaining({
        status: 'completed',
        _meta: expect.objectContaining({ terminal_exit: { terminal_id: 't', exit_code: 3, signal: null } }),
      }),
    ]),
  )
  expect(JSON.stringify(terminal)).toContain(
    '"terminal_output":{"terminal_id":"t","data":"in a terminal\\n"}',
  )

  one.agent.child.stdin?.end()
  expect(await one.agent.ended).toBe(0)
  expect(await prompting).toBe('gone')
  expect(sleeping()).toBe(0)
  const backend = createDockerBackend({ deployment: deploymentKeys(join(folder.path, 'keys')).id })
  expect((await backend.list({})).filter(({ state }) => state === 'running')).toEqual([])
  await backend.inventory.close()
})

/** Processes of that command on this machine; containers are seen from outside. */
function sleeping(): number {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep\x004711')
    } catch (error) {
      // It ended while we looked.
      if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH'))
        return false
      throw error
    }
  }).length
}
