/** `POST /api/exec` from HTTP down to real commands in sandboxes of this machine. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { join } from 'node:path'
import type { ExecEnd, ExecResponse } from '@sandlot/shared/workspace/exec'
import type { Rule } from '@sandlot/shared/chat/rules'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { RuleRegistry } from '../../../../ai-agent/src/approval/rule-registry.ts'
import { createPolicies } from '../../../../ai-agent/src/calls/policies/index.ts'
import { createScheduler } from '../../../../ai-agent/src/calls/scheduler.ts'
import { Execs } from '../../../../ai-agent/src/workspace/exec.ts'
import { createToolMetrics } from '../../../../ai-agent/src/metrics/tool-metrics.ts'
import { type LocalSandboxes, openLocalSandboxes } from '../../../../ai-agent/test/tools/local-sandboxes.ts'
import { nodeEnvironment } from '../../../../../test/config.ts'
import { makeKey, waitFor } from '../../support/harness.ts'
import { useHarness } from '../../support/use-harness.ts'

const now = useHarness()
let local: LocalSandboxes
let rules: Rule[] = []
let lines: Record<string, unknown>[] = []
let key = ''
let url = ''

beforeAll(async () => {
  local = await openLocalSandboxes()
})
afterAll(() => local.dispose())

beforeEach(async () => {
  const { harness, ann } = now()
  rules = []
  lines = []
  key = await makeKey(ann)
  url = `${harness.service.url}/api/exec`
  const scheduler = createScheduler({
    maxConcurrent: 10,
    policies: createPolicies({
      metrics: createToolMetrics(),
      toolTimeoutMs: 10_000,
      outputLimitBytes: 1024 * 1024,
      approvalTtlMs: 60_000,
    }),
  })
  const execs = new Execs({
    audit: () => undefined,
    runCalls: (calls, context) => scheduler.run(calls, context),
    sandbox: (userId, signal) => local.sandboxes.acquire(userId, signal),
    rules: new RuleRegistry(
      { list: async () => rules, add: async () => undefined, revoke: async () => false },
      { deployment: [], remember: 'never', lastMs: undefined },
      Date.now,
    ),
    externalAccess: () => undefined,
    leaving: new AbortController().signal,
    log: { info: (fields) => void lines.push(fields), warn: (fields) => void lines.push(fields) },
    now: Date.now,
  })
  harness.agent.exec = ({ user, mode, defaultMode = 'auto-edit', ...command }) => {
    const ticket = randomBytes(8).toString('hex')
    const run = { ...command, userId: user.id, mode: mode ?? defaultMode }
    harness.agent.streams.set(ticket, (socket) => void execs.run(socket, run))
    return { ticket }
  }
})

function post(body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

async function json(body: object): Promise<ExecResponse> {
  const answer = await post(body)
  expect([answer.status, answer.status === 200 ? '' : await answer.text()]).toEqual([200, ''])
  return (await answer.json()) as ExecResponse
}

async function refused(
  body: object,
  headers: Record<string, string> = {},
): Promise<[number, string, string]> {
  const answer = await post(body, headers)
  const { code, message } = (await answer.json()) as { code: string; message: string }
  return [answer.status, code, message]
}

test('a command runs with its directory, variables and stdin, and says how it ended', async () => {
  expect(await json({ command: 'mkdir -p sub; echo made' })).toMatchObject({ stdout: 'made\n', exitCode: 0 })
  const answer = await json({
    command: 'pwd | sed "s|.*/||"; echo "$NAME"; cat >&2; exit 3',
    cwd: 'sub',
    env: { NAME: 'a b' },
    stdin: 'typed é',
  })
  expect(answer).toMatchObject({
    name: 'exec',
    status: 'completed',
    exitCode: 3,
    signal: null,
    stdout: 'sub\na b\n',
    stderr: 'typed é',
    bytes: { stdout: 8, stderr: 8 },
    truncated: false,
    text: '',
  })
  expect(lines.filter(({ callId }) => callId === answer.callId)).toMatchObject([
    { tool: 'exec' },
    { event: 'tool_invocation_success', tool: 'run_shell_command', outcome: 'completed', bytes: 16 },
  ])
})

