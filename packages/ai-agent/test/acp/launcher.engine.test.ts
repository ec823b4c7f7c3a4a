/**
 * `./sandlot acp` as an editor starts it: the launcher prepares, opens a gate to the engine and puts the agent on stdin and
 * stdout. One client is acpx, which we did not write; the other is a pipe, which sees every byte.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { randomText } from '@sandlot/shared/base/ids'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { personEnvironment } from '../../../../test/config.ts'
import { AgentFolder } from '../support/agent-process.ts'
import { type FakeProvider, deltaChunk, sse, startFakeProvider, toolCalls } from '../support/fake-provider.ts'

const ACPX = join(dirname(createRequire(import.meta.url).resolve('acpx/package.json')), 'dist/cli.js')
const LAUNCHER = join(import.meta.dirname, '../../../../sandlot')
/** It builds what has changed before it speaks. */
const PATIENCE = { timeout: 300_000 }

interface Started {
  child: ChildProcess
  /** Resolves when it has ended and everybody who had its pipes has. */
  ended: Promise<number | null>
  stdout: string
  stderr: string
}

let provider: FakeProvider
let folder: AgentFolder
let deployment: string
let started: Started[]

beforeEach(async () => {
  provider = await startFakeProvider()
  folder = new AgentFolder()
  started = []
  // By this name what an interrupted run leaves is known as a test's.
  deployment = `test-${randomText(8)}`
  mkdirSync(join(folder.path, 'keys'), { mode: 0o700 })
  const keys = JSON.stringify({ id: deployment, key: randomBytes(32).toString('base64') })
  writeFileSync(join(folder.path, 'keys', 'deployment.json'), keys, { mode: 0o600 })
  for (const name of ['acpx', 'project']) mkdirSync(join(folder.path, name))
})

afterEach(async () => {
  for (const { child, ended } of started) {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    await ended
  }
  const backend = createDockerBackend({ deployment })
  for (const one of await backend.list({})) {
    await backend.remove(one.id)
    await backend.inventory.volumes.remove(one.name.split('-').slice(0, 3).join('-'))
  }
  await backend.inventory.close()
  await folder[Symbol.asyncDispose]()
  await provider.close()
})

function start(command: string, args: readonly string[], home: string): Started {
  const child = spawn(command, args, {
    cwd: join(folder.path, 'project'),
    env: {
      ...personEnvironment(),
      HOME: home,
      SANDLOT_DATA: folder.path,
      SANDLOT_SANDBOX_POOL: '0',
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-x',
      OPENAI_MODEL: 'fake',
    },
    stdio: 'pipe',
  })
  const one: Started = {
    child,
    ended: once(child, 'close').then(([code]) => code as number | null),
    stdout: '',
    stderr: '',
  }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => (one[name] += text))
  started.push(one)
  return one
}

/** acpx keeps what it knows in a home of its own; the launcher has the person's, with what npm has fetched. */
function acpx(...args: string[]): Started {
  const agent = `/usr/bin/env HOME=${homedir()} ${LAUNCHER} acp`
  return start(process.execPath, [ACPX, '--agent', agent, ...args], join(folder.path, 'acpx'))
}

/** Names of the programs that have this data folder in their environment: whatever of it still runs. */
function running(): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
      if (!environment.includes(`SANDLOT_DATA=${folder.path}`)) return []
      return [readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim()]
    } catch (error) {
      // It ended while we looked, or is another user's.
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES') return []
      throw error
    }
  })
}

const runs = (part: string): boolean => running().some((line) => line.includes(`${part}/dist/main.js`))

/** Every line is a message of the protocol. */
function expectProtocol(stdout: string): void {
  const lines = stdout.trim().split('\n')
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
  expect(lines.length).toBeGreaterThan(0)
}

test(
  'acpx: a command runs in a real sandbox; interrupted, neither gate nor agent is left',
  PATIENCE,
  async () => {
    const command = 'echo it-is-$((6 * 7)); cat /proc/1/comm'
    provider.add(toolCalls([{ id: 'c1', name: 'run_shell_command', args: { command } }]), {
      steps: [sse(deltaChunk({ content: 'It is' }))],
      after: 'hang',
    })
    const ran = acpx('--approve-all', '--format', 'json', 'exec', 'how much is it')
    await expect.poll(() => ran.stdout, { timeout: 240_000 }).toContain('It is')
    expect(provider.requests.at(-1)?.body.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringMatching(/it-is-42\nsbxd/),
    })
    expect([runs('ai-agent'), runs('engine-gate')]).toEqual([true, true])
    ran.child.kill('SIGINT')
    expect(await ran.ended, ran.stderr).toBe(0)
    expectProtocol(ran.stdout)
    expect(ran.stdout).toContain('"stopReason":"cancelled"')
    await expect.poll(running, { timeout: 60_000 }).toEqual([])
  },
)

test.each([
  ['SIGINT', 130],
  ['the end of stdin', 0],
] as const)(
  'sandlot acp, ended by %s: exit code %i, nothing but protocol on stdout, nothing left',
  PATIENCE,
  async (by, code) => {
    const said = start(LAUNCHER, ['acp'], homedir())
    const { child } = said
    const params = { protocolVersion: 1, clientCapabilities: {} }
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`)
    await expect.poll(() => said.stdout, { timeout: 240_000 }).toContain('agentCapabilities')
    // Preparation is reported to the person.
    expect(said.stderr).toContain('Build')
    expect([runs('ai-agent'), runs('engine-gate')]).toEqual([true, true])
    if (by === 'the end of stdin') child.stdin?.end()
    else child.kill(by)
    expect(await said.ended, said.stderr).toBe(code)
    expectProtocol(said.stdout)
    expect(running()).toEqual([])
  },
)
