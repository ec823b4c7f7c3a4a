import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, hasCode } from '@sandlot/shared/base/errors'
import { isRunning, type ProcessMark } from './process-mark.ts'
import { StepError } from '../steps.ts'

/** Content of `$SANDLOT_DATA/run/up.json`: a running `up`, its address and its children. */
export interface UpRecord {
  up: ProcessMark
  url: string
  /** By name, with the number of a replica, like `ai-agent-2`. */
  children: Record<string, ProcessMark>
  /** `--replicas`; absent: one. */
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
    return undefined // incomplete after a power failure
  }
}

// Without zod, which would be a quarter of the supervisor's memory.
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

/** Replaces the record atomically. Throws the error of the disk. */
function writeRecord(file: string, record: UpRecord): void {
  renameSync(temporaryRecord(file, record), file)
}

const RETRY_MS = 10_000

interface RecordWriter {
  /** Never throws. */
  write(record: UpRecord): void
}

/**
 * Writes the record, and retries on a full disk: the next `up` stops the processes in it. `problem`
 * is called once, and again only after a successful write.
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
      if (!failing) problem(`Couldn’t write the record of running processes: ${messageOf(error)}`)
      failing = true
      retry = setTimeout(write, RETRY_MS, record).unref()
    }
  }
  return { write }
}

/** Writes `record` into a temporary file next to `file`, and returns its path. */
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
 * Becomes the `up` of this data folder. Of two that start together, one gets `claimed`: a link
 * fails if the name exists. `previous` is the record of an `up` that has ended; its children may
 * still run. It stays in place when ours cannot be written.
 * @throws StepError when the disk refuses the record.
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

/** The first write of a start, so a full or read-only disk is noticed here. */
function newRecord(file: string, record: UpRecord): string {
  const folder = dirname(file)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return temporaryRecord(file, record)
  } catch (error) {
    throw new StepError(
      `Couldn’t write to ${folder}: ${messageOf(error)}`,
      'Free space on that disk, or set SANDLOT_DATA to a folder on another one.',
      { cause: error },
    )
  }
}

/**
 * Moves a stale record away. Another `up` may have replaced it since it was read: the moved record
 * is read again, and put back and returned if its owner runs.
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

/** Releases the claim if it is still ours. */
export function release(file: string, record: UpRecord): void {
  const there = readRecord(file)
  if (there?.up.pid === record.up.pid && there.up.started === record.up.started) rmSync(file, { force: true })
}