test('a long output is cut and counted, a slow command is ended, a signal is named', async () => {
  const long = await json({ command: 'head -c 3000000 /dev/zero | tr "\\0" x' })
  expect([long.stdout.length, long.bytes.stdout, long.truncated]).toEqual([1024 * 1024, 3_000_000, true])
  expect(await json({ command: 'echo on; sleep 60', timeoutMs: 1_000 })).toMatchObject({
    status: 'failed',
    reason: 'timeout',
    stdout: 'on\n',
    exitCode: null,
  })
  expect(await json({ command: 'kill -9 $$' })).toMatchObject({ status: 'completed', signal: 'SIGKILL' })
})

test('deny rules hold, and what rules or the mode ask about is not run', async () => {
  rules = [
    { id: 'r1', effect: 'deny', match: { shell: 'rm *' }, origin: 'user', createdAt: 1 },
    { id: 'r2', effect: 'ask', match: { shell: 'touch *' }, origin: 'user', createdAt: 1 },
  ]
  expect(await refused({ command: 'echo a; rm -r b' })).toMatchObject([
    403,
    'forbidden',
    expect.stringMatching(/rm/),
  ])
  // Also in yolo, which a key has by itself.
  expect(await refused({ command: 'touch made' })).toMatchObject([
    409,
    'approval_needed',
    expect.stringMatching(/touch/),
  ])
  expect(await refused({ command: 'mkdir made', mode: 'manual' })).toMatchObject([
    409,
    'approval_needed',
    expect.any(String),
  ])
  expect(await json({ command: 'ls', mode: 'manual' })).toMatchObject({ exitCode: 0 })
  expect(await json({ command: 'ls made 2>&1 || true' })).toMatchObject({
    stdout: expect.stringContaining('No such'),
  })
  // On the page the usual mode holds.
  const { ann } = now()
  expect((await ann.post('/api/exec', { command: 'mkdir made' })).status).toBe(409)
})

test('what cannot be is refused with a sentence', async () => {
  const cases: [object, number, RegExp][] = [
    [{ command: '' }, 400, /must not be empty/],
    [{ command: 'a\0b' }, 400, /NUL/],
    [{ command: 'x'.repeat(200_000) }, 400, /at most 131071 bytes; send a longer script as stdin/],
    [{ command: 'ls', cwd: '../../..' }, 400, /outside the workspace/],
    [{ command: 'ls', cwd: 'nowhere' }, 400, /nowhere/],
    [{ command: 'ls', env: { 'A=B': 'c' } }, 400, /env.A=B: Invalid key/],
    [{ command: 'ls', timeoutMs: 10 }, 400, /timeoutMs/],
    [{ command: 'ls', other: 1 }, 400, /other/],
  ]
  for (const [body, status, message] of cases) {
    const [got, , said] = await refused(body)
    expect([got, said]).toEqual([status, expect.stringMatching(message)])
  }
  expect(await refused({}, { 'sandlot-exec': '{' })).toMatchObject([400, 'bad_request', expect.any(String)])
  const [status, , said] = await refused({ command: 'x'.repeat(1024 * 1024) })
  expect([status, said]).toEqual([413, expect.stringMatching(/The JSON has at most/)])
})

test('as a stream the output comes in pieces of text, or of base64 where it is none', async () => {
  const answer = await post(
    { command: 'printf "\\303"; sleep 0.1; printf "\\251\\n"; printf "\\377\\376" >&2; exit 1' },
    { accept: 'text/event-stream' },
  )
  const events = (await answer.text())
    .split('\n\n')
    .flatMap((block) => [...block.matchAll(/^event: (.*)\ndata: (.*)$/gm)])
    .map(([, event, data]) => [event, JSON.parse(data ?? '') as object] as const)
  const end = events.at(-1)
  expect(end).toMatchObject(['ended', { exitCode: 1 } satisfies Partial<ExecEnd>])
  expect(events.filter(([event]) => event === 'stdout')).toEqual([['stdout', { text: 'é\n' }]])
  const errors = events.flatMap(([event, piece]) => (event === 'stderr' ? [piece as { base64: string }] : []))
  const bytes = errors.map(({ base64 }) => Buffer.from(base64, 'base64'))
  expect(Buffer.concat(bytes)).toEqual(Buffer.from([255, 254]))
})

