/**
 * The page about ACP as a table: one test for each of its rows that is about an agent, named after it, over both real wires.
 * Rows about tools that need a sandbox are in editor.engine.test.ts, rows about the end of a process in stdio-end.test.ts.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFolder } from '../../support/agent-process.ts'
import { type FakeProvider, deltaChunk, sse, startFakeProvider } from '../../support/fake-provider.ts'
import { type RawClient, type RawMessage, overSocket, overStdio, text } from '../raw-client.ts'

/** An editor that could do everything, so that what is not asked of it is not asked by choice. */
export const EDITOR = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
}

/** US dollars for a million tokens of the model. */
export const PRICE = { input: 1_000, output: 4_000 }

/** It begins to answer and never ends. */
export const hang = { steps: [sse(deltaChunk({ content: 'Half' }))], after: 'hang' } as const

/** There from the first test on. */
export interface Conformance {
  readonly folder: AgentFolder
  readonly provider: FakeProvider
  /** Not initialized yet. */
  readonly client: RawClient
  /** Another client of the same agent, on its socket. */
  another(): Promise<RawClient>
  /** Prompt, and wait for the end. */
  prompt(this: void, sessionId: string, words?: string): Promise<RawMessage['result']>
  /** The code of the error that this is answered with. */
  code(this: void, method: string, params: object): Promise<number | undefined>
}

/**
 * The same tests on the agent's stdin and stdout, and on its socket, both at once: an agent without an engine waits for one.
 * Behind them, what holds for all that was sent.
 */
export function overBothWires(tests: (its: Conformance, wire: 'stdio' | 'socket') => void): void {
  describe.concurrent.each(['stdio', 'socket'] as const)('over %s', (wire) => {
    describe('ACP v1', { timeout: 60_000, concurrent: false }, () => testOver(wire, tests))
  })
}

function testOver(
  wire: 'stdio' | 'socket',
  tests: (its: Conformance, wire: 'stdio' | 'socket') => void,
): void {
  let folder: AgentFolder
  let provider: FakeProvider
  let client: RawClient

  beforeAll(async () => {
    folder = new AgentFolder()
    provider = await startFakeProvider()
    writeFileSync(join(folder.path, 'sandlot.json'), JSON.stringify({ prices: { fake: PRICE } }))
    const env = {
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-a-secret-of-the-test',
      OPENAI_MODEL: 'fake',
      SANDLOT_MAX_TURNS: '3',
    }
    const agent = folder.start(env, wire === 'stdio' ? ['--stdio'] : [])
    await agent.logged('the agent is ready')
    client = wire === 'stdio' ? overStdio(agent) : await overSocket(folder)
  }, 60_000)

  afterAll(async () => {
    await folder[Symbol.asyncDispose]()
    await provider.close()
  })

  const its: Conformance = {
    get folder() {
      return folder
    },
    get provider() {
      return provider
    },
    get client() {
      return client
    },
    another: () => overSocket(folder),
    prompt: (sessionId, words = 'hi') => client.request('session/prompt', { sessionId, prompt: text(words) }),
    code: async (method, params) => (await client.call(method, params)).error?.code,
  }
  tests(its, wire)

  test('fs/* and terminal/*: never called, whatever the client could do; every message is JSON-RPC 2.0', () => {
    for (const { method } of client.asked) expect(method).toBe('session/request_permission')
    for (const { jsonrpc } of client.received) expect(jsonrpc).toBe('2.0')
    const notified = client.received.filter(({ id }) => id === undefined)
    for (const { method } of notified) expect(['session/update', '$/cancel_request']).toContain(method)
    const kinds = client.received.flatMap(({ method, params }) =>
      method === 'session/update' ? [params.update.sessionUpdate] : [],
    )
    for (const kind of ['notice', 'compaction_update', 'compaction_summary_chunk'])
      expect(kinds).not.toContain(kind)
  })
}
