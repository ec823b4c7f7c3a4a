/** The objects of one kind in memory, as a watch of the cluster's API shows them. */
import { setTimeout as sleep } from 'node:timers/promises'

import { SandboxError } from '../../errors.ts'
import { backoffMs } from '#shared/async/backoff'
import { orAborted } from '#shared/async/or-aborted'
import type { KubernetesApi, RemoveOptions, Selection, WatchEvent } from './api.ts'
import { KubernetesError } from './api-error.ts'
import type { KubernetesObject, PatchOperation, Resource } from './objects.ts'

interface UntilOptions {
  /** Completes “did not … in time”. */
  doing: string
  ms: number
  signal?: AbortSignal | undefined
}

/**
 * Selected objects of one resource. What is written through it is seen by its readers at once, and
 * no older state after that. Writes of others are seen as the watch shows them: where two must not
 * do the same, ask the API. Everything rejects with a `SandboxError`.
 */
export interface Cache<T extends KubernetesObject> {
  list(): Promise<T[]>
  get(name: string): Promise<T | undefined>
  /** Asks the API, also for one that is not selected, and believes its answer. */
  ask(name: string, signal?: AbortSignal): Promise<T | undefined>
  create(object: T, signal?: AbortSignal): Promise<T>
  patch(name: string, operations: readonly PatchOperation[], signal?: AbortSignal): Promise<T>
  /** See `KubernetesApi`. */
  remove(name: string, options?: RemoveOptions, signal?: AbortSignal): Promise<T | undefined>
  /**
   * Resolves with the object, or with undefined where there is none, once `holds` is true of it.
   * Rejects with what `holds` throws, or after `ms`.
   */
  until(
    name: string,
    holds: (object: T | undefined) => boolean,
    options: UntilOptions,
  ): Promise<T | undefined>
  /** Ends the watch. */
  close(): void
}

/** The server ends a watch after this. */
const WATCH_SECONDS = { least: 240, spread: 180 }
/** A watch that ends sooner counts as a failure. */
const SHORT_MS = 1_000
/** Bookmarks come about once a minute, however quiet the cluster is. */
const SILENT_MS = 90_000
const RETRY = { firstMs: 250, longestMs: 2_000 }
/** Without a watch for so long, readers wait for a list. */
const STALE_MS = 5_000
/** A waiting reader asks the API itself: a watch may lag. */
const ASK_MS = 5_000

/** Contacts nothing before the first use. */
export function createCache<T extends KubernetesObject>(
  api: KubernetesApi,
  resource: Resource<T>,
  selection: Selection,
  silentMs = SILENT_MS,
): Cache<T> {
  return new WatchedCache(api, resource, selection, silentMs)
}

class WatchedCache<T extends KubernetesObject> implements Cache<T> {
  readonly #api: KubernetesApi
  readonly #resource: Resource<T>
  readonly #selection: Selection
  readonly #silentMs: number
  readonly #objects = new Map<string, T>()
  /** By uid: removed ones that a list or the watch may still show, and the number of lists then. */
  readonly #gone = new Map<string, number>()
  readonly #waiting = new Set<() => void>()
  readonly #closed = new AbortController()
  /** The newest resource version that was seen. */
  #newest = '0'
  #lists = 0
  #listing: Promise<string> | undefined
  #state: 'idle' | 'unlisted' | 'listed' = 'idle'
  /** Set while the watch is broken. */
  #brokenSince: number | undefined

  constructor(api: KubernetesApi, resource: Resource<T>, selection: Selection, silentMs: number) {
    this.#api = api
    this.#resource = resource
    this.#selection = selection
    this.#silentMs = silentMs
  }

