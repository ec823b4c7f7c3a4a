/** The programs of the package's README, as they stand there: compiled and run, that of the loop killed in the middle and taken up again. */
import { execFile, spawn } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { modelError } from '../../src/model/errors.ts'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import type { RunOptions } from '../../src/plain/run-agent.ts'
import { errorAnswer, startFakeProvider, textAnswer, toolCalls } from '../support/fake-provider.ts'

const AGENT = join(import.meta.dirname, '../..')
const ROOT = join(AGENT, '../..')
const page = readFileSync(join(AGENT, 'README.md'), 'utf8')
const [loop = '', client = ''] = [...page.matchAll(/```ts\n([^]*?)```/g)].map(([, program]) => program)

// Inside the package, so that its name and its dependencies are found.
const folder = mkdtempSync(join(import.meta.dirname, 'page-'))
writeFileSync(join(folder, 'program.ts'), loop)
writeFileSync(join(folder, 'client.ts'), client)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = promisify(execFile)
const commandOf = (program: string, ...args: string[]): string[] => [
  '--conditions=sandlot-source',
  join(folder, program),
  ...args,
]
const command = (...args: string[]): string[] => commandOf('program.ts', ...args)

test('they compile', async () => {
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: '../../../../../tsconfig.json', include: ['.'] }),
  )
  const compiled = await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder, '--noEmit'], {
    cwd: ROOT,
  }).catch((error: { stdout: string }) => error)
  expect(compiled.stdout.split('\n').filter((line) => line.includes('page-'))).toEqual([])
})

test('killed while the model answers it goes on where it stood, without making the call again', async () => {
  const asked = Promise.withResolvers<void>()
  const provider = await startFakeProvider([
    toolCalls([{ id: 'c1', name: 'weather', args: { city: 'Bern' } }]),
    () => {
      asked.resolve()
      return { steps: [], after: 'hang' }
    },
    textAnswer('Take an umbrella.'),
  ])
  const file = join(folder, 'session.jsonl')
  try {
    const first = spawn(process.execPath, command(provider.baseUrl, file, 'An umbrella?'))
    const gone = new Promise((resolve) => first.once('exit', resolve))
    await asked.promise
    first.kill('SIGKILL')
    await gone
    // A torn write, as after a crash.
    appendFileSync(file, '{"sessionUpdate":"agent_mess')
    const { stdout, stderr } = await run(process.execPath, command(provider.baseUrl, file))
    expect(stdout).toBe('Take an umbrella.\n(completed)\n')
    expect(stderr).toBe('')
    const roles = provider.requests[2]?.body.messages.map(({ role }) => role)
    expect(roles).toEqual(['system', 'user', 'assistant', 'tool'])
    expect(provider.requests[2]?.body.messages.at(-1)?.content).toContain('"sky": "rain"')
  } finally {
    await provider.close()
  }
})

test('the client alone: an answer with its call, and a failure by its class', async () => {
  const provider = await startFakeProvider([
    toolCalls([{ id: 'c1', name: 'weather', args: { city: 'Bern' } }]),
    errorAnswer(401, { error: { message: 'Incorrect API key provided' } }),
  ])
  try {
    const answered = await run(process.execPath, commandOf('client.ts', provider.baseUrl, 'sk-right'))
    expect(JSON.parse(answered.stdout)).toMatchObject({
      text: '',
      calls: [{ id: 'c1', name: 'weather', args: { city: 'Bern' } }],
      finish: 'tool_calls',
    })
    expect(provider.requests[0]?.headers['authorization']).toBe('Bearer sk-right')
    const refused = await run(process.execPath, commandOf('client.ts', provider.baseUrl, 'sk-wrong'))
    expect(JSON.parse(refused.stdout)).toMatchObject({ errorClass: 'auth', retryable: false, status: 401 })
  } finally {
    await provider.close()
  }
})

/** Each of them, or this does not compile. */
const CLASSES: Record<ModelErrorClass, true> = {
  rate_limit: true,
  quota: true,
  auth: true,
  invalid_request: true,
  invalid_history: true,
  replay_refused: true,
  context_overflow: true,
  request_too_large: true,
  content_filter: true,
  overloaded: true,
  server_error: true,
  provider_error: true,
  timeout: true,
  stream_interrupted: true,
  protocol: true,
  malformed_tool_call: true,
  tool_use_failed: true,
  unreachable: true,
}

test('the page has every class of failure, and its verdict', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| .+ \| (yes|no) \|$/gm)].map(([, name, again]) => [
    name,
    again,
  ])
  const classes = Object.keys(CLASSES) as ModelErrorClass[]
  const verdicts = classes.map((name) => [name, modelError(name, '').retryable ? 'yes' : 'no'])
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(verdicts))
})

test('the page has every option of a run', () => {
  // Each of them, or this does not compile.
  const options: Record<Exclude<keyof RunOptions, 'model' | 'log'>, true> = {
    prompt: true,
    signal: true,
    inbox: true,
    system: true,
    maxTurns: true,
    budgets: true,
    retry: true,
    fallbacks: true,
    maxConcurrentTools: true,
    toolTimeoutMs: true,
    tools: true,
    sandbox: true,
    warnings: true,
    now: true,
  }
  const [, table = ''] = /## What else goes in\n([^]*?)\n## /.exec(page) ?? []
  const named = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
  expect(new Set(named)).toEqual(new Set(Object.keys(options)))
})
