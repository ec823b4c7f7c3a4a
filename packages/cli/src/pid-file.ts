import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { isRunning } from './processes.ts'

const mark = z.object({ pid: z.int().positive(), started: z.string() })

/** What a running `up` leaves in `$SANDLOT_DATA/run/up.json`: itself, its address, and the processes it started. */
export const upRecord = z.object({ up: mark, url: z.string(), children: z.record(z.string(), mark) })
export type UpRecord = z.infer<typeof upRecord>

/** The record in `file`; undefined when there is none or it is damaged. */
export function readRecord(file: string): UpRecord | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  try {
    return upRecord.parse(JSON.parse(text))
  } catch {
    return undefined // half written by a machine that lost power: as good as none
  }
}

/** Replace the record in one step, so that no reader sees half of it. */
export function writeRecord(file: string, record: UpRecord): void {
  const temporary = `${file}.${process.pid}`
  writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 })
  renameSync(temporary, file)
}

export type Claim =
  | { kind: 'claimed'; previous: UpRecord | undefined }
  /** Another `up` runs; nothing was changed. */
  | { kind: 'running'; record: UpRecord }

/**
 * Become the `up` of this data directory. Of two that start together one gets `claimed`: a link fails where the
 * name exists. A record left by an `up` that is gone is returned as `previous`: its children may still run.
 */
export function claim(file: string, record: UpRecord): Claim {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const previous = readRecord(file)
  if (previous !== undefined && isRunning(previous.up)) return { kind: 'running', record: previous }
  const newcomer = moveAside(file)
  if (newcomer !== undefined) return { kind: 'running', record: newcomer }
  const temporary = `${file}.${process.pid}`
  writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 })
  try {
    linkSync(temporary, file)
    return { kind: 'claimed', previous }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    const winner = readRecord(file)
    if (winner === undefined) throw error
    return { kind: 'running', record: winner }
  } finally {
    rmSync(temporary, { force: true })
  }
}

/**
 * Move a stale record away. Between our look and the move another `up` may have put its own there: what was moved
 * is looked at again, put back if its owner runs, and returned.
 */
function moveAside(file: string): UpRecord | undefined {
  const aside = `${file}.${process.pid}.old`
  try {
    renameSync(file, aside)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
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
