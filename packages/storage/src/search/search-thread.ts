/**
 * Search in an SQLite file on a thread, because its statements would block the caller's. One search
 * runs at a time, in fair order of users. The first search starts the thread, and the next one
 * after a failure.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Worker } from 'node:worker_threads'
import { FairQueue } from '@sandlot/shared/async/fair-queue'
import type { SearchQuery } from '@sandlot/shared/search/search'
import { type ErrorCode, SandlotError } from '@sandlot/shared/base/errors'
import type { ReaderOf } from '../shares/shares.ts'
import { StorageError, type StorageErrorCode } from '../storage-error.ts'
import type { FoundTexts } from './search.ts'
import { endThread, startThread, threadFile } from '../database/thread.ts'

export interface SearchAsked {
  who: ReaderOf
  query: SearchQuery
}

export type SearchAnswer =
  | { found: FoundTexts }
  | { storage: [StorageErrorCode, string] }
  | { refused: [ErrorCode, string] }
  | { bug: unknown }

/** Searches of one user: more than a page starts at once. */
const MOST_WAITING = 32

export class SearchThread {
  readonly #path: string
  readonly #migrations: readonly string[]
  readonly #file: URL
  readonly #turns = new FairQueue(1)
  /** The thread is shared: it begins outside of any request's context. */
  readonly #outside = AsyncLocalStorage.snapshot()
  #worker: Worker | undefined
  #closed = false

  /** `file`: the program of the thread. Tests let it fail. */
  constructor(
    path: string,
    migrations: readonly string[],
    file = threadFile('search-worker', import.meta.url),
  ) {
    this.#path = path
    this.#migrations = migrations
    this.#file = file
  }

  /**
   * Throws like `searchTexts`; `not_ready` if the thread ended before its answer, `rate_limited`
   * for too many searches of one user, and the errors of opening the file.
   */
  async search(who: ReaderOf, query: SearchQuery): Promise<FoundTexts> {
    if (this.#turns.waitingOf(who.id) >= MOST_WAITING)
      throw new SandlotError(
        'rate_limited',
        'Too many searches of yours wait already. Try again in a moment.',
      )
    const given = await this.#turns.run(who.id, () => this.#ask({ who, query }))
    if ('found' in given) return given.found
    if ('storage' in given) throw new StorageError(...given.storage)
    if ('refused' in given) throw new SandlotError(...given.refused)
    throw given.bug
  }

  /** Running and waiting searches are refused with `not_ready`. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#worker !== undefined) await endThread(this.#worker)
  }

  async #ask(asked: SearchAsked): Promise<SearchAnswer> {
    if (this.#closed) throw interrupted(new Error('the chats are closed'))
    const worker = (this.#worker ??= this.#outside(() => this.#start()))
    // Only a running search keeps the process alive.
    worker.ref()
    const ended = Promise.withResolvers<SearchAnswer>()
    const failed = (error: unknown): void => ended.reject(interrupted(error))
    const exited = (code: number): void => failed(new Error(`the search thread exited with ${code}`))
    worker.once('message', ended.resolve).once('error', failed).once('exit', exited)
    try {
      worker.postMessage(asked)
      return await ended.promise
    } finally {
      worker.off('message', ended.resolve).off('error', failed).off('exit', exited)
      worker.unref()
    }
  }

  #start(): Worker {
    const worker = startThread(this.#file, this.#path, this.#migrations)
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined
    }
    // Also between two searches, when nothing else listens.
    return worker.on('error', forget).on('exit', forget)
  }
}

function interrupted(cause: unknown): SandlotError {
  return new SandlotError('not_ready', 'The search was interrupted. Search again in a moment.', { cause })
}
