/** The end of `--stdio`: nothing runs on, nothing remains, memory stays bounded. Real processes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { lockFile } from '@sandlot/storage/database/lock'
import { openSessionStore } from '@sandlot/storage/store/open'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sample } from '../../../../test/campaign.ts'
import { happened } from '../support/agent-fixture.ts'
import { AgentFolder, type AgentProcess, agentCommand } from '../support/agent-process.ts'
import {
  type FakeProvider,
  deltaChunk,
  sse,
  startFakeProvider,
  textAnswer,
} from '../support/fake-provider.ts'
import { type RawClient, initialized, newSession, overStdio, text } from './raw-client.ts'

/** With the exit codes that a shell would see. */
const SIGNALS = [
  ['SIGTERM', 143],
  ['SIGINT', 130],
  ['SIGHUP', 129],
] as const

const hang = { steps: [sse(deltaChunk({ content: 'Half' }))], after: 'hang' } as const

function modelEnv(provider: FakeProvider): Record<string, string> {
  return { OPENAI_BASE_URL: provider.baseUrl, OPENAI_API_KEY: 'sk-x', OPENAI_MODEL: 'fake' }
}

interface Begun {
  folder: AgentFolder
  provider: FakeProvider
  agent: AgentProcess
  client: RawClient
  sessionId: string
}

/** An agent on stdio with a prompt in the middle of its answer. */
async function begun(): Promise<Begun> {
  const provider = await startFakeProvider([hang])
  const folder = new AgentFolder()
  onTestFinished(async () => {
    await folder[Symbol.asyncDispose]()
    await provider.close()
  })
  const agent = folder.start(modelEnv(provider), ['--stdio'])
  const client = overStdio(agent)
  await initialized(client)
  const sessionId = await newSession(client)
  client.begin('session/prompt', { sessionId, prompt: text('go') })
  await client.until(({ params }) => params?.update?.content?.text === 'Half')
  return { folder, provider, agent, client, sessionId }
}

/** The prompt is over for its model and for the store, and the folder is free for the next agent. */
async function expectOver({ folder, provider, sessionId }: Begun): Promise<void> {
  await expect.poll(() => provider.requests[0]?.aborted, { timeout: 10_000 }).toBe(true)
  expect(existsSync(folder.socket)).toBe(false)
  const lock = lockFile(join(folder.path, 'run', 'agent.lock'))
  expect(lock).toBeDefined()
  lock?.release()
  const store = await openSessionStore(join(folder.path, 'sessions.db'))
  expect(await store.sessions.unfinished()).toEqual([])
  expect(happened(await store.log.read(sessionId), 'prompt_ended')).toHaveLength(1)
  await store.close()
}

describe('with a prompt running', { timeout: 90_000 }, () => {
  test('end of stdin: the prompt is ended, exit code 0', async () => {
    const one = await begun()
    one.agent.child.stdin?.end()
    expect(await one.agent.ended).toBe(0)
    await expectOver(one)
  })

  test.each(sample('signals of an editor', SIGNALS, 1))(
    '%s: the same, exit code %i',
    async (signal, code) => {
      const one = await begun()
      one.agent.child.kill(signal)
      expect(await one.agent.ended).toBe(code)
      expect(one.provider.requests[0]?.aborted).toBe(true)
    },
  )

  test('nobody reads stdout and stderr any more: the next write ends it in order', async () => {
    const one = await begun()
    one.agent.child.stdout?.destroy()
    one.agent.child.stderr?.destroy()
    one.client.begin('session/list', {})
    expect(await one.agent.ended).toBe(0)
    await expectOver(one)
  })

  test('an editor that is killed takes its agent along', async () => {
    const provider = await startFakeProvider([hang])
    const folder = new AgentFolder()
    onTestFinished(async () => {
      await folder[Symbol.asyncDispose]()
      await provider.close()
    })
    const { command, args, env } = agentCommand(folder.path, modelEnv(provider), ['--stdio'])
    const lines = [
      { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } },
      { jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: '/workspace', mcpServers: [] } },
    ]
    // An editor of five lines: it starts the agent, begins a prompt, says its pid, and reads on.
    const editor = spawn(
      process.execPath,
      [
        '-e',
        `const agent = require('node:child_process').spawn(${JSON.stringify(command)}, ${JSON.stringify(args)})
         const lines = ${JSON.stringify(lines.map((line) => JSON.stringify(line)))}
         agent.stdin.write(lines.join('\\n') + '\\n')
         agent.stderr.resume()
         agent.stdout.on('data', (data) => {
           const id = /"sessionId":"([^"]+)"/.exec(String(data))?.[1]
           if (!id || globalThis.sent) return
           globalThis.sent = true
           const prompt = [{ type: 'text', text: 'go' }]
           agent.stdin.write(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'session/prompt', params: { sessionId: id, prompt } }) + '\\n')
         })
         console.log(agent.pid)`,
      ],
      { env, stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const [pid] = (await once(editor.stdout, 'data')) as [Buffer]
    await expect.poll(() => provider.requests.length, { timeout: 20_000 }).toBe(1)
    editor.kill('SIGKILL')
    await expect.poll(() => isRunning(Number(String(pid))), { timeout: 20_000 }).toBe(false)
    expect(provider.requests[0]?.aborted).toBe(true)
    expect(existsSync(folder.socket)).toBe(false)
  })
})

