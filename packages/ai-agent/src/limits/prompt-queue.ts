/**
 * The line of prompts for the places of this host and for models that take no more requests: who
 * waits learns its place, Stop leaves it, and a restart keeps it. Where there is room it costs two
 * look-ups and writes nothing.
 */
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { messageOf } from '@sandlot/shared/base/errors'
import type { QueueWait } from '@sandlot/shared/chat/queue-wait'
import type { PromptQueueRows } from '@sandlot/storage/usage/prompt-queue'
import type { Log } from '../log.ts'
import { type Ticket, FairScheduler } from './fair-scheduler.ts'

/** The place of one prompt, as its loop uses it. */
export interface PromptSlot {
  /**
   * Before the model is asked. Undefined: it goes at once. Else what it waits for, whenever that
   * changes; ends when its turn has come, or the signal aborts.
   */
  enter(model: string): AsyncGenerator<QueueWait, void> | undefined
  /** The model refused the request and may be asked again in `waitMs`. */
  refused(model: string, waitMs: number): void
  /** The model has begun to answer, or failed otherwise. */
  answered(model: string, well: boolean): void
}

interface PromptQueueParts {
  /** Prompts that run at once; undefined: as many as there are. */
  slots: number | undefined
  /** Absent: a restart forgets the order. */
  rows?: PromptQueueRows
  /** Aborted when the process leaves: what is stored stays as it is. */
  leaving: AbortSignal
  /** Milliseconds; never goes back. */
  clock?: () => number
  log: Log
}

interface Waiter {
  ticket: Ticket
  state: QueueWait
  /** By the clock: for a model that rests. */
  until: number | undefined
  granted: boolean
  changed: PromiseWithResolvers<void>
}

/** The longest time between two checks of what waits. */
const WATCH_MS = 60_000
/** Without a turn for this long, while something waits, the line is logged. */
const STILL_MS = 10 * 60_000

export class PromptQueue {
  readonly #scheduler: FairScheduler
  readonly #rows: PromptQueueRows | undefined
  readonly #leaving: AbortSignal
  readonly #clock: () => number
  readonly #log: Log
  readonly #waiters = new Map<string, Waiter>()
  /** Stored as waiting, and whose they are. */
  readonly #stored = new Map<string, string>()
  /** From before a restart, and not resumed yet. */
  readonly #restored = new Set<string>()
  readonly #writes = new SerialQueue()
  #timer: NodeJS.Timeout | undefined
  /** Since when nothing has gone, as the clock says; undefined: nothing waits. */
  #stillSince: number | undefined
  #stillLogged = false

  constructor({ slots, rows, leaving, clock = () => performance.now(), log }: PromptQueueParts) {
    this.#scheduler = new FairScheduler(slots ?? Number.POSITIVE_INFINITY)
    this.#rows = rows
    this.#leaving = leaving
    this.#clock = clock
    this.#log = log
  }

