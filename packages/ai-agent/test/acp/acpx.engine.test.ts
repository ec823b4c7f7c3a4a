/** `sandlot acp` as the agent of acpx, a client that we did not write: its own words and exit codes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onlyInFullRun } from '../../../../test/campaign.ts'
import { AgentFolder, agentCommand } from '../support/agent-process.ts'
import {
  type FakeProvider,
  deltaChunk,
  sse,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../support/fake-provider.ts'

const CLI = join(dirname(createRequire(import.meta.url).resolve('acpx/package.json')), 'dist/cli.js')
/** Meanings of acpx's exit codes. */
const EXIT = { ok: 0, noSession: 4, denied: 5 }

interface Ran {
  code: number | null
  stdout: string
  stderr: string
}

/** acpx with a home and a project of its own, and our agent on this data folder. */
class Acpx {
  readonly #folder: AgentFolder
  readonly #env: Record<string, string>

  constructor(folder: AgentFolder, env: Record<string, string>) {
    this.#folder = folder
    this.#env = env
    for (const name of ['home', 'project']) mkdirSync(join(folder.path, name), { recursive: true })
  }

  start(args: readonly string[]): { child: ChildProcess; ended: Promise<Ran> } {
    const { command, args: agentArgs, env } = agentCommand(this.#folder.path, this.#env, ['--stdio'])
    const agent = [command, ...agentArgs].join(' ')
    const child = spawn(process.execPath, [CLI, '--ttl', '60', '--agent', agent, ...args], {
      cwd: join(this.#folder.path, 'project'),
      env: { ...env, HOME: join(this.#folder.path, 'home') },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => (said[name] += text))
    return { child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, ...said })) }
  }

  run(...args: string[]): Promise<Ran> {
    return this.start(args).ended
  }
}

describe('acpx', { timeout: 120_000 }, () => {
  let provider: FakeProvider
  let folder: AgentFolder
  let acpx: Acpx

  beforeAll(async () => {
    provider = await startFakeProvider()
    folder = new AgentFolder()
    acpx = new Acpx(folder, {
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-x',
      OPENAI_MODEL: 'fake',
    })
  })

  afterAll(async () => {
    await folder[Symbol.asyncDispose]()
    await provider.close()
  })

  const command = (id: string) => toolCalls([{ id, name: 'run_shell_command', args: { command: 'make it' } }])

  test('lock free, a call that is denied: every line is the protocol, the model was told, exit code 5', async () => {
    provider.add(command('c1'), textAnswer('I did not do it.', { pieceLength: 50 }))
    const ran = await acpx.run('--deny-all', '--format', 'json', 'exec', 'make it')
    expect(ran).toMatchObject({ code: EXIT.denied, stdout: expect.stringContaining('not do it.') })
    for (const line of ran.stdout.trim().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
    expect(JSON.stringify(provider.requests.at(-1)?.body.messages.at(-1))).toContain('did not allow')
  })

  test('interrupted: the prompt ends cancelled, exit code 0, its model is let go', async () => {
    provider.add({ steps: [sse(deltaChunk({ content: 'Half' }))], after: 'hang' })
    const { child, ended } = acpx.start(['--format', 'json', 'exec', 'go'])
    const request = () => provider.requests.findLast(({ raw }) => raw.includes('"go"'))
    await expect.poll(() => request() !== undefined, { timeout: 30_000 }).toBe(true)
    child.kill('SIGINT')
    // It cancels like an editor, and what was cancelled in order is no failure to it.
    expect(await ended).toMatchObject({
      code: EXIT.ok,
      stdout: expect.stringContaining('"stopReason":"cancelled"'),
    })
    await expect.poll(() => request()?.aborted, { timeout: 10_000 }).toBe(true)
  })

  test('beside a running agent: sessions made, prompted, resumed, set, listed, closed', async ({ skip }) => {
    onlyInFullRun(skip)
    expect(await acpx.run('prompt', 'hi')).toMatchObject({ code: EXIT.noSession })
    await folder.listening({
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-x',
      OPENAI_MODEL: 'fake',
    })

    const made = await acpx.run('--format', 'quiet', 'sessions', 'new')
    expect(made.code).toBe(EXIT.ok)
    const sessionId = made.stdout.trim()
    provider.add(command('c2'), textAnswer('First answer.'), textAnswer('Second answer.'))
    const first = await acpx.run('--approve-all', '--format', 'quiet', 'prompt', 'one')
    // Allowed, and then there was no engine.
    expect(JSON.stringify(provider.requests.at(-1)?.body.messages.at(-1))).toContain('No Docker engine')
    expect(first).toMatchObject({ code: EXIT.ok, stdout: expect.stringContaining('First answer.') })
    const second = await acpx.run('--format', 'quiet', 'prompt', 'two')
    if (second.code !== 0) console.error(second)
    expect(second).toMatchObject({ code: EXIT.ok, stdout: expect.stringContaining('Second answer.') })
    expect(provider.requests.at(-1)?.body.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ])
    expect(await acpx.run('set-mode', 'yolo')).toMatchObject({ code: EXIT.ok })
    expect(await acpx.run('set', 'mode', 'manual')).toMatchObject({ code: EXIT.ok })
    const listed = await acpx.run('--format', 'json', 'sessions', 'list')
    expect(listed).toMatchObject({ code: EXIT.ok, stdout: expect.stringContaining(sessionId) })
    expect(await acpx.run('sessions', 'close')).toMatchObject({ code: EXIT.ok })
  })
})
