import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  isRunning,
  markOf,
  type ProcessMark,
  signalProcess,
  waitForEnd,
} from '../../src/processes/process-mark.ts'
import { backoff, supervise } from '../../src/processes/supervise.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
beforeEach(() => void (folder = testFolder('supervise')))

/** A supervised `node -e script`, with its events. */
function watch(script: string, log = join(folder, 'log', 'child.log')) {
  const events: string[] = []
  const marks: ProcessMark[] = []
  const listeners: (() => void)[] = []
  const record = (text: string): void => {
    events.push(text)
    for (const listener of listeners) listener()
  }
  const child = supervise(
    {
      name: 'child',
      command: process.execPath,
      args: ['-e', script],
      cwd: folder,
      environment: { ONLY: 'this' },
      log,
    },
    {
      started: (mark) => void marks.push(mark),
      printed: (line) => record(`said ${line}`),
      problem: (text) => record(`problem ${text}`),
      died: (end, delayMs) => record(`died ${end} ${delayMs}`),
    },
  )
  const until = (text: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (events.some((one) => one.includes(text))) resolve()
      }
      listeners.push(look)
      look()
    })
  return { child, events, marks, until }
}

describe('a supervised process', () => {
  test('has only its own environment, and its output is passed on and logged', async () => {
    const { child, events, until } = watch(
      'console.log(Object.keys(process.env).join()); console.log(JSON.stringify({level: 50, msg: "no engine"})); console.log(JSON.stringify({level: 30, msg: "fine"})); console.error("a warning"); setInterval(() => {}, 1000)',
    )
    await until('a warning')
    await until('no engine')
    await child.stop('SIGTERM', 10_000)
    expect(events.toSorted()).toEqual(['problem a warning', 'problem no engine', 'said ONLY'])
    const log = readFileSync(join(folder, 'log', 'child.log'), 'utf8')
    expect(log).toContain('"fine"')
    expect(log).toContain('a warning')
    expect(log).not.toContain('ONLY')
  })

  test('is started again when it dies, and not when it is stopped', async () => {
    const { child, events, marks, until } = watch('console.log("up"); setInterval(() => {}, 1000)')
    await until('said up')
    const first = marks[0]
    if (first === undefined) throw new Error('it was not started')
    events.length = 0
    signalProcess(first, 'SIGKILL')
    expect(await child.firstDeath).toBe('signal SIGKILL')
    await until('said up')
    expect(events).toEqual(['died signal SIGKILL 1000', 'said up'])
    expect(marks).toHaveLength(2)
    await child.stop('SIGTERM', 10_000)
    expect(marks.map((mark) => isRunning(mark))).toEqual([false, false])
  })

  test('that ignores the signal is killed after its grace, with what it started', async () => {
    const { child, events, marks, until } = watch(
      'process.on("SIGTERM", () => {}); const {spawn} = require("node:child_process"); console.log("child " + spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]).pid); setInterval(() => {}, 1000)',
    )
    await until('said child')
    const grandchild = markOf(Number(events.find((line) => line.startsWith('said child'))?.split(' ')[2]))
    if (grandchild === undefined) throw new Error('its child is not in /proc')
    await child.stop('SIGTERM', 100)
    expect(marks.map((mark) => isRunning(mark))).toEqual([false])
    expect(await waitForEnd(grandchild, 10_000)).toBe(true)
  })

  test('that cannot be started reports why, when its log is complete', async () => {
    const missing = join(folder, 'missing')
    // A pipe is opened for writing when somebody opens it for reading.
    const log = join(folder, 'x.log')
    execFileSync('mkfifo', [log])
    const order: string[] = []
    const child = supervise(
      { name: 'x', command: missing, args: [], cwd: folder, environment: {}, log },
      { started() {}, printed() {}, problem() {}, died: () => void order.push('died') },
    )
    // One that was started later has failed by now.
    await once(spawn(missing), 'error')
    order.push('read')
    createReadStream(log).resume()
    expect(await child.firstDeath).toContain('ENOENT')
    await child.stop('SIGTERM', 100)
    expect(order).toEqual(['read', 'died'])
    expect(existsSync(missing)).toBe(false)
  })

  test('whose log cannot be written continues, and the problem is reported', async () => {
    // A folder is where the file should be.
    const { child, events, until } = watch('console.log("up"); setInterval(() => {}, 1000)', folder)
    await until('problem Couldn’t write its log')
    await until('said up')
    await child.stop('SIGTERM', 10_000)
    // The log and the process are opened at once: either event may come first.
    expect(events.toSorted()).toEqual([expect.stringContaining('EISDIR'), 'said up'])
  })

  test('is ended by the end of its supervisor, also by an error', async () => {
    const script = `
      import { supervise } from ${JSON.stringify(new URL('../../src/processes/supervise.ts', import.meta.url).href)}
      const spec = { name: 'child', command: process.execPath, args: ['-e', 'console.log("up"); setInterval(() => {}, 1000)'],
        cwd: ${JSON.stringify(folder)}, environment: {}, log: ${JSON.stringify(join(folder, 'child.log'))} }
      supervise(spec, { started: (mark) => console.log(JSON.stringify(mark)), problem() {}, died() {},
        printed() { throw new Error('a defect of the launcher') } })`
    const launcher = spawn(
      process.execPath,
      ['--conditions=sandlot-source', '--input-type=module', '--eval', script],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    )
    let printed = ''
    launcher.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
    expect(await once(launcher, 'close')).toEqual([1, null])
    const mark = JSON.parse(printed) as ProcessMark
    expect(await waitForEnd(mark, 10_000)).toBe(true)
  })

  test('waits longer after each death in a row, at most 30 seconds', () => {
    expect([0, 1, 2, 3, 4, 5, 50].map(backoff)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  })
})
