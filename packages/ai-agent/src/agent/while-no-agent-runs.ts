/** Checks that no agent of this deployment runs, for work that requires it. */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type FileLock, lockFile } from '@sandlot/storage/database/lock'
import type { SessionStore } from '@sandlot/storage/sessions/store'

/** `running`: those that live in the database, and those on this disk, also if cut off from it. */
type WhileNoneRuns<T> = { result: T } | { running: string[] }

/**
 * Runs `work` with the locks of all agents of `dataFolder`, so that none of them can start during
 * it. Where agents run it returns their names instead: none for the only agent of a file, next to
 * which `open` is not called, since a file has one writer.
 */
export async function whileNoAgentRuns<T>(
  dataFolder: string,
  open: () => Promise<SessionStore>,
  work: (store: SessionStore) => Promise<T>,
): Promise<WhileNoneRuns<T>> {
  const locks: FileLock[] = []
  try {
    const holders = locksOf(dataFolder).flatMap(({ id, path }) => {
      const lock = lockFile(path)
      if (lock !== undefined) locks.push(lock)
      return lock === undefined ? [id] : []
    })
    const here = holders.filter((id) => id !== undefined)
    if (here.length < holders.length) return { running: here }
    const store = await open()
    try {
      const living = (await store.replicas.list()).filter((replica) => replica.living).map(({ id }) => id)
      if (holders.length === 0 && living.length === 0) return { result: await work(store) }
      return { running: [...new Set([...here, ...living])].toSorted() }
    } finally {
      await store.close()
    }
  } finally {
    for (const lock of locks) lock.release()
  }
}

/** `id`: absent of the only agent of a file. */
function locksOf(dataFolder: string): { id?: string; path: string }[] {
  const run = join(dataFolder, 'run')
  mkdirSync(run, { recursive: true, mode: 0o750 })
  const folder = join(dataFolder, 'replicas')
  const several = (existsSync(folder) ? readdirSync(folder) : []).map((id) => ({
    id,
    run: join(folder, id, 'run'),
  }))
  return [{ run }, ...several.filter((one) => existsSync(one.run))].map((one) => ({
    ...one,
    path: join(one.run, 'agent.lock'),
  }))
}
