/**
 * The search of a file of SQLite, whose statements would hold the thread that asks. One search
 * runs at a time; people who wait take turns. The thread is started by the first search, and by the
 * next one after it has failed.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Worker } from 'node:worker_threads'
import { FairQueue } from '@sandlot/shared/async/fair-queue'
import type { SearchQuery } from '@sandlot/shared/chat/search'
import { type ErrorCode, SandlotError } from '@sandlot/shared/base/errors'
import type { ReaderOf } from '../shares/shares.ts'
import { StorageError, type StorageErrorCode } from '../storage-error.ts'
import type { FoundTexts } from '../search/search.ts'

export interface SearchAsked {
  who: ReaderOf
  query: SearchQuery
}

export type SearchAnswer =
  | { found: FoundTexts }
  | { storage: [StorageErrorCode, string] }
  | { refused: [ErrorCode, string] }
  | { bug: unknown }

const isSource = import.meta.url.endsWith('.ts')
const WORKER = new URL(isSource ? './search-worker.ts' : './search-worker.js', import.meta.url)

/** Searches of one person: more than a page starts while one runs. */
const MOST_WAITING = 32

export class SearchThread {
  readonly #path: string
  readonly #file: URL
  readonly #turns = new FairQueue(1)
  /** The thread is of all who search: it begins in no one's context. */
  readonly #outside = AsyncLocalStorage.snapshot()
  #worker: Worker | undefined
  #closed = false

  /** `file`: the program of the thread. Tests let it fail. */
  constructor(path: string, file: URL = WORKER) {
    this.#path = path
    this.#file = file
  }

  /**
   * As `searchTexts`. Throws `not_ready` where the thread ended before it had an answer,
   * `rate_limited` where too many of one person wait, and what opening the file throws.
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

  /** Searches that run or wait are refused with `not_ready`. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#worker?.terminate()
  }

  async #ask(asked: SearchAsked): Promise<SearchAnswer> {
    if (this.#closed) throw interrupted(new Error('the chats are closed'))
    const worker = (this.#worker ??= this.#outside(() => this.#start()))
    // Only a search that runs keeps the process.
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
    const worker = new Worker(this.#file, {
      workerData: { path: this.#path },
      execArgv: isSource ? ['--conditions=sandlot-source'] : [],
    })
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
