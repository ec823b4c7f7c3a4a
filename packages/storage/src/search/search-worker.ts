/** Searches an SQLite file on its own thread, with its own read-only handle. */
import { parentPort } from 'node:worker_threads'
import { SandlotError } from '@sandlot/shared/base/errors'
import { openReader } from '../database/database.ts'
import { asStorageError, loadSqlite } from '../database/sqlite-file.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { StorageError } from '../storage-error.ts'
import { threadDatabase, threadLoaded } from '../database/thread.ts'
import { searchTexts } from './search.ts'
import type { SearchAnswer, SearchAsked } from './search-thread.ts'

const { path, migrations } = threadDatabase()
loadSqlite()
threadLoaded()
const open = () => openReader<SessionsSchema>(path, migrations, { waitMs: 0 })
/** Undefined until it was opened; one search runs at a time. */
let file: Awaited<ReturnType<typeof open>> | undefined

async function answer({ who, query }: SearchAsked): Promise<SearchAnswer> {
  try {
    file ??= await open()
    return { found: await searchTexts(file.db, who, query) }
  } catch (thrown) {
    const error = asStorageError(path, thrown)
    // Messages between threads carry neither classes nor codes.
    if (error instanceof StorageError) return { storage: [error.code, error.message] }
    if (error instanceof SandlotError) return { refused: [error.code, error.message] }
    return { bug: error }
  }
}

parentPort?.on('message', (asked: SearchAsked) => {
  void answer(asked).then((given) => parentPort?.postMessage(given))
})
