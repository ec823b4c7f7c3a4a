/**
 * Applies retention once a day: chats, outputs, images, usage, and the agent's own audit log. It
 * works in small pieces, so prompts do not wait for it; a chat that is open stays until it is
 * closed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type NewAudit, SANDLOT } from '@sandlot/shared/admin/audit'
import {
  RETENTION_KINDS,
  type RetentionAsk,
  type RetentionDays,
  type RetentionKind,
  type RetentionPreview,
  type RetentionView,
} from '@sandlot/shared/admin/retention'
import type { AuditLog } from '@sandlot/storage/audit/audit'
import type { AgedChat, OfChats, RetentionRows } from '@sandlot/storage/retention/retention'
import type { Log } from '../log.ts'

const DAY_MS = 86_400_000
/** Interval of checks for a new day, in milliseconds. */
const CHECK_MS = 10 * 60_000
const PAGE = 50
/** Chats of one kind in one run; the next run takes the rest. */
const MOST_CHATS = 1_000
/** Lines of the audit log in one transaction. */
const AUDIT_LINES = 500
/** Between two chats, for everything else. Milliseconds. */
const REST_MS = 5

interface RetentionParts {
  /**
   * True if this process applies all of it; another one only to chats of its own people. Default:
   * it does.
   */
  leads?: () => boolean
  /** True if another process applies it to chats of this person. Default: none does. */
  isElsewhere?: (userId: string) => Promise<boolean>
  rows: RetentionRows
  audit: Pick<AuditLog, 'write' | 'removeOlder' | 'olderThan'>
  /** True if it is open or running now. */
  isOpen: (sessionId: string) => Promise<boolean>
  /** Removes a chat that is not open. False: it is open, or something happened in it. */
  expire: (chat: AgedChat) => Promise<boolean>
  /** Forgets a chat in memory. False: it is open. */
  release: (sessionId: string) => Promise<boolean>
  /** Epoch milliseconds. */
  now: () => number
  log: Log
}

export class Retention {
  readonly #parts: RetentionParts
  readonly #ended = new AbortController()
  readonly #runs = new SerialQueue()
  #timer: NodeJS.Timeout | undefined
  /** When it was applied to chats of our own people, where another process leads. */
  #ownAt: number | undefined

  constructor(parts: RetentionParts) {
    this.#parts = parts
  }

  /** Looks from now on whether a day has passed. */
  start(): void {
    this.#timer = setInterval(() => void this.runWhenDue(), CHECK_MS).unref()
    void this.runWhenDue()
  }

  /** Resolves when nothing is under way; the rest is for the next process. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#ended.abort()
    await this.#runs.idle()
  }

  /** Throws `conflict` where another administrator was faster. */
  async answer(
    ask: RetentionAsk,
    actor: Pick<NewAudit, 'who' | 'from'>,
  ): Promise<RetentionView | RetentionPreview> {
    if (ask.do === 'preview') return this.#preview(ask.days)
    if (ask.do === 'put') {
      const { rows } = this.#parts
      const { days: before } = await rows.get()
      const line = { ...actor, what: 'retention_changed', before, after: ask.days } as const
      if (!(await rows.put(ask.days, ask.revision, line)))
        throw new SandlotError('conflict', 'Another administrator has changed retention. Load it again.')
    }
    return this.#view()
  }

  async #view(): Promise<RetentionView> {
    const stored = await this.#parts.rows.get()
    return { ...stored, nextAt: Math.max((stored.last?.at ?? 0) + DAY_MS, this.#parts.now()) }
  }

  /** Runs it unless it ran within a day. Never rejects. */
  runWhenDue(): Promise<void> {
    const { rows, now, log, leads = () => true } = this.#parts
    return this.#runs.run(async () => {
      try {
        const isLeader = leads()
        const at = isLeader ? (await rows.get()).last?.at : this.#ownAt
        // Also where the clock was set back.
        if (at !== undefined && Math.abs(now() - at) < DAY_MS) return
        await this.#run(isLeader)
      } catch (error) {
        if (!this.#ended.signal.aborted)
          log.warn({ error: messageOf(error) }, 'retention could not be applied; retrying in ten minutes')
      }
    })
  }

