import { randomBytes } from 'node:crypto'
import { lstatSync, readFileSync, readlinkSync, symlinkSync, unlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '#shared/async/backoff'

/** Age in milliseconds at which a lock is stale if its holder is not visible from here. */
const FOREIGN_STALE_MS = 30_000
/**
 * Runs `work` while this process alone holds `<file>.lock`. The lock names its holder, so the lock
 * of a killed process can be broken. Rejects with an `Error` that names the lock file after
 * `waitMs`, by default longer than a lock takes to become stale, so that a start right after a
 * crash waits instead of failing.
 *
 * The lock is a symbolic link to its holder's name: it is created whole in one call, and leads
 * nowhere.
 */
export async function withFileLock<T>(
  file: string,
  work: () => Promise<T>,
  waitMs: number = FOREIGN_STALE_MS + 10_000,
): Promise<T> {
  const lock = `${file}.lock`
  const name = newHolder()
  await take(lock, name, waitMs)
  try {
    return await work()
  } finally {
    // If it was broken as stale, another process may hold it by now.
    unlinkIf(lock, name)
  }
}

async function take(lock: string, name: string, waitMs: number): Promise<void> {
  const started = performance.now()
  for (let tries = 1; ; tries++) {
    if (tryLink(lock, name)) return
    breakIfLeftOver(lock, name)
    if (performance.now() - started > waitMs) {
      throw new Error(`${lock} is held by another process. If none is running, remove that file.`)
    }
    await sleep(backoffMs(tries, { firstMs: 3, longestMs: 15 }, Math.random))
  }
}

/**
 * Between the check and the removal another process may have broken and taken the lock: so one
 * process at a time breaks it, and checks again. A breaker's lock left by a crash is removed
 * without that care.
 */
function breakIfLeftOver(lock: string, name: string): void {
  const seen = holderOf(lock)
  if (seen === undefined || !isLeftOver(lock, seen)) return
  const breaking = `${lock}.break`
  if (tryLink(breaking, name)) {
    try {
      unlinkIf(lock, seen)
    } finally {
      unlinkIf(breaking, name)
    }
  } else {
    const breaker = holderOf(breaking)
    if (breaker !== undefined && isLeftOver(breaking, breaker)) unlinkIf(breaking, breaker)
  }
}

// ── Holders ──

/** ESRCH: it ended during the read. EACCES and EPERM: `/proc` hides other users' processes. */
const UNREADABLE = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM']

let ownSpace: string | undefined
let ownStart: string | undefined

/** Scope of process ids: this machine since its boot, and this container. */
function pidSpace(): string {
  const boot = unless(UNREADABLE, () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))
  const namespace = unless(UNREADABLE, () => readlinkSync('/proc/self/ns/pid'))
  return [hostname(), boot?.trim() ?? '', namespace ?? ''].join(' ')
}

/** Distinguishes a second copy of this module in the same process. */
const copy = randomBytes(6).toString('hex')
let holders = 0

/**
 * Process id, its start time (in ticks; empty where unknown), a unique number, and the pid space.
 */
function newHolder(): string {
  holders += 1
  ownSpace ??= pidSpace()
  ownStart ??= startOf(process.pid)
  return `${process.pid} ${ownStart} ${copy}${holders.toString(16)} ${ownSpace}`
}

function isLeftOver(lock: string, holder: string): boolean {
  const [, pid, start, space] = /^(\d+) (\d*) [0-9a-f]+ (.*)$/.exec(holder) ?? []
  ownSpace ??= pidSpace()
  if (space === ownSpace) {
    if (!isAlive(Number(pid))) return true
    // The id may have been reused. After a restart of its container it is often this very
    // process's.
    const now = startOf(Number(pid))
    return now !== '' && now !== start
  }
  const made = unless(['ENOENT'], () => lstatSync(lock))
  return made !== undefined && Date.now() - made.mtimeMs > FOREIGN_STALE_MS
}

/** proc_pid_stat(5), field 22. The program's name, field 2, may contain anything. */
function startOf(pid: number): string {
  const text = unless(UNREADABLE, () => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
}

// ── Links ──

/** Creates it. False when something exists already. */
function tryLink(link: string, name: string): boolean {
  try {
    symlinkSync(name, link)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

/**
 * The name in the lock; empty when it is not a link, hence not ours. Undefined: the lock is free.
 */
function holderOf(lock: string): string | undefined {
  try {
    return unless(['ENOENT'], () => readlinkSync(lock))
  } catch (error) {
    if (hasCode(error, 'EINVAL')) return ''
    throw error
  }
}

function unlinkIf(lock: string, name: string): void {
  if (holderOf(lock) === name) unless(['ENOENT'], () => unlinkSync(lock))
}

function unless<T>(codes: readonly string[], read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (codes.some((code) => hasCode(error, code))) return undefined
    throw error
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