  async list(): Promise<T[]> {
    await this.#current()
    return [...this.#objects.values()]
  }

  async get(name: string): Promise<T | undefined> {
    await this.#current()
    return this.#objects.get(name)
  }

  async ask(name: string, signal?: AbortSignal): Promise<T | undefined> {
    const known = this.#objects.get(name)
    const object = await this.#api.get(this.#resource, name, signal)
    if (object === undefined) this.#forget(known)
    else if (isSelected(object, this.#selection)) this.#apply(object)
    return object
  }

  async create(object: T, signal?: AbortSignal): Promise<T> {
    const created = await this.#api.create(this.#resource, object, signal)
    this.#apply(created)
    return created
  }

  async patch(name: string, operations: readonly PatchOperation[], signal?: AbortSignal): Promise<T> {
    const before = this.#objects.get(name)
    try {
      const patched = await this.#api.patch(this.#resource, name, operations, signal)
      this.#apply(patched)
      return patched
    } catch (error) {
      if (error instanceof KubernetesError && error.status === 404) this.#forget(before)
      throw error
    }
  }

  async remove(name: string, options?: RemoveOptions, signal?: AbortSignal): Promise<T | undefined> {
    const before = this.#objects.get(name)
    const removed = await this.#api.remove(this.#resource, name, options, signal)
    if (removed) this.#apply(removed)
    else this.#forget(before)
    return removed
  }

  async until(
    name: string,
    holds: (object: T | undefined) => boolean,
    { doing, ms, signal }: UntilOptions,
  ): Promise<T | undefined> {
    const deadline = performance.now() + ms
    await this.#current()
    for (;;) {
      const object = this.#objects.get(name)
      if (holds(object)) return object
      const left = deadline - performance.now()
      if (left <= 0)
        throw new SandboxError(
          'engine_unavailable',
          `The cluster did not ${doing} within ${Math.round(ms / 1_000)} s. Try again; if it persists, look at the events of its namespace.`,
        )
      if (!(await this.#change(Math.min(left, ASK_MS), signal))) await this.#askAgain(name, signal)
    }
  }

  close(): void {
    this.#closed.abort(new SandboxError('cancelled', 'The cluster is no longer watched.'))
  }

  async #current(): Promise<void> {
    this.#closed.signal.throwIfAborted()
    if (this.#state === 'idle') {
      this.#state = 'unlisted'
      void this.#run()
    }
    const isStale = this.#brokenSince !== undefined && performance.now() - this.#brokenSince > STALE_MS
    if (this.#state === 'unlisted' || isStale) await this.#relist()
  }

  /** Lists and watches until it is closed. Its failures are those of the readers' own lists. */
  async #run(): Promise<void> {
    const { signal } = this.#closed
    let failures = 0
    let from: string | undefined
    while (!signal.aborted) {
      const begun = performance.now()
      const start = from
      try {
        from ??= await this.#relist()
        const timeoutSeconds = WATCH_SECONDS.least + Math.floor(Math.random() * WATCH_SECONDS.spread)
        const options = { resourceVersion: from, timeoutSeconds, silentMs: this.#silentMs }
        for await (const event of this.#api.watch(this.#resource, this.#selection, options, signal)) {
          this.#take(event)
          from = versionOf(event.object)
          this.#brokenSince = undefined
          failures = 0
        }
        // A server whose store was restored may wait for a version that is far ahead.
        if (from === start) from = undefined
        if (performance.now() - begun < SHORT_MS) failures += 1
      } catch {
        failures += 1
        this.#brokenSince ??= performance.now()
        from = undefined
      }
      if (failures > 0 && !signal.aborted) await this.#pause(backoffMs(failures, RETRY, Math.random))
    }
  }

  #take(event: WatchEvent<T>): void {
    if (event.type === 'BOOKMARK') this.#newest = newer(this.#newest, versionOf(event.object))
    else if (event.type === 'DELETED') this.#deleted(event.object)
    else this.#apply(event.object)
  }

  #deleted(object: T): void {
    this.#newest = newer(this.#newest, versionOf(object))
    const { name, uid = '' } = object.metadata
    // A list that runs may show it yet.
    if (this.#listing) this.#gone.set(uid, this.#lists)
    else this.#gone.delete(uid)
    const known = this.#objects.get(name)
    if (known?.metadata.uid === uid && !isNewer(versionOf(known), versionOf(object)))
      this.#objects.delete(name)
    this.#notify()
  }

  #apply(object: T): void {
    this.#newest = newer(this.#newest, versionOf(object))
    const { name, uid = '' } = object.metadata
    const known = this.#objects.get(name)
    if (this.#gone.has(uid) || (known && isNewer(versionOf(known), versionOf(object)))) return
    this.#objects.set(name, object)
    this.#notify()
  }

  /** The API says that there is none of that name. */
  #forget(known: T | undefined): void {
    if (!known) return
    const { name, uid = '' } = known.metadata
    this.#gone.set(uid, this.#lists)
    if (this.#objects.get(name)?.metadata.uid === uid) this.#objects.delete(name)
    this.#notify()
  }

  #relist(): Promise<string> {
    this.#listing ??= this.#readAll().finally(() => {
      this.#listing = undefined
    })
    return this.#listing
  }

  async #readAll(): Promise<string> {
    const turn = ++this.#lists
    const before = this.#newest
    const { items, resourceVersion } = await this.#api.list(
      this.#resource,
      this.#selection,
      this.#closed.signal,
    )
    if (isNewer(before, resourceVersion)) {
      // The cluster's store was restored from a backup: what was known is not older news.
      this.#objects.clear()
      this.#gone.clear()
      this.#newest = resourceVersion
    }
    const names = new Set(items.map(({ metadata }) => metadata.name))
    for (const [name, object] of this.#objects)
      if (!names.has(name) && !isNewer(versionOf(object), resourceVersion)) this.#objects.delete(name)
    for (const [uid, lists] of this.#gone) if (lists < turn) this.#gone.delete(uid)
    for (const item of items) this.#apply(item)
    this.#newest = newer(this.#newest, resourceVersion)
    this.#state = 'listed'
    this.#brokenSince = undefined
    this.#notify()
    return resourceVersion
  }

  async #askAgain(name: string, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.ask(name, signal)
    } catch (error) {
      // A server without an answer may be back before the reader's own deadline.
      const isRefusal = error instanceof KubernetesError && !error.unreachable
      if (isRefusal || signal?.aborted || this.#closed.signal.aborted) throw error
    }
  }

  #notify(): void {
    for (const wake of this.#waiting) wake()
  }

  /** True after the next change, false after `ms`. */
  async #change(ms: number, signal: AbortSignal = this.#closed.signal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const wake = (): void => resolve(true)
    const timer = setTimeout(() => resolve(false), ms)
    this.#waiting.add(wake)
    try {
      return await orAborted(
        promise,
        AbortSignal.any([signal, this.#closed.signal]),
        () => new SandboxError('cancelled', 'Stopped waiting for the cluster.'),
      )
    } finally {
      this.#waiting.delete(wake)
      clearTimeout(timer)
    }
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#closed
    await orAborted(sleep(ms), signal).catch(() => signal.aborted)
  }
}

const versionOf = ({ metadata }: KubernetesObject): string => metadata.resourceVersion ?? '0'
/** Resource versions are decimal numbers of any length. */
const isNewer = (a: string, b: string): boolean => (a.length === b.length ? a > b : a.length > b.length)
const newer = (a: string, b: string): string => (isNewer(a, b) ? a : b)

/** Reads a selection by equal labels alone, such as `a=b,c=d`. */
function isSelected({ metadata }: KubernetesObject, { labels = '' }: Selection): boolean {
  return labels.split(',').every((pair) => {
    const [name = '', value] = pair.split('=')
    return name === '' || metadata.labels?.[name] === value
  })
}