describe('a client that stops reading', { timeout: 90_000 }, () => {
  test('memory stays bounded however much there is to say, and it gets all of it when it reads again', async () => {
    const megabyte = Array.from({ length: 120_000 }, (_, index) => `word${index} `).join('')
    const provider = await startFakeProvider([
      textAnswer(megabyte, { pieceLength: 5_000 }),
      textAnswer('End.'),
    ])
    const folder = new AgentFolder()
    onTestFinished(async () => {
      await folder[Symbol.asyncDispose]()
      await provider.close()
    })
    const agent = folder.start(modelEnv(provider), ['--stdio'])
    const client = overStdio(agent)
    await initialized(client)
    const sessionId = await newSession(client)
    agent.child.stdout?.pause()
    const before = memoryOf(agent)
    const running = client.begin('session/prompt', { sessionId, prompt: text('tell') })
    // It asks on and on and takes no answer: at some point nobody listens to it any more either.
    const flood = JSON.stringify({ jsonrpc: '2.0', id: 'f', method: 'session/list', params: {} })
    for (let n = 0; n < 20_000; n++) client.sendText(flood)
    await expect.poll(() => provider.requests.length, { timeout: 20_000 }).toBe(1)
    await expect
      .poll(() => (agent.child.stdin?.writableLength ?? 0) > 0 && isQuiet(agent), { timeout: 20_000 })
      .toBe(true)
    expect(memoryOf(agent) - before).toBeLessThan(120 * 1024 * 1024)

    agent.child.stdout?.resume()
    expect(await client.response(running)).toMatchObject({ result: { stopReason: 'end_turn' } })
    // Not `toBe`: what it would print is a megabyte.
    expect(client.said(sessionId) === megabyte).toBe(true)
    agent.child.stdin?.end()
    expect(await agent.ended).toBe(0)
  })

  test('a message over the limit is refused with one error, and the next one is answered', async () => {
    const provider = await startFakeProvider()
    const folder = new AgentFolder()
    onTestFinished(async () => {
      await folder[Symbol.asyncDispose]()
      await provider.close()
    })
    const agent = folder.start(modelEnv(provider), ['--stdio'])
    const client = overStdio(agent)
    client.sendText(`{"jsonrpc":"2.0","id":7,"method":"x","params":"${'x'.repeat(33 * 1024 * 1024)}"}`)
    expect(await client.response(null)).toMatchObject({ error: { code: -32_600 } })
    expect(await initialized(client)).toMatchObject({ result: { protocolVersion: 1 } })
    expect(agent.stdout.length).toBeLessThan(10_000)
  })
})

function isRunning(pid: number): boolean {
  return readdirSync('/proc').includes(String(pid)) && !/^State:\s+Z/m.test(status(pid))
}

function status(pid: number | undefined): string {
  return readFileSync(join('/proc', String(pid), 'status'), 'utf8')
}

/** Bytes of a process's memory that are in use. */
function memoryOf({ child }: AgentProcess): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status(child.pid))?.[1] ?? 0) * 1024
}

/** It waits for something rather than working. */
function isQuiet({ child }: AgentProcess): boolean {
  return /^State:\s+S/m.test(status(child.pid))
}
