/** The program of the package's README, as it stands there: compiled, run, killed in the middle, and taken up again. */
import { execFile, spawn } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { startFakeProvider, textAnswer, toolCalls } from '../fake-provider.ts'

const AGENT = join(import.meta.dirname, '../..')
const ROOT = join(AGENT, '../..')
const [, program = ''] = /```ts\n([^]*?)```/.exec(readFileSync(join(AGENT, 'README.md'), 'utf8')) ?? []

// Inside the package, so that its name and its dependencies are found.
const folder = mkdtempSync(join(import.meta.dirname, 'page-'))
writeFileSync(join(folder, 'program.ts'), program)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = promisify(execFile)
const command = (...args: string[]): string[] => [
  '--conditions=sandlot-source',
  join(folder, 'program.ts'),
  ...args,
]

test('it compiles', async () => {
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
    // What a crash in the middle of a write would leave.
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
