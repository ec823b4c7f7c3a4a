/** Server state of a view: asked for, asked for again, changed. */
import { messageOf } from '@sandlot/shared/base/errors'
import { createStore } from 'zustand/vanilla'
import { reconnectMs } from '../net/backoff.ts'
import { ApiError } from '../net/http.ts'

interface ResourceState<T> {
  /** The last answer; null: none yet. */
  data: T | null
  /** The key of that answer. */
  key: string | null
  /** The failure of the last question. */
  unread: string | null
  /** The failure of the last change. */
  refused: string | null
  /** A change is under way. */
  busy: boolean
}

type Ask<T> = (signal: AbortSignal) => Promise<T>
/** Milliseconds to the next question; undefined: there is none. */
type Every<T> = (data: T | null) => number | undefined

/** Failures that pass: the question is asked again. */
const PASSING: ReadonlySet<string> = new Set(['network', 'agent_unavailable'])

/** Shows the answer to the last question, in whatever order answers arrive. */
export class Resource<T> {
  readonly store = createStore<ResourceState<T>>(() => ({
    data: null,
    key: null,
    unread: null,
    refused: null,
    busy: false,
  }))
  #asked: { key: string; ask: Ask<T>; everyMs: Every<T> | undefined } | undefined
  #questions = 0
  #changes = 0
  #failures = 0
  #running = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined

  /** Asks after `pauseMs`, and again so long after each answer, while the page is visible. */
  start(key: string, ask: Ask<T>, { pauseMs = 0, everyMs }: { pauseMs?: number; everyMs?: Every<T> } = {}) {
    this.stop()
    this.#asked = { key, ask, everyMs }
    this.store.setState({ unread: null, refused: null })
    if (pauseMs > 0) this.#timer = setTimeout(() => void this.load(), pauseMs)
    else void this.load()
  }

  /** Ends the request and all that would follow it. */
  stop(): void {
    this.#asked = undefined
    this.#failures = 0
    this.#running.abort()
    clearTimeout(this.#timer)
  }

  /** Never rejects. */
  async load(): Promise<void> {
    if (this.#asked === undefined) return
    const { key, ask, everyMs } = this.#asked
    this.#questions++
    this.#running.abort()
    clearTimeout(this.#timer)
    const { signal } = (this.#running = new AbortController())
    let retryMs: number | undefined
    try {
      const data = await ask(signal)
      if (signal.aborted) return
      this.#failures = 0
      this.store.setState({ data, key, unread: null })
    } catch (error) {
      if (signal.aborted) return
      this.store.setState({ unread: messageOf(error) })
      if (error instanceof ApiError && PASSING.has(error.code)) retryMs = reconnectMs(++this.#failures)
    }
    this.#loadIn(everyMs?.(this.store.getState().data) ?? retryMs)
  }

  /**
   * Runs `work` and shows its answer. Without one, after a later question and after a conflict it
   * loads again. Never rejects.
   */
  async change(work: () => Promise<T | void>): Promise<void> {
    const question = ++this.#questions
    this.#changes++
    this.store.setState({ busy: true, refused: null })
    try {
      const data = await work()
      if (data === undefined || question < this.#questions) await this.load()
      else this.show(data)
    } catch (error) {
      this.store.setState({ refused: messageOf(error) })
      if (error instanceof ApiError && error.code === 'conflict') await this.load()
    } finally {
      this.store.setState({ busy: --this.#changes > 0 })
    }
  }

  /** Replaces the answer, and ends a question that was asked before. */
  show(data: T): void {
    if (this.#asked === undefined) return
    const { key, everyMs } = this.#asked
    this.#running.abort()
    this.store.setState({ data, key, unread: null })
    this.#loadIn(everyMs?.(data))
  }

  /** Changes what is shown until the next answer. */
  update(to: (now: T) => T): void {
    const { data } = this.store.getState()
    if (data !== null) this.store.setState({ data: to(data) })
  }

  #loadIn(ms: number | undefined): void {
    clearTimeout(this.#timer)
    if (ms === undefined) return
    this.#timer = setTimeout(() => {
      if (document.visibilityState === 'visible') void this.load()
      else this.#loadIn(ms)
    }, ms)
  }
}
