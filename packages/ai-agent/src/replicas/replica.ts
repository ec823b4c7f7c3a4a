/**
 * One of several ai-agents on one database: it sends a heartbeat, has the people that it has
 * claimed, takes over those of dead agents, and gives its own up when it drains. Its view may be
 * stale; the database decides, and refuses the writes of an earlier owner.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@sandlot/shared/base/errors'
import type { Beat, BeatReport, BeatTimes, Beats } from '@sandlot/storage/replicas/beats'
import { bootMs } from '@sandlot/storage/replicas/lease'
import { type ReplicaRows, SCHEDULES } from '@sandlot/storage/replicas/replicas'
import { isNotOwner, isOutage } from '@sandlot/storage/storage-error'
import type { Log } from '../log.ts'
import { NotOwnerError, type Ownership, type Reload } from './ownership.ts'

/** Milliseconds. */
export interface ReplicaTimes extends BeatTimes {
  /** Between two looks for people without an owner. */
  sweep: number
  /** For sessions to leave, in a drain. */
  drain: number
}

/** A blocked agent is taken over (`stuck` and `LIVING_MS`) before the watchdog ends it. */
const TIMES: ReplicaTimes = {
  heartbeat: 3_000,
  retry: 500,
  stale: 6_000,
  stuck: 10_000,
  sweep: 1_000,
  drain: 25_000,
}
/** Milliseconds for the sessions of a person who was lost to leave before their sandbox does. */
const LEAVE_MS = 3_000
/** People that are claimed in one look; the rest at the next. */
const MOST_CLAIMS = 64
/** Pause before prompts are resumed again where the store failed again soon. */
const RESUME_MS = 1_000
const MOST_RESUME_MS = 60_000

interface ReplicaParts {
  id: string
  /** The address for other processes. */
  address: { url: string; certificate?: string | undefined }
  version: string
  /** Id of the engine with its sandboxes; undefined: not known. Never rejects. */
  engine: () => Promise<string | undefined>
  rows: ReplicaRows
  log: Log
  times?: Partial<ReplicaTimes>
  onChange: (what: string, reload: Reload) => void
  stopListening: () => Promise<void>
}

/** The work for owned people. */
interface PeopleWork {
  /** Resumes the unfinished prompts of these people, and answers how many. */
  resume(userIds: ReadonlySet<string>): Promise<number>
  /** Their sessions leave memory; what runs in their sandboxes runs on. */
  release(userId: string): Promise<void>
}

/**
 * Why their prompts are unfinished: given up in order, broken off by the end of an earlier process
 * of this replica, or by that of another one.
 */
type Origin = 'in order' | 'own' | 'other'

interface Held {
  epoch: number
  /** In the time of `bootMs`. */
  since: number
  origin: Origin
}

export class Replica implements Ownership {
  readonly id: string
  readonly #parts: ReplicaParts
  readonly #times: ReplicaTimes
  readonly #held = new Map<string, Held>()
  readonly #claiming = new Map<string, Promise<void>>()
  readonly #releasing = new Map<string, Promise<void>>()
  readonly #lost: ((userId: string) => void)[] = []
  readonly #toResume = new Set<string>()
  readonly #closing = new AbortController()
  #work: PeopleWork | undefined
  #engine: string | undefined
  #state: 'new' | 'on' | 'draining' | 'replaced' = 'new'
  #beats: Beats | undefined
  /** True if the last heartbeat failed. */
  #beatFailed = false
  #registering: Promise<void> | undefined
  #storeFailed: { at: number; pauseMs: number } | undefined
  #mustResume = false
  #resuming: Promise<void> | undefined
  /** Prompts, so far. */
  #resumed = 0
  #draining: Promise<void> | undefined
  #polling: Promise<void> | undefined
  #wake = (): void => undefined

  constructor(parts: ReplicaParts) {
    this.id = parts.id
    this.#parts = parts
    this.#times = { ...TIMES, ...parts.times }
  }

