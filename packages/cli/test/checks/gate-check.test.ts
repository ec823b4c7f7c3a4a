/** Checks real processes, started with one engine address or another, for the gate. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { recordFile } from '../../src/processes/children.ts'
import { parseCliConfig } from '../../src/config.ts'
import { gateSocket } from '../../src/deployment/gate.ts'
import { recordWriter } from '../../src/processes/pid-file.ts'
import { markOf, ownMark, type ProcessMark } from '../../src/processes/process-mark.ts'
import { gate } from '../../src/checks/sandbox-checks.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
const started: ChildProcess[] = []
beforeEach(() => void (folder = testFolder('doctor')))
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

async function running(environment: Record<string, string>): Promise<ProcessMark> {
  const child = spawn('/bin/sleep', ['600'], { env: environment, stdio: 'ignore' })
  started.push(child)
  await once(child, 'spawn')
  const mark = markOf(child.pid ?? 0)
  if (mark === undefined) throw new Error('it ended at once')
  return mark
}

const GONE: ProcessMark = { pid: 1, started: 'another boot/1' }

test.each([
  ['through the gate', true, true, { group: 'must', state: 'ok' }],
  ['past the gate that runs', false, true, { group: 'must', state: 'failed' }],
  ['to the engine itself, where there is no gate', false, false, { group: 'warn', state: 'failed' }],
])('an agent that goes %s', async (_what, through, beside, expected) => {
  const config = parseCliConfig({ SANDLOT_DATA: join(folder, 'data') }, folder)
  mkdirSync(join(config.data, 'run'), { recursive: true })
  const host = through ? gateSocket(config) : '/var/run/docker.sock'
  const agent = await running({ DOCKER_HOST: `unix://${host}` })
  const children = { 'ai-agent': agent, 'engine-gate': beside ? await running({}) : GONE }
  recordWriter(recordFile(config), expect.fail).write({ up: ownMark(), url: 'http://127.0.0.1:1', children })
  expect(gate(config)).toMatchObject({ id: 'engine-gate', ...expected })
})

test('an agent without an address in its environment reaches the engine itself', async () => {
  const config = parseCliConfig({ SANDLOT_DATA: join(folder, 'data') }, folder)
  mkdirSync(join(config.data, 'run'), { recursive: true })
  const children = { 'ai-agent': await running({}), 'engine-gate': await running({}) }
  recordWriter(recordFile(config), expect.fail).write({ up: ownMark(), url: 'http://127.0.0.1:1', children })
  expect(gate(config)).toMatchObject({ group: 'must', state: 'failed' })
})

test('where nothing runs it is not known', () => {
  const config = parseCliConfig({ SANDLOT_DATA: join(folder, 'data') }, folder)
  expect(gate(config)).toMatchObject({ group: 'warn', state: 'unknown' })
})
