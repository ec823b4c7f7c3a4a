import { randomBytes } from 'node:crypto'
import { link, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** A lock of another machine or container is taken for left over after this many milliseconds. */
const FOREIGN_STALE_MS = 30_000
const WAIT_MS = 10_000

/**
 * Run `work` while this process alone holds `<file>.lock`. The lock names its holder, so one that a killed process
 * left behind is broken. Rejects with an `Error` that names the lock file when it cannot be had within ten seconds.
 */
export async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const lock = `${file}.lock`
  const mine = `${lock}.${process.pid}.${randomBytes(6).toString('hex')}`
  const identity = JSON.stringify({ pid: process.pid, host: hostname(), token: mine.slice(-12) })
  await writeFile(mine, identity, { mode: 0o600, flag: 'wx' })
  // Of no use once it is linked, so it goes while the work is done.
  let removed = Promise.resolve()
  try {
    try {
      await take(lock, mine)
    } finally {
      removed = rm(mine, { force: true })
      // Waited for at the end.
      removed.catch(() => {})
    }
    try {
      return await work()
    } finally {
      // Taken for left over meanwhile, it may be somebody else's by now.
      if ((await readIfThere(lock)) === identity) await rm(lock, { force: true })
    }
  } finally {
    await removed
  }
}

/** A hard link appears whole or not at all, with its content. */
async function take(lock: string, mine: string): Promise<void> {
  const started = performance.now()
  for (let wait = 2; ; wait = Math.min(wait * 2, 50)) {
    try {
      await link(mine, lock)
      return
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
    }
    await breakIfLeftOver(lock, `${mine}.old`)
    if (performance.now() - started > WAIT_MS) {
      throw new Error(`${lock} is held by another process. If none is running, remove that file.`)
    }
    await sleep(wait * (0.5 + Math.random()))
  }
}

async function breakIfLeftOver(lock: string, aside: string): Promise<void> {
  const seen = await readIfThere(lock)
  if (seen === undefined || !(await isLeftOver(lock, seen))) return
  try {
    await rename(lock, aside)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  // Someone may have broken and taken it since we looked: then it is theirs, put it back.
  if ((await readIfThere(aside)) !== seen) {
    await link(aside, lock).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error
    })
  }
  await rm(aside, { force: true })
}

async function isLeftOver(lock: string, content: string): Promise<boolean> {
  const match = /^\{"pid":(\d+),"host":"(.*)","token":"[0-9a-f]+"\}$/.exec(content)
  if (match?.[2] === hostname()) return !isAlive(Number(match[1]))
  try {
    return Date.now() - (await stat(lock)).mtimeMs > FOREIGN_STALE_MS
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

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
