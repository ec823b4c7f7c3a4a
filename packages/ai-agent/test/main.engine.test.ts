import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { type AnyMessage, methods } from '@agentclientprotocol/sdk'
import { agentStatus } from '@sandlot/shared/acp/meta'
import { type SessionEvent, isLive, seqOf } from '@sandlot/shared/chat/events'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { builtinTools } from '../src/tools/builtin/index.ts'
import { happened, outcomes } from './support/agent-fixture.ts'
import { AgentFolder, type AgentProcess, type SocketClient, connectTo } from './support/agent-process.ts'
import { deltaChunk, sse, startFakeProvider, textAnswer, toolCalls } from './support/fake-provider.ts'

const modelEnv = (provider: { baseUrl: string }) => ({
  OPENAI_BASE_URL: provider.baseUrl,
  OPENAI_API_KEY: 'sk-a-secret-of-the-test',
  OPENAI_MODEL: 'fake',
})

const YOLO = { _meta: { sandlot: { user: { id: 'u_ada' }, mode: 'yolo' } } }
const echo = (id: string) => ({ id, name: 'echo', args: { value: id } })

async function newSession(one: SocketClient): Promise<string> {
  const { sessionId } = await one.request(methods.agent.session.new, {
    cwd: '/workspace',
    mcpServers: [],
    ...YOLO,
  })
  return String(sessionId)
}

function prompt(one: SocketClient, sessionId: string, words: string): Promise<Record<string, unknown>> {
  return one.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: words }] })
}

/** The whole settled log, once the session's prompt has ended. */
async function settledLog(one: SocketClient, sessionId: string): Promise<SessionEvent[]> {
  await one.request(methods.agent.session.load, { sessionId, cwd: '/workspace', mcpServers: [] })
  await expect.poll(() => happened(one.events, 'prompt_ended').length, { timeout: 10_000 }).toBe(1)
  return one.events.filter((event) => !isLive(event))
}

async function status(folder: AgentFolder): Promise<unknown> {
  const response = await new Promise<NodeJS.ReadableStream>((resolve, reject) => {
    httpRequest({ socketPath: folder.socket, path: '/status' }, resolve).on('error', reject).end()
  })
  return JSON.parse(await readText(response))
}

