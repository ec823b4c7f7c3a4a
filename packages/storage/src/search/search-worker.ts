/** Searches a file of SQLite on a thread of its own, by a read-only handle of its own. */
import { parentPort, workerData } from 'node:worker_threads'
import { SandlotError } from '@sandlot/shared/errors'
import { openReader } from '../database/database.ts'
import { asStorageError } from '../database/sqlite-file.ts'
import { type SessionsSchema, sessionsMigrations } from '../sessions/schema.ts'
import { StorageError } from '../storage-error.ts'
import { searchTexts } from './search.ts'
import type { SearchAnswer, SearchAsked } from './search-thread.ts'

const { path } = workerData as { path: string }
const open = () => openReader<SessionsSchema>(path, sessionsMigrations, { waitMs: 0 })
let opened: ReturnType<typeof open> | undefined

async function answer({ who, query }: SearchAsked): Promise<SearchAnswer> {
  try {
    opened ??= open()
    return { found: await searchTexts((await opened).db, who, query) }
  } catch (thrown) {
    const error = asStorageError(path, thrown)
    // A thread hands over neither classes nor codes.
    if (error instanceof StorageError) {
      if (error.code === 'not_migrated' || error.code === 'cannot_open') opened = undefined
      return { storage: [error.code, error.message] }
    }
    if (error instanceof SandlotError) return { refused: [error.code, error.message] }
    return { bug: error }
  }
}

parentPort?.on('message', (asked: SearchAsked) => {
  void answer(asked).then((given) => parentPort?.postMessage(given))
})
