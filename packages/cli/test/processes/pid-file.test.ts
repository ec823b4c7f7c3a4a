import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { claim, readRecord, recordWriter, release, type UpRecord } from '../../src/processes/pid-file.ts'
import {
  isRunning,
  markOf,
  parseStat,
  type ProcessMark,
  signalProcess,
  waitForEnd,
} from '../../src/processes/process-mark.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = testFolder('pid')
  file = join(folder, 'run', 'up.json')
})

function ourMark(): ProcessMark {
  const mark = markOf(process.pid)
  if (mark === undefined) throw new Error('this process is not in /proc')
  return mark
}

const record = (up: ProcessMark, url = 'http://127.0.0.1:8002'): UpRecord => ({ up, url, children: {} })
/** Our pid, as it would look had another process had it before. */
const reused = (): ProcessMark => ({ pid: process.pid, started: 'another boot/1' })

describe('a claim of the data directory', () => {
  test('is given once, and again after its release', () => {
    const ours = record(ourMark())
    expect(claim(file, ours)).toEqual({ kind: 'claimed', previous: undefined })
    expect(claim(file, record(ourMark(), 'http://127.0.0.1:1'))).toEqual({ kind: 'running', record: ours })
    expect(readRecord(file)).toEqual(ours)
    release(file, ours)
    expect(existsSync(file)).toBe(false)
    expect(claim(file, ours).kind).toBe('claimed')
  })

  test('of a process that is gone is taken over, with what it left running', () => {
    const stale: UpRecord = { ...record(reused()), children: { service: ourMark() } }
    expect(claim(file, stale).kind).toBe('claimed')
    expect(claim(file, record(ourMark()))).toEqual({ kind: 'claimed', previous: stale })
    expect(readdirSync(join(folder, 'run'))).toEqual(['up.json'])
  })

  test('that was cut off while it was written is as good as none', () => {
    claim(file, record(ourMark()))
    writeFileSync(file, '{"up":{"pid":1')
    expect(readRecord(file)).toBeUndefined()
    expect(claim(file, record(ourMark())).kind).toBe('claimed')
  })

  test('is not released by another process', () => {
    const ours = record(ourMark())
    claim(file, ours)
    release(file, record(reused()))
    expect(readRecord(file)).toEqual(ours)
  })

  test('tells its children as they start', () => {
    const ours = record(ourMark())
    claim(file, ours)
    recordWriter(file, expect.fail).write({ ...ours, children: { 'ai-agent': ourMark() } })
    expect(readRecord(file)?.children).toEqual({ 'ai-agent': ourMark() })
    expect(readdirSync(join(folder, 'run'))).toEqual(['up.json'])
  })
})

describe.skipIf(process.getuid?.() !== 0)('on a full disk (needs root, to mount one)', () => {
  const disk = (): string => join(folder, 'run')
  const ballast = (): string => join(disk(), 'ballast')

  beforeEach(() => {
    mkdirSync(disk())
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'sandlot-test', disk()])
  })
  afterEach(() => execFileSync('umount', [disk()]))

  function fill(): void {
    expect(() => writeFileSync(ballast(), Buffer.alloc(1 << 20))).toThrow('ENOSPC')
  }

  test('a record that cannot be written is reported once, and written when there is room', () => {
    const ours = record(ourMark())
    expect(claim(file, ours).kind).toBe('claimed')
    fill()
    const problems: string[] = []
    const records = recordWriter(file, (text) => void problems.push(text))
    records.write({ ...ours, children: { service: reused() } })
    records.write({ ...ours, children: { service: ourMark() } })
    expect(problems).toEqual([expect.stringContaining('ENOSPC')])
    expect(readRecord(file)).toEqual(ours)
    rmSync(ballast())
    records.write({ ...ours, children: { service: ourMark() } })
    expect(readRecord(file)?.children).toEqual({ service: ourMark() })
    expect(readdirSync(disk())).toEqual(['up.json'])
  })

  test('a claim is marked, and leaves the record of the processes of an earlier run', () => {
    const stale: UpRecord = { ...record(reused()), children: { service: ourMark() } }
    claim(file, stale)
    fill()
    expect(() => claim(file, record(ourMark()))).toThrow(/Couldn’t write to .*ENOSPC/)
    expect(readRecord(file)).toEqual(stale)
  })
})

describe('a process', () => {
  test('is recognised by its start, not by its number', () => {
    expect(isRunning(ourMark())).toBe(true)
    expect(isRunning(reused())).toBe(false)
    expect(signalProcess(reused(), 'SIGKILL')).toBe(false)
  })

  test('that ended is not running, and a signal to it goes nowhere', async () => {
    const child = spawn('sleep', ['60'], { stdio: 'ignore' })
    const mark = markOf(child.pid ?? 0)
    if (mark === undefined) throw new Error('the child is not in /proc')
    expect(isRunning(mark)).toBe(true)
    expect(await waitForEnd(mark, 0)).toBe(false)
    const closed = once(child, 'close')
    expect(signalProcess(mark, 'SIGTERM')).toBe(true)
    expect(await waitForEnd(mark, 10_000)).toBe(true)
    await closed
    expect(signalProcess(mark, 'SIGTERM')).toBe(false)
  })

  test('may have any name', () => {
    const tail = Array.from({ length: 30 }, (_, index) => String(index)).join(' ')
    expect(parseStat(`7 (a) R (b) S ${tail}`)).toEqual({ state: 'S', startTicks: '18' })
    expect(parseStat('')).toBeUndefined()
  })
})