describe('the agent as a process', { timeout: 90_000 }, () => {
  test('killed in the middle of an answer: the next one finishes it, each call with one outcome', async () => {
    const provider = await startFakeProvider([
      toolCalls([echo('a'), echo('b')]),
      { steps: [sse(deltaChunk({ content: 'Half of' }))], after: 'hang' },
      textAnswer('All of it.'),
    ])
    await using folder = new AgentFolder()
    const first = await folder.listening(modelEnv(provider))
    using one = await connectTo(folder)
    const sessionId = await newSession(one)
    const lost = prompt(one, sessionId, 'go').catch(() => 'lost')
    await expect
      .poll(() => one.events.at(-1), { timeout: 10_000 })
      .toMatchObject({ content: { text: 'Half of' } })
    first.child.kill('SIGKILL')
    expect(await lost).toBe('lost')
    await first.ended

    await folder.listening(modelEnv(provider))
    using two = await connectTo(folder)
    const log = await settledLog(two, sessionId)
    expect(log.map(seqOf)).toEqual(log.map((_, index) => index + 1))
    expect(outcomes(log)).toEqual({ a: ['completed'], b: ['completed'] })
    const cutOff = one.events.findLast((event) => isLive(event))
    expect(happened(log, 'message_withdrawn').map(({ messageId }) => messageId)).toContain(
      cutOff?.sessionUpdate === 'agent_message_chunk' ? cutOff.messageId : '',
    )
    expect(happened(log, 'prompt_ended')).toMatchObject([{ reason: 'completed' }])
    expect(provider.requests[2]?.raw).toBe(provider.requests[1]?.raw)
    await provider.close()
  })

  test('SIGTERM ends no prompt, SIGINT ends it as interrupted and says so first', async () => {
    const hang = { steps: [], after: 'hang' } as const
    const provider = await startFakeProvider([hang, hang])
    await using folder = new AgentFolder()
    const first = await folder.listening(modelEnv(provider))
    using one = await connectTo(folder)
    const sessionId = await newSession(one)
    const lost = prompt(one, sessionId, 'go').catch(() => 'lost')
    await expect.poll(() => provider.requests.length, { timeout: 10_000 }).toBe(1)
    first.child.kill('SIGTERM')
    expect(await first.ended).toBe(0)
    expect(await lost).toBe('lost')
    expect(happened(one.events, 'prompt_ended')).toEqual([])

    const second = await folder.listening(modelEnv(provider))
    await expect.poll(() => provider.requests.length, { timeout: 10_000 }).toBe(2)
    using two = await connectTo(folder)
    await two.request(methods.agent.session.load, { sessionId, cwd: '/workspace', mcpServers: [] })
    second.child.kill('SIGINT')
    expect(await second.ended).toBe(0)
    expect(happened(two.events, 'prompt_ended')).toMatchObject([
      { reason: 'interrupted', stopReason: 'cancelled' },
    ])
    expect(second.stderr).not.toContain('sk-a-secret-of-the-test')
    await provider.close()
  })

  test('without an engine it starts, says so, and a call that needs a sandbox fails with that reason', async () => {
    const provider = await startFakeProvider([
      toolCalls([{ id: 'c', name: 'list_directory', args: { path: '.' } }]),
      textAnswer('There is no sandbox now.'),
    ])
    await using folder = new AgentFolder()
    const agent = await folder.listening(modelEnv(provider))
    const ready = agent.stderr.split('\n').find((line) => line.includes('the agent is ready')) ?? ''
    expect(JSON.parse(ready)).toMatchObject({ model: 'fake', tools: builtinTools().length })
    const said = agentStatus.parse(await status(folder))
    expect(said).toMatchObject({
      ready: true,
      model: { name: 'fake', demo: false },
      defaultMode: 'auto-edit',
    })
    expect(said.reasons.find(({ part }) => part === 'sandbox')).toMatchObject({ ok: false })
    using one = await connectTo(folder)
    const sessionId = await newSession(one)
    expect(await prompt(one, sessionId, 'go')).toMatchObject({ stopReason: 'end_turn' })
    expect(outcomes(one.events)).toEqual({ c: ['failed sandbox_unavailable'] })
    await provider.close()
  })

  test('files: the socket is for owner and group, the keys for the owner, made once', async () => {
    await using folder = new AgentFolder()
    const first = await folder.listening()
    expect(statSync(folder.socket).mode & 0o777).toBe(0o660)
    expect(statSync(join(folder.path, 'keys')).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder.path, 'keys', 'deployment.json')).mode & 0o777).toBe(0o600)
    await first.kill()
    // A killed process leaves its socket behind; whoever holds the lock may remove it.
    expect(existsSync(folder.socket)).toBe(true)
    const keys = readFileSync(join(folder.path, 'keys', 'deployment.json'), 'utf8')
    await folder.listening()
    expect(readFileSync(join(folder.path, 'keys', 'deployment.json'), 'utf8')).toBe(keys)
    expect(agentStatus.parse(await status(folder))).toMatchObject({ model: { demo: true } })
  })

  test('a disk that refuses writes: the status says so, and it is over when the disk takes them again', async () => {
    await using folder = new AgentFolder()
    const agent = await folder.listening()
    const store = async (): Promise<unknown> => {
      const said = agentStatus.parse(await status(folder))
      return { ready: said.ready, ...said.reasons.find(({ part }) => part === 'store') }
    }
    const limitFiles = (bytes: string): unknown =>
      execFileSync('prlimit', ['--pid', String(agent.child.pid), `--fsize=${bytes}:unlimited`])
    expect(await store()).toMatchObject({ ready: true, ok: true })
    using one = await connectTo(folder)
    limitFiles('0')
    await expect(newSession(one)).rejects.toThrow(
      'Nothing can be saved: the disk of the server refuses writes.',
    )
    const message = 'The store of chats cannot be read or written: the disk refuses it.'
    expect(await store()).toEqual({ ready: false, part: 'store', ok: false, message })
    limitFiles('unlimited')
    expect(await store()).toMatchObject({ ready: true, ok: true })
    await newSession(one)
  })

  test('a damaged store ends the start with one sentence', async () => {
    await using folder = new AgentFolder()
    writeFileSync(join(folder.path, 'sessions.db'), 'not a database, whatever it is called'.repeat(200))
    const agent = folder.start()
    expect(await agent.ended).toBe(1)
    expect(agent.stderr).toMatch(/^Sandlot’s agent cannot start: .*sessions\.db.*\n$/)
  })

  test('a wrong configuration: every problem at once, exit code 1', async () => {
    await using folder = new AgentFolder()
    const wrong = folder.start({
      OPENAI_API_KEY: 'sk-x',
      SANDLOT_MAX_TURNS: 'many',
      SANDLOT_TOOL_TIMOUT_MS: '5',
    })
    expect(await wrong.ended).toBe(1)
    expect(wrong.stderr).toContain('SANDLOT_MAX_TURNS')
    expect(wrong.stderr).toContain('did you mean SANDLOT_TOOL_TIMEOUT_MS')
  })
})

