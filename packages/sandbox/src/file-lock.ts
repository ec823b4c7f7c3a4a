import { randomBytes } from 'node:crypto'
import { lstat, readFile, readlink, symlink, unlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

import { once } from './once.ts'

/** A lock whose holder cannot be looked at from here is taken for left over after this many milliseconds. */
const FOREIGN_STALE_MS = 30_000
/**
 * Run `work` while this process alone holds `<file>.lock`. The lock names its holder, so one that a killed process
 * left behind is broken. Rejects with an `Error` that names the lock file when it cannot be had within `waitMs`,
 * by default longer than that takes, so that whoever comes right behind a crash waits instead of failing.
 *
 * The lock is a symbolic link to its holder's name: it appears whole or not at all, in one call, and leads nowhere.
 */
export async function withFileLock<T>(
  file: string,
  work: () => Promise<T>,
  waitMs: number = FOREIGN_STALE_MS + 10_000,
): Promise<T> {
  const lock = `${file}.lock`
  const name = await newHolder()
  await take(lock, name, waitMs)
  try {
    return await work()
  } finally {
    // Taken for left over meanwhile, it may be somebody else's by now.
    await unlinkIf(lock, name)
  }
}

async function take(lock: string, name: string, waitMs: number): Promise<void> {
  const started = performance.now()
  for (let wait = 2; ; wait = Math.min(wait * 2, 50)) {
    if (await tryLink(lock, name)) return
    await breakIfLeftOver(lock, name)
    if (performance.now() - started > waitMs) {
      throw new Error(`${lock} is held by another process. If none is running, remove that file.`)
    }
    await sleep(wait * (0.5 + Math.random()))
  }
}

/**
 * Between the look at a lock and its removal somebody else may have broken and taken it: so one at a time breaks, and
 * looks again. What a crash in between leaves is removed without that care.
 */
async function breakIfLeftOver(lock: string, name: string): Promise<void> {
  const seen = await holderOf(lock)
  if (seen === undefined || !(await isLeftOver(lock, seen))) return
  const breaking = `${lock}.break`
  if (await tryLink(breaking, name)) {
    try {
      await unlinkIf(lock, seen)
    } finally {
      await unlinkIf(breaking, name)
    }
  } else {
    const breaker = await holderOf(breaking)
    if (breaker !== undefined && (await isLeftOver(breaking, breaker))) await unlinkIf(breaking, breaker)
  }
}

// ── Holders ─────────────────────────────────────────────────────────────────────────────────────────────

/** ESRCH: it ended while it was looked at. EACCES and EPERM: `/proc` is mounted so that others' are hidden. */
const UNTOLD = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM']

/** Where process ids mean the same: this machine since it started, and in it this container. */
const pidSpace = once(async () => {
  const boot = await unless(UNTOLD, readFile('/proc/sys/kernel/random/boot_id', 'utf8'))
  const namespace = await unless(UNTOLD, readlink('/proc/self/ns/pid'))
  return [hostname(), boot?.trim() ?? '', namespace ?? ''].join(' ')
})

/** Process id, when that process was started (in ticks; empty where it cannot be told), a number of its own, and the pid space. */
async function newHolder(): Promise<string> {
  const token = randomBytes(6).toString('hex')
  return `${process.pid} ${await ownStart()} ${token} ${await pidSpace()}`
}

async function isLeftOver(lock: string, holder: string): Promise<boolean> {
  const [, pid, start, space] = /^(\d+) (\d*) [0-9a-f]+ (.*)$/.exec(holder) ?? []
  if (space === (await pidSpace())) {
    if (!isAlive(Number(pid))) return true
    // The id may be another's by now. Behind a restart of its container it is often this very process's.
    const now = await startOf(Number(pid))
    return now !== '' && now !== start
  }
  const made = await unless(['ENOENT'], lstat(lock))
  return made !== undefined && Date.now() - made.mtimeMs > FOREIGN_STALE_MS
}

const ownStart = once(() => startOf(process.pid))

/** proc_pid_stat(5), field 22. The name of the program, field 2, may contain anything. */
async function startOf(pid: number): Promise<string> {
  const text = await unless(UNTOLD, readFile(`/proc/${pid}/stat`, 'utf8'))
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

// ── Links ───────────────────────────────────────────────────────────────────────────────────────────────

/** Make it. False when there is something already. */
async function tryLink(link: string, name: string): Promise<boolean> {
  try {
    await symlink(name, link)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

/** The name in the lock; an empty one when it is no link, so not of our making. Undefined: nobody holds it. */
async function holderOf(lock: string): Promise<string | undefined> {
  try {
    return await unless(['ENOENT'], readlink(lock))
  } catch (error) {
    if (hasCode(error, 'EINVAL')) return ''
    throw error
  }
}

async function unlinkIf(lock: string, name: string): Promise<void> {
  if ((await holderOf(lock)) === name) await unless(['ENOENT'], unlink(lock))
}

async function unless<T>(codes: readonly string[], result: Promise<T>): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    if (codes.some((code) => hasCode(error, code))) return undefined
    throw error
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
