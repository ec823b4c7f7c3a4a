import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, hasCode } from '@sandlot/shared/base/errors'
import { isRunning, type ProcessMark } from './process-mark.ts'
import { StepError } from '../steps.ts'

/**
 * What a running `up` leaves in `$SANDLOT_DATA/run/up.json`: itself, its address, and the processes
 * it started.
 */
export interface UpRecord {
  up: ProcessMark
  url: string
  /** By their names; of several replicas each with its number, like `ai-agent-2`. */
  children: Record<string, ProcessMark>
  /** Of `--replicas`; absent: one. */
  replicas?: number
}

/** The record in `file`; undefined when there is none or it is damaged. */
export function readRecord(file: string): UpRecord | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined // half written by a machine that lost power: as good as none
  }
}

// By hand: zod would stay in the memory of the process that watches, and is a quarter of it.
function isRecord(value: unknown): value is UpRecord {
  if (typeof value !== 'object' || value === null) return false
  if (!('up' in value && 'url' in value && 'children' in value)) return false
  const { up, url, children } = value
  if ('replicas' in value && value.replicas !== undefined && !Number.isSafeInteger(value.replicas))
    return false
  if (!isMark(up) || typeof url !== 'string') return false
  return typeof children === 'object' && children !== null && Object.values(children).every(isMark)
}

function isMark(value: unknown): value is ProcessMark {
  if (typeof value !== 'object' || value === null || !('pid' in value && 'started' in value)) return false
  // A signal to the id 0 or a negative one would reach a whole group.
  return Number.isSafeInteger(value.pid) && Number(value.pid) > 0 && typeof value.started === 'string'
}

/**
 * Replaces the record in one step, so that no reader sees half of it. Throws the error of the disk.
 */
function writeRecord(file: string, record: UpRecord): void {
  renameSync(temporaryRecord(file, record), file)
}

/** Milliseconds until a record that could not be written is tried again. */
const RETRY_MS = 10_000

interface RecordWriter {
  /** Never throws. */
  write(record: UpRecord): void
}

/**
 * The record of an `up` that continues when a full disk refuses it: `problem` is called once, and
 * again only after a write that succeeded. What was refused is tried again, because the next `up`
 * ends the processes that it names.
 */
export function recordWriter(file: string, problem: (text: string) => void): RecordWriter {
  let failing = false
  let retry: NodeJS.Timeout | undefined
  const write = (record: UpRecord): void => {
    clearTimeout(retry)
    try {
      writeRecord(file, record)
      failing = false
    } catch (error) {
      if (!failing) problem(`The record of what runs cannot be written: ${messageOf(error)}`)
      failing = true
      retry = setTimeout(write, RETRY_MS, record).unref()
    }
  }
  return { write }
}

/** Writes `record` beside `file` and returns where. A partly written file is removed again. */
function temporaryRecord(file: string, record: UpRecord): string {
  const temporary = `${file}.${process.pid}`
  try {
    writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 })
    return temporary
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

type Claim =
  | { kind: 'claimed'; previous: UpRecord | undefined }
  /** Another `up` runs; nothing was changed. */
  | { kind: 'running'; record: UpRecord }

/**
 * Become the `up` of this data directory. Of two that start together one gets `claimed`: a link
 * fails where the name exists. A record left by an `up` that is gone is returned as `previous`: its
 * children may still run. It stays where it is when ours cannot be written.
 * @throws StepError on a disk that refuses it.
 */
export function claim(file: string, record: UpRecord): Claim {
  const previous = readRecord(file)
  if (previous !== undefined && isRunning(previous.up)) return { kind: 'running', record: previous }
  const temporary = newRecord(file, record)
  try {
    const newcomer = moveAside(file)
    if (newcomer !== undefined) return { kind: 'running', record: newcomer }
    linkSync(temporary, file)
    return { kind: 'claimed', previous }
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    const winner = readRecord(file)
    if (winner === undefined) throw error
    return { kind: 'running', record: winner }
  } finally {
    rmSync(temporary, { force: true })
  }
}

/** The first thing that a start writes: a disk that is full or read-only shows here. */
function newRecord(file: string, record: UpRecord): string {
  const folder = dirname(file)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return temporaryRecord(file, record)
  } catch (error) {
    throw new StepError(
      `Nothing can be written in ${folder}: ${messageOf(error)}`,
      'Make room on that disk, or set SANDLOT_DATA to a folder on another one.',
      { cause: error },
    )
  }
}

/**
 * Move a stale record away. Between our look and the move another `up` may have put its own there:
 * what was moved is looked at again, put back if its owner runs, and returned.
 */
function moveAside(file: string): UpRecord | undefined {
  const aside = `${file}.${process.pid}.old`
  try {
    renameSync(file, aside)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
  const moved = readRecord(aside)
  const alive = moved !== undefined && isRunning(moved.up) ? moved : undefined
  if (alive === undefined) rmSync(aside, { force: true })
  else renameSync(aside, file)
  return alive
}

/** Give the claim up, if it is still ours. */
export function release(file: string, record: UpRecord): void {
  const there = readRecord(file)
  if (there?.up.pid === record.up.pid && there.up.started === record.up.started) rmSync(file, { force: true })
}
