/** `./sandlot replay` runs this program: record a session into a file, and play it. */
import { execFile } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { AgentBench, ask, newSession } from '../support/agent-fixture.ts'
import { textAnswer } from '../support/fake-provider.ts'

const PROGRAM = join(import.meta.dirname, '../../src/replay/program.ts')

function run(...args: string[]): Promise<{ code: number; out: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--conditions=sandlot-source', PROGRAM, ...args],
      { env: nodeEnvironment() },
      (error, stdout, stderr) => {
        resolve({
          code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
          out: stdout + stderr,
        })
      },
    )
  })
}

test('records, plays, and tells where it differs', async () => {
  await using bench = await AgentBench.start([textAnswer('one')])
  const core = await bench.core()
  const session = await newSession(core)
  await ask(session, 'hello, sk-abcdefghijklmnopqrstuvwx')
  await core.leave()
  const file = join(bench.folder, 'recording.json')
  const recorded = await run('record', join(bench.folder, 'sessions.db'), session.id, file)
  expect(recorded).toMatchObject({ code: 0, out: expect.stringContaining('1 requests') })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const text = readFileSync(file, 'utf8')
  expect(text).not.toContain('sk-abc')
  expect(await run('play', file)).toMatchObject({
    code: 0,
    out: expect.stringContaining('the same byte for byte'),
  })

  writeFileSync(file, text.replaceAll('hello, ', 'goodbye, '))
  expect(await run('play', file)).toMatchObject({ code: 1, out: expect.stringContaining('message 2') })
  expect((await run('play')).code).toBe(2)
})