describe('stdio', { timeout: 90_000 }, () => {
  const messages = (stdout: string): AnyMessage[] =>
    stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as AnyMessage)

  /** Sends a request as a line and resolves with its answer. */
  async function call(agent: AgentProcess, id: number, method: string, params: object): Promise<AnyMessage> {
    agent.send({ jsonrpc: '2.0', id, method, params })
    const answer = (): AnyMessage | undefined =>
      messages(agent.stdout).find((message) => 'id' in message && message.id === id && !('method' in message))
    await expect.poll(answer, { timeout: 30_000 }).toBeDefined()
    return answer() ?? never()
  }

  async function firstPrompt(agent: AgentProcess): Promise<void> {
    await call(agent, 0, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
    await ask(agent)
  }

  async function ask(agent: AgentProcess): Promise<void> {
    const made = await call(agent, 1, 'session/new', { cwd: '/workspace', mcpServers: [] })
    const { result } = z.looseObject({ result: z.looseObject({ sessionId: z.string() }) }).parse(made)
    const prompt = [{ type: 'text', text: 'hi' }]
    agent.send({
      jsonrpc: '2.0',
      id: 2,
      method: 'session/prompt',
      params: { sessionId: result.sessionId, prompt },
    })
  }

  test('lock free: the agent runs there; nothing but protocol on stdout; EOF ends all', async () => {
    const provider = await startFakeProvider([{ steps: [], after: 'hang' }])
    await using folder = new AgentFolder()
    const agent = folder.start(modelEnv(provider), ['--stdio'])
    await firstPrompt(agent)
    await expect.poll(() => provider.requests.length, { timeout: 10_000 }).toBe(1)
    agent.child.stdin?.end()
    expect(await agent.ended).toBe(0)
    for (const message of messages(agent.stdout)) expect(message).toMatchObject({ jsonrpc: '2.0' })
    expect(provider.requests[0]?.aborted).toBe(true)
    await provider.close()
  })

  test.each(['EOF', 'SIGTERM'] as const)(
    'the first of two editors ends by %s: its agent serves the second to its end',
    async (how) => {
      const provider = await startFakeProvider([textAnswer('First.'), textAnswer('Second.')])
      await using folder = new AgentFolder()
      const first = folder.start(modelEnv(provider), ['--stdio'])
      await firstPrompt(first)
      await expect.poll(() => first.stdout).toContain('First.')
      const second = folder.start(modelEnv(provider), ['--stdio'])
      // Answered, so it is connected.
      await call(second, 0, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
      if (how === 'EOF') first.child.stdin?.end()
      else first.child.kill(how)
      await first.logged('until they disconnect')
      await ask(second)
      await expect.poll(() => second.stdout).toContain('Second.')
      second.child.stdin?.end()
      expect(await second.ended).toBe(0)
      expect(await first.ended).toBe(how === 'EOF' ? 0 : 143)
      await provider.close()
    },
  )

  test('lock taken: it relays to the running agent as the local user; EOF ends only the connection', async () => {
    const provider = await startFakeProvider([textAnswer('Hello.')])
    await using folder = new AgentFolder()
    const running = await folder.listening(modelEnv(provider))
    const refused = folder.start(modelEnv(provider))
    expect(await refused.ended).toBe(1)
    expect(refused.stderr).toContain('Another agent is running')

    const relayed = folder.start(modelEnv(provider), ['--stdio'])
    await firstPrompt(relayed)
    await expect
      .poll(() => messages(relayed.stdout).at(-1))
      .toMatchObject({ id: 2, result: { stopReason: 'end_turn' } })
    expect(relayed.stdout).toContain('Hello.')
    relayed.child.stdin?.end()
    expect(await relayed.ended).toBe(0)
    expect(running.child.exitCode).toBeNull()
    expect(agentStatus.parse(await status(folder)).ready).toBe(true)
    await provider.close()
  })
})

function never(): never {
  throw new Error('there is no answer')
}