test('as bytes it is the output alone, and the exit code is a trailer; stdin is the body', async () => {
  const stdin = randomBytes(5_000_000)
  const sending = request(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      accept: 'application/octet-stream',
      'sandlot-exec': JSON.stringify({ command: 'cat; exit 7' }),
    },
  })
  sending.end(stdin)
  const pieces: Buffer[] = []
  const trailers = await new Promise<NodeJS.Dict<string>>((resolve, reject) => {
    sending.on('error', reject)
    sending.on('response', (response) => {
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () => resolve(response.trailers))
    })
  })
  expect(Buffer.concat(pieces).equals(stdin)).toBe(true)
  expect(trailers).toMatchObject({ 'sandlot-exit-code': '7' })
})

test('who leaves ends the command and everything that it started', async () => {
  const { harness, ann } = now()
  const mark = `6${Date.now()}`
  const isRunning = async (): Promise<boolean> =>
    (await json({ command: `pgrep -f "sleep ${mark.slice(0, 3)}[${mark[3]}]${mark.slice(4)}" || true` }))
      .stdout !== ''
  const leaves = async (leave: (abort: AbortController) => unknown): Promise<void> => {
    const gone = new AbortController()
    const asking = fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ command: `(sleep ${mark} & sleep ${mark}) & wait` }),
      signal: gone.signal,
    }).catch(() => undefined)
    await waitFor(isRunning)
    await leave(gone)
    await asking
  }
  await leaves((gone) => gone.abort())
  await waitFor(async () => !(await isRunning()))

  const before = key
  key = await makeKey(ann)
  const other = key
  key = before
  void leaves(async () => {
    const { keys } = (await (await ann.get('/api/keys')).json()) as { keys: { id: string; prefix: string }[] }
    const mine = keys.find(({ prefix }) => before.startsWith(prefix))
    key = other
    await ann.delete(`/api/keys/${mine?.id}`)
  })
  await waitFor(() => key === other)
  await waitFor(async () => !(await isRunning()))
  expect(harness.logLines.filter((line) => line.includes('"level":50'))).toEqual([])
})

/** `./sandlot exec`, as a process. */
function sandlot(args: string[], stdin?: Buffer) {
  const main = join(import.meta.dirname, '../../../../cli/src/main.ts')
  const child = spawn(process.execPath, ['--conditions=sandlot-source', main, 'exec', ...args], {
    env: { ...nodeEnvironment(), SANDLOT_API_KEY: key },
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin)
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout.on('data', (piece: Buffer) => out.push(piece))
  child.stderr.on('data', (piece: Buffer) => err.push(piece))
  const ended = once(child, 'close').then(([code]) => ({
    code: code as number,
    stdout: Buffer.concat(out),
    stderr: Buffer.concat(err).toString(),
  }))
  return { child, ended }
}

test('./sandlot exec passes on stdin, both outputs and the exit code, and Ctrl-C', async () => {
  const { url: address } = now().harness.service
  const stdin = randomBytes(300_000)
  const piped = await sandlot(['--url', address, '--', 'cat; echo "it’s bad" >&2; exit 3'], stdin).ended
  expect([piped.code, piped.stdout.equals(stdin), piped.stderr]).toEqual([3, true, 'it’s bad\n'])
  const words = await sandlot(['--url', address, '--', 'printf', '%s|', "it's", 'a b', '$HOME']).ended
  expect([words.code, words.stdout.toString()]).toEqual([0, "it's|a b|$HOME|"])

  rules = [{ id: 'r1', effect: 'deny', match: { shell: 'rm *' }, origin: 'user', createdAt: 1 }]
  const denied = await sandlot(['--url', address, '--', 'rm', '-r', 'x']).ended
  expect([denied.code, denied.stderr]).toEqual([125, expect.stringContaining('not allowed here')])
  expect((await sandlot(['--url', address]).ended).code).toBe(2)
  const nowhere = await sandlot(['--url', 'http://127.0.0.1:1', '--', 'true']).ended
  expect([nowhere.code, nowhere.stderr]).toEqual([
    125,
    expect.stringContaining('Couldn’t connect to http://127.0.0.1:1 '),
  ])

  const slow = sandlot(['--url', address, '--', 'echo up; sleep 54321'])
  await once(slow.child.stdout, 'data')
  slow.child.kill('SIGINT')
  expect((await slow.ended).code).toBe(130)
  await waitFor(async () => (await json({ command: 'pgrep -f "sleep 5432[1]" || true' })).stdout === '')
})
