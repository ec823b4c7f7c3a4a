import { randomBytes } from 'node:crypto'
import { lstat, readlink, rename, symlink, unlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** A lock of another machine or container is taken for left over after this many milliseconds. */
const FOREIGN_STALE_MS = 30_000
const WAIT_MS = 10_000

/**
 * Run `work` while this process alone holds `<file>.lock`. The lock names its holder, so one that a killed process
 * left behind is broken. Rejects with an `Error` that names the lock file when it cannot be had within ten seconds.
 *
 * The lock is a symbolic link to its holder's name: it appears whole or not at all, in one call, and leads nowhere.
 */
export async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const lock = `${file}.lock`
  const token = randomBytes(6).toString('hex')
  const identity = JSON.stringify({ pid: process.pid, host: hostname(), token })
  await take(lock, identity, `${lock}.${token}`)
  try {
    return await work()
  } finally {
    // Taken for left over meanwhile, it may be somebody else's by now.
    if ((await holderOf(lock)) === identity) await unlink(lock).catch(unlessGone)
  }
}

/** `aside`: a path that is nobody else's. */
async function take(lock: string, identity: string, aside: string): Promise<void> {
  const started = performance.now()
  for (let wait = 2; ; wait = Math.min(wait * 2, 50)) {
    if (await isMade(lock, identity)) return
    await breakIfLeftOver(lock, aside)
    if (performance.now() - started > WAIT_MS) {
      throw new Error(`${lock} is held by another process. If none is running, remove that file.`)
    }
    await sleep(wait * (0.5 + Math.random()))
  }
}

async function isMade(lock: string, identity: string): Promise<boolean> {
  try {
    await symlink(identity, lock)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

async function breakIfLeftOver(lock: string, aside: string): Promise<void> {
  const seen = await holderOf(lock)
  if (seen === undefined || !(await isLeftOver(lock, seen))) return
  await rename(lock, aside).catch(unlessGone)
  // Someone may have broken and taken it since we looked: then it is theirs, put it back.
  const broken = await holderOf(aside)
  if (broken === undefined) return
  if (broken !== seen) await isMade(lock, broken)
  await unlink(aside)
}

async function isLeftOver(lock: string, content: string): Promise<boolean> {
  const match = /^\{"pid":(\d+),"host":"(.*)","token":"[0-9a-f]+"\}$/.exec(content)
  if (match?.[2] === hostname()) return !isAlive(Number(match[1]))
  try {
    return Date.now() - (await lstat(lock)).mtimeMs > FOREIGN_STALE_MS
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
}

/** The name in the lock; an empty one when it is no link, so not of our making. Undefined: nobody holds it. */
async function holderOf(lock: string): Promise<string | undefined> {
  try {
    return await readlink(lock)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    if (hasCode(error, 'EINVAL')) return ''
    throw error
  }
}

function unlessGone(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