  async #run(isLeader: boolean): Promise<void> {
    const { rows, audit, now, log } = this.#parts
    const { days } = await rows.get()
    const set = RETENTION_KINDS.filter((kind) => days[kind] !== null)
    if (set.length === 0) return
    const removed: Partial<Record<RetentionKind, number>> = {}
    let isDone = true
    for (const kind of set) {
      if (!isLeader && (kind === 'audit' || kind === 'usage')) continue
      const before = now() - (days[kind] ?? 0) * DAY_MS
      const { count, done } = await this.#apply(kind, before)
      if (count > 0) removed[kind] = count
      isDone &&= done
    }
    if (Object.keys(removed).length > 0) {
      log.info({ removed }, 'retention removed expired data')
      await audit.write({ who: SANDLOT, what: 'retention_run', before: days, after: removed })
    }
    if (!isDone || this.#ended.signal.aborted) return
    if (isLeader) await rows.ran(now(), removed)
    else this.#ownAt = now()
  }

  /** `done`: nothing is left for another look today. */
  async #apply(kind: RetentionKind, before: number): Promise<{ count: number; done: boolean }> {
    const { rows, audit } = this.#parts
    const { signal } = this.#ended
    if (kind !== 'audit' && kind !== 'usage') return this.#applyToChats(kind, before)
    let count = 0
    while (!signal.aborted) {
      const some =
        kind === 'usage' ? await rows.removeUsage(before) : await audit.removeOlder(before, AUDIT_LINES)
      if (some === 0) return { count, done: true }
      count += some
      await sleep(REST_MS)
    }
    return { count, done: false }
  }

  async #applyToChats(kind: OfChats, before: number): Promise<{ count: number; done: boolean }> {
    const { rows, expire, release, isElsewhere } = this.#parts
    let count = 0
    let checked = 0
    for await (const chat of this.#aged(kind, before)) {
      if (this.#ended.signal.aborted || checked === MOST_CHATS) return { count, done: false }
      if (await isElsewhere?.(chat.userId)) continue
      checked += 1
      if (kind === 'chats') count += (await expire(chat)) ? 1 : 0
      else if (await release(chat.id))
        count += await (kind === 'outputs'
          ? rows.removeOutputs(chat.id, before)
          : rows.removeImages(chat.id, before))
      await sleep(REST_MS)
    }
    return { count, done: true }
  }

  async *#aged(kind: OfChats, before: number): AsyncGenerator<AgedChat> {
    let after: AgedChat | undefined
    for (;;) {
      const page = await this.#parts.rows.aged(kind, before, PAGE, after)
      yield* page
      after = page.at(-1)
      if (after === undefined) return
    }
  }

  async #preview(days: RetentionDays): Promise<RetentionPreview> {
    const kinds: RetentionPreview['kinds'] = []
    for (const kind of RETENTION_KINDS) {
      const limit = days[kind]
      if (limit === null) continue
      kinds.push({ kind, open: 0, ...(await this.#previewOf(kind, this.#parts.now() - limit * DAY_MS)) })
    }
    return { kinds }
  }

  async #previewOf(
    kind: RetentionKind,
    before: number,
  ): Promise<{ count: number; bytes: number; oldest: number | null; open?: number }> {
    const { rows, audit, isOpen } = this.#parts
    if (kind === 'usage') return rows.usageBefore(before)
    if (kind === 'audit') return audit.olderThan(before)
    const sum = { count: 0, bytes: 0, oldest: null as number | null, open: 0 }
    for await (const chat of this.#aged(kind, before)) {
      await pauseWhenDue()
      const { count, bytes } =
        kind === 'images' ? await rows.imagesOf(chat.id, before) : { count: 1, ...chat }
      if (count === 0) continue
      if (await isOpen(chat.id)) {
        sum.open += 1
        continue
      }
      sum.count += count
      sum.bytes += bytes
      sum.oldest ??= chat.updatedAt
    }
    return sum
  }
}