  // ── Ownership
  // ─────────────────────────────────────────────────────────────────────────────────────────

  async claim(userId: string): Promise<void> {
    if (this.has(userId)) return
    const known = this.#claiming.get(userId)
    if (known !== undefined) return known
    const claiming = this.#claim(userId).finally(() => this.#claiming.delete(userId))
    this.#claiming.set(userId, claiming)
    return claiming
  }

  async confirm(userId: string): Promise<boolean> {
    try {
      const held = this.#held.get(userId)
      const claim = await this.#parts.rows.claim(userId)
      if (held === undefined) return claim?.replicaId === this.id && (await this.#isClaimed(userId))
      const isOurs = claim?.replicaId === this.id && claim.epoch === held.epoch
      if (!isOurs && this.#held.get(userId) === held) this.#lose(userId)
      return isOurs && this.has(userId)
    } catch (error) {
      this.#parts.log.warn({ userId, error: messageOf(error) }, 'the owner of a user could not be read')
      return this.has(userId)
    }
  }

  has(userId: string): boolean {
    return this.#state === 'on' && this.#isFresh && this.#held.has(userId)
  }

  leads(): boolean {
    return this.has(SCHEDULES)
  }

  onLost(listener: (userId: string) => void): void {
    this.#lost.push(listener)
  }

  onChange(what: string, reload: Reload): void {
    this.#parts.onChange(what, reload)
  }

  /**
   * True if resuming a prompt of this person counts towards its being given up. Undefined: an
   * earlier process of this replica had begun it.
   */
  countsResume(userId: string): boolean | undefined {
    const origin = this.#held.get(userId)?.origin
    return origin === 'own' ? undefined : origin !== 'in order'
  }

  /**
   * To be called with each failure of the store. True: what was under way is resumed by itself when
   * the store answers again, so its session is to be released. `not_owner`: unless its person is
   * another's, as where the database has lost its last commits.
   */
  resumesAfter(error: unknown): boolean {
    if (!isOutage(error) && !isNotOwner(error)) return false
    const now = bootMs()
    // A store that fails each time must not have the model asked each time.
    const wasSoon = this.#storeFailed !== undefined && now - this.#storeFailed.at < MOST_RESUME_MS
    if (!this.#mustResume) {
      const pauseMs = wasSoon
        ? Math.min(MOST_RESUME_MS, (this.#storeFailed?.pauseMs ?? 0) * 2 + RESUME_MS)
        : 0
      this.#storeFailed = { at: now, pauseMs }
    }
    this.#mustResume = true
    for (const held of this.#held.values()) held.origin = 'in order'
    this.#beats?.beatSoon()
    return true
  }

  // ── Life
  // ──────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * From now on it lives, and takes people over. Resolves when the first are, with the number of
   * their prompts. Rejects where another agent that lives has another engine.
   */
  async begin(work: PeopleWork): Promise<number> {
    this.#work = work
    this.#engine = await this.#parts.engine()
    await this.#register()
    await Promise.allSettled(this.#claiming.values())
    await this.#sweep()
    await this.#resume()
    this.#polling = this.#poll()
    return this.#resumed
  }

  /** Look for people without an owner now. */
  wake(): void {
    this.#wake()
  }

  /**
   * Gives everybody up in order: it takes no new people, the sessions leave, and others take them
   * over. Idempotent. Never rejects.
   */
  drain(): Promise<void> {
    this.#draining ??= this.#drain()
    return this.#draining
  }

  /** After `drain`: the row goes. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#wake()
    await this.#parts.stopListening()
    await Promise.all([this.#polling, this.#registering])
    await this.#beats?.stop()
    if (this.#state === 'new' || this.#state === 'replaced') return
    await this.#parts.rows.unregister().catch((error: unknown) => {
      this.#parts.log.warn({ error: messageOf(error) }, 'this replica could not be unregistered')
    })
  }

  get #isFresh(): boolean {
    return this.#beats?.isFresh === true
  }

  async #register(): Promise<void> {
    const { rows, version, address, log } = this.#parts
    await this.#beats?.stop()
    const since = bootMs()
    const unknown = await rows.register({ id: this.id, version, engine: this.#engine, ...address })
    if (this.#engine !== undefined && unknown.length > 0)
      log.warn(
        { replicas: unknown },
        'the engine or cluster of these agents is unknown; all agents need the same one',
      )
    this.#beats = await rows.startBeats(this.#times, since, (report) => this.#onReport(report))
    if (this.#state === 'new') this.#state = 'on'
    const at = bootMs()
    this.#onBeat(at, await rows.heartbeat())
  }

  async #claim(userId: string): Promise<void> {
    await this.#releasing.get(userId)
    if (this.#state !== 'on' || !this.#isFresh) throw new NotOwnerError(undefined)
    const claim = await this.#parts.rows.claim(userId)
    if (claim === undefined) throw new NotOwnerError(undefined)
    if (claim.replicaId !== this.id) {
      if (this.#held.has(userId)) this.#lose(userId)
      throw new NotOwnerError(claim.replicaId)
    }
    const held = this.#held.get(userId)
    if (held?.epoch === claim.epoch) return
    const origin = claim.before === null ? 'in order' : claim.before === this.id ? 'own' : 'other'
    this.#held.set(userId, { epoch: claim.epoch, since: bootMs(), origin })
    if (userId === SCHEDULES) return
    this.#toResume.add(userId)
    void this.#resume()
  }

  async #isClaimed(userId: string): Promise<boolean> {
    try {
      await this.claim(userId)
      return true
    } catch (error) {
      if (error instanceof NotOwnerError) return false
      throw error
    }
  }

  // ── Heartbeat
  // ─────────────────────────────────────────────────────────────────────────────────────────

  #onReport(report: BeatReport): void {
    if ('failure' in report && !this.#beatFailed)
      this.#parts.log.warn({ error: report.failure }, 'the heartbeat of this replica failed')
    this.#beatFailed = 'failure' in report
    if ('beat' in report) this.#onBeat(report.at, report.beat)
  }

  /** Never rejects. */
  async #registerAgain(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#register()
        break
      } catch (error) {
        this.#onReport({ failure: messageOf(error) })
        await sleep(this.#times.retry)
      }
    }
    this.#registering = undefined
  }

  /** `at`: when it was sent. */
  #onBeat(at: number, beat: Beat): void {
    const { log } = this.#parts
    if (beat === 'replaced') {
      this.#state = 'replaced'
      log.warn(
        { replica: this.id },
        'another agent uses this SANDLOT_REPLICA now, so this one serves no users; give each agent its own',
      )
      for (const userId of this.#held.keys()) this.#lose(userId)
      return void this.#beats?.stop()
    }
    if (beat === 'forgotten') {
      log.warn({ replica: this.id }, 'the database has lost this replica; registering it again')
      for (const userId of this.#held.keys()) this.#lose(userId)
      this.#registering ??= this.#registerAgain()
      return
    }
    const owned = new Map(beat.owned.map(({ userId, epoch }) => [userId, epoch]))
    for (const [userId, { epoch, since }] of this.#held)
      if (since < at && owned.get(userId) !== epoch) this.#lose(userId)
    if (beat.draining) return void this.drain()
    if (this.#state !== 'on') return
    // From an earlier process of this replica, or claimed while the answer was lost.
    for (const userId of owned.keys())
      if (!this.#held.has(userId) && !this.#releasing.has(userId))
        void this.#isClaimed(userId).catch(() => {})
    if (!this.#mustResume || at - (this.#storeFailed?.at ?? 0) < (this.#storeFailed?.pauseMs ?? 0)) return
    this.#mustResume = false
    for (const userId of this.#held.keys()) if (userId !== SCHEDULES) this.#toResume.add(userId)
    void this.#resume()
  }

  /** They are another's. */
  #lose(userId: string): void {
    this.#held.delete(userId)
    this.#parts.rows.lose(userId)
    if (userId === SCHEDULES) return
    this.#parts.log.info({ userId }, 'another replica owns this user now')
    void this.#release(userId, LEAVE_MS)
  }

  /** Never rejects. */
  #release(userId: string, withinMs: number): Promise<void> {
    const known = this.#releasing.get(userId)
    if (known !== undefined) return known
    const work = async (): Promise<void> => {
      const left = this.#work?.release(userId).catch((error: unknown) => {
        this.#parts.log.warn({ userId, error: messageOf(error) }, 'sessions of a user could not be released')
      })
      await Promise.race([left, sleep(withinMs, undefined, { ref: false })])
      for (const listener of this.#lost) listener(userId)
    }
    const releasing = work().finally(() => this.#releasing.delete(userId))
    this.#releasing.set(userId, releasing)
    return releasing
  }

  // ── Taking over
  // ───────────────────────────────────────────────────────────────────────────────────────

  async #poll(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      const pause = Promise.withResolvers<void>()
      const timer = setTimeout(pause.resolve, this.#times.sweep)
      this.#wake = pause.resolve
      await pause.promise
      clearTimeout(timer)
      if (signal.aborted) return
      await this.#sweep()
    }
  }

  /** Never rejects. */
  async #sweep(): Promise<void> {
    if (this.#state !== 'on' || !this.#isFresh) return
    try {
      const { userIds, schedules, replicas } = await this.#parts.rows.unowned()
      if (schedules) await this.#isClaimed(SCHEDULES)
      // Others look at the same moment, and take theirs.
      const share = Math.min(MOST_CLAIMS, Math.ceil(userIds.length / Math.max(1, replicas)))
      const some = userIds.toSorted(() => Math.random() - 0.5).slice(0, share)
      await Promise.all(some.map((userId) => this.#isClaimed(userId)))
    } catch (error) {
      this.#parts.log.warn({ error: messageOf(error) }, 'users without an owner could not be read; retrying')
    }
    if (this.#toResume.size > 0) await this.#resume()
  }

  /** A failed resume is retried at the next poll. Never rejects. */
  #resume(): Promise<void> {
    this.#resuming ??= this.#resumeAll().finally(() => {
      this.#resuming = undefined
    })
    return this.#resuming
  }

  async #resumeAll(): Promise<void> {
    const { log } = this.#parts
    while (this.#toResume.size > 0) {
      // Those that are claimed in this turn go together.
      await sleep(0)
      const some = new Set([...this.#toResume].filter((userId) => this.#held.has(userId)))
      this.#toResume.clear()
      try {
        this.#resumed += (await this.#work?.resume(some)) ?? 0
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'unfinished prompts could not be resumed yet')
        for (const userId of some) this.#toResume.add(userId)
        return
      }
    }
  }

  // ── Drain
  // ─────────────────────────────────────────────────────────────────────────────────────────────

  async #drain(): Promise<void> {
    const { rows, log } = this.#parts
    if (this.#state !== 'on') return
    const started = performance.now()
    this.#state = 'draining'
    const warn = (error: unknown): void =>
      log.warn(
        { error: messageOf(error) },
        'a drain could not be stored; other agents take over once the heartbeat expires',
      )
    await rows.drain().catch(warn)
    await Promise.allSettled(this.#claiming.values())
    const people = [...this.#held.keys()]
    log.info({ people: people.length }, 'draining: handing all users over')
    const giveUp = async (userId: string): Promise<void> => {
      if (userId !== SCHEDULES) await this.#release(userId, this.#times.drain)
      this.#held.delete(userId)
      await rows.release([userId]).catch(warn)
    }
    await Promise.all(people.map(giveUp))
    log.info({ ms: Math.round(performance.now() - started) }, 'drained')
  }
}