  /**
   * Restores the state at the end of the process: running prompts resume first, then queued ones in
   * their order. `unfinished`: prompts that had begun and did not wait for a person.
   */
  async restore(unfinished: readonly { promptId: string; person: string }[]): Promise<void> {
    const rows = (await this.#rows?.all()) ?? []
    if (rows.length === 0) return
    const waited = new Set(rows.map(({ promptId }) => promptId))
    for (const { promptId: id, person } of unfinished)
      if (!waited.has(id)) {
        this.#restored.add(id)
        this.#scheduler.restore({ id, person, model: '' }, 'running')
      }
    for (const { promptId: id, person, model, joined, served } of rows) {
      this.#restored.add(id)
      this.#stored.set(id, person)
      this.#scheduler.restore({ id, person, model }, { joined, served })
    }
    this.#admit()
  }

  /** Forget what was restored and does not run. */
  keepOnly(runs: (promptId: string) => boolean): void {
    for (const id of this.#restored) if (!runs(id)) this.leave(id)
    this.#restored.clear()
  }

  /** The slot of one prompt, which waits until the signal aborts. */
  of(who: Pick<Ticket, 'id' | 'person'>, signal: AbortSignal): PromptSlot {
    return {
      enter: (model) => {
        this.#restored.delete(who.id)
        const ticket = { ...who, model }
        return this.#scheduler.ask(ticket, this.#clock()) ? undefined : this.#wait(ticket, signal)
      },
      refused: (model, waitMs) => {
        this.#scheduler.refused({ ...who, model }, this.#clock() + waitMs)
        this.#admit()
      },
      answered: (model, well) => {
        if (!this.#scheduler.isThrottled(model)) return
        this.#scheduler.answered({ ...who, model }, well)
        this.#admit()
      },
    }
  }

  /** The prompt has ended, or waits for a person: its place is free. */
  leave(id: string): void {
    if (this.#leaving.aborted) return
    this.#scheduler.leave(id)
    this.#unstore(id)
    this.#admit()
  }

  /** The queue, in its order. */
  view(): { promptId: string; wait: QueueWait }[] {
    const now = this.#clock()
    return [...this.#states(now)].map(([{ id }, { state, until }]) => ({
      promptId: id,
      wait: withTime(state, until, now),
    }))
  }

  /** Prompts that may run at once; undefined: no limit. */
  get slots(): number | undefined {
    const { slots } = this.#scheduler
    return Number.isFinite(slots) ? slots : undefined
  }

  /** Prompts that have a place or wait for one. */
  get size(): number {
    return this.#scheduler.held + this.#scheduler.size
  }

  /** Resolves when what was to be kept is stored. */
  settled(): Promise<void> {
    return this.#writes.idle()
  }

  async *#wait(ticket: Ticket, signal: AbortSignal): AsyncGenerator<QueueWait, void> {
    const waiter: Waiter = {
      ticket,
      state: { place: 0, of: 0, why: 'places' },
      until: undefined,
      granted: this.#scheduler.joinedAt(ticket.id) === undefined,
      changed: Promise.withResolvers(),
    }
    this.#waiters.set(ticket.id, waiter)
    this.#store(ticket)
    this.#admit()
    try {
      while (!waiter.granted && !signal.aborted) {
        const { promise } = waiter.changed
        const { until } = waiter
        yield withTime(waiter.state, until, this.#clock())
        if (!waiter.granted) await orAborted(promise, signal).catch(() => undefined)
      }
      if (waiter.granted) yield { ...waiter.state, place: 0, of: 0 }
    } finally {
      if (this.#waiters.get(ticket.id) === waiter) this.#waiters.delete(ticket.id)
      if (!waiter.granted) this.leave(ticket.id)
    }
  }

  /**
   * Grants every turn that there is room for, and updates the places of the rest. The clock is read
   * once: what is not due by this reading has a timer by the same one.
   */
  #admit(): void {
    if (this.#leaving.aborted) return
    const now = this.#clock()
    for (const { id } of this.#scheduler.next(now)) {
      this.#stillSince = undefined
      this.#unstore(id)
      const waiter = this.#waiters.get(id)
      if (waiter === undefined) continue
      this.#waiters.delete(id)
      waiter.granted = true
      waiter.changed.resolve()
    }
    this.#notify(now)
    this.#watch(now)
  }

  #notify(now: number): void {
    for (const [{ id }, { state, until }] of this.#states(now)) {
      const waiter = this.#waiters.get(id)
      if (waiter === undefined) continue
      const { state: before } = waiter
      const isSame =
        before.place === state.place &&
        before.of === state.of &&
        before.why === state.why &&
        waiter.until === until
      if (isSame) continue
      Object.assign(waiter, { state, until })
      waiter.changed.resolve()
      waiter.changed = Promise.withResolvers()
    }
  }

  /** Checks again when something is due, and now and then in any case. */
  #watch(now: number): void {
    clearTimeout(this.#timer)
    const { size: waiting, held } = this.#scheduler
    if (waiting === 0) {
      this.#stillSince = undefined
      return
    }
    if (this.#stillSince === undefined) this.#stillLogged = false
    this.#stillSince ??= now
    if (now - this.#stillSince >= STILL_MS && !this.#stillLogged) {
      this.#stillLogged = true
      const fields = { waiting, held, places: this.slots, resting: this.#scheduler.resting(now) }
      this.#log.warn(fields, 'no queued prompt has started for ten minutes')
    }
    const dueIn = Math.max(0, Math.ceil((this.#scheduler.nextAt(now) ?? Infinity) - now))
    this.#timer = setTimeout(() => this.#admit(), Math.min(dueIn, WATCH_MS)).unref()
  }

  *#states(now: number): Generator<[Ticket, { state: QueueWait; until: number | undefined }]> {
    const { slots: limit } = this
    const blocked = this.#scheduler
      .inOrder()
      .map((ticket) => ({ ticket, by: this.#scheduler.blockedBy(ticket, now) }))
    const keyOf = ({ ticket, by }: (typeof blocked)[number]): string =>
      by.why === 'model' ? `model ${ticket.model}` : by.why
    const counts = new Map<string, number>()
    for (const one of blocked) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1)
    const before = new Map<string, number>()
    for (const one of blocked) {
      const key = keyOf(one)
      const place = (before.get(key) ?? 0) + 1
      before.set(key, place)
      const of = counts.get(key) ?? place
      const { ticket, by } = one
      if (by.why === 'model')
        yield [ticket, { state: { place, of, why: by.why, model: ticket.model }, until: by.until }]
      else yield [ticket, { state: { place, of, why: by.why, limit }, until: undefined }]
    }
  }

  // ── Over a restart

  #store({ id, person, model }: Ticket): void {
    const rows = this.#rows
    const joined = this.#scheduler.joinedAt(id)
    if (rows === undefined || joined === undefined) return
    this.#stored.set(id, person)
    const served = this.#scheduler.servedAt(person)
    this.#write(() => rows.put({ promptId: id, person, model, joined, served }))
  }

  #unstore(id: string): void {
    const rows = this.#rows
    const person = this.#stored.get(id)
    if (rows === undefined || person === undefined) return
    this.#stored.delete(id)
    const served = this.#scheduler.servedAt(person)
    this.#write(() => rows.remove(id, person, served))
  }

  /** In their order. What cannot be stored costs only the order after a restart. */
  #write(work: () => Promise<void>): void {
    this.#writes.run(work).catch((error: unknown) => {
      this.#log.warn(
        { error: messageOf(error) },
        'the order of queued prompts could not be stored; a restart loses it',
      )
    })
  }
}

function withTime(state: QueueWait, until: number | undefined, now: number): QueueWait {
  if (until === undefined) return state
  return { ...state, waitMs: Math.max(0, Math.round(until - now)) }
}

/** The queue where there is room for all prompts. */
export const NO_QUEUE = {
  of: () => undefined,
  leave: () => undefined,
  view: (): ReturnType<PromptQueue['view']> => [],
}
