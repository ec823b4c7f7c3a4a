/**
 * Sends notices to people who are away: reads the agent's outbox behind cursors of its own, one for
 * each lane. A cursor moves before its notices go out, so that none goes out twice; what waited
 * while the service was down goes out at its start, unless it is older than an hour.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import {
  NOTIFICATION_KINDS,
  type NotificationKind,
  type NotificationTest,
} from '@sandlot/shared/chat/notifications'
import type { NotificationsStore, PushTarget, Recipient } from '@sandlot/storage/accounts/notifications'
import type { NotificationRow } from '@sandlot/storage/shares/notifications'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import type { Logger } from '../log.ts'
import type { SendMail } from './mail.ts'
import type { Push, PushMessage } from './push.ts'

interface Lane {
  name: string
  way: 'push' | 'mail'
  kinds: readonly NotificationKind[]
  /** The age of a notification when it is sent. */
  delayMs: number
}

export interface NotificationTimes {
  /** Between two looks into the outbox; a change of a session is looked at at once. */
  pollMs: number
  mailApprovalMs: number
  mailOtherMs: number
  /** First and longest pause after a failed mail. */
  mailRetry: { firstMs: number; longestMs: number }
}

const DEFAULT_TIMES: NotificationTimes = {
  pollMs: 5_000,
  mailApprovalMs: 60_000,
  mailOtherMs: 5 * 60_000,
  mailRetry: { firstMs: 30_000, longestMs: 10 * 60_000 },
}

interface NotificationsOptions {
  store: NotificationsStore
  /** Rejects while there is no outbox yet. */
  reader: () => Promise<Pick<SessionReader, 'notifications'>>
  presence: Presence
  /** True if this service sends them, and not another one. */
  leads: () => boolean
  push: Push
  /** Undefined: no e-mail is sent. */
  sendMail: SendMail | undefined
  /** The address of this Sandlot, for links in e-mail. */
  publicUrl: () => string
  log: Logger
  count: (channel: 'push' | 'mail', result: 'sent' | 'failed' | 'dropped') => void
  times?: Partial<NotificationTimes>
}

interface Presence {
  isLooking(userId: string): boolean | Promise<boolean>
  /** Epoch milliseconds; 0: never since the start. */
  lastLooked(userId: string): number | Promise<number>
}

const CLOSE_MS = 3_000
const OLDEST_MS = 60 * 60_000
const BATCH = 200
const MOST_MAIL_TRIES = 4
const MOST_MAIL_WAITING = 200
const PUSH_RETRY = { firstMs: 60_000, longestMs: 60 * 60_000 }
/** In a row; then the subscription goes. */
const MOST_PUSH_FAILURES = 12
const MOST_LINES = 3
const TEST_MESSAGE: PushMessage = {
  title: 'Notices reach you here',
  body: 'This is a test.',
  tag: 'test',
  url: '/',
}

export class Notifications {
  readonly #options: NotificationsOptions
  readonly #times: NotificationTimes
  readonly #lanes: readonly Lane[]
  readonly #ended = new AbortController()
  readonly #running: Promise<void>
  /** By lane, person and chat: the last notice that went out early, joined with others. */
  readonly #joined = new Map<string, number>()
  #wake: () => void = () => undefined
  #mailWaiting = 0

  constructor(options: NotificationsOptions) {
    this.#options = options
    this.#times = { ...DEFAULT_TIMES, ...options.times }
    const { mailApprovalMs, mailOtherMs } = this.#times
    const others = NOTIFICATION_KINDS.filter((kind) => kind !== 'approval')
    const mail: Lane[] = [
      { name: 'mail-approval', way: 'mail', kinds: ['approval'], delayMs: mailApprovalMs },
      { name: 'mail', way: 'mail', kinds: others, delayMs: mailOtherMs },
    ]
    this.#lanes = [
      { name: 'push', way: 'push', kinds: NOTIFICATION_KINDS, delayMs: 0 },
      ...(options.sendMail === undefined ? [] : mail),
    ]
    this.#running = this.#run()
  }

  /** There may be something new in the outbox. */
  wake(): void {
    this.#wake()
  }

  /** One notice by every way there is, whatever was chosen, also to a person who looks. */
  async test(userId: string): Promise<NotificationTest> {
    const { store, sendMail, publicUrl, count } = this.#options
    const { email, browsers } = (await store.recipient(userId)) ?? { email: '', browsers: [] }
    const pushed = await Promise.all(browsers.map((browser) => this.#pushTo(browser, TEST_MESSAGE)))
    const problems = pushed.filter((why) => why !== undefined)
    const push = { sent: pushed.length - problems.length, problems }
    if (sendMail === undefined) return { push, mail: null }
    const text = `This is a test of the notices of ${publicUrl()}\n`
    try {
      await sendMail({ to: email, subject: `Sandlot: ${TEST_MESSAGE.title.toLowerCase()}`, text })
      count('mail', 'sent')
      return { push, mail: { sent: true } }
    } catch (error) {
      count('mail', 'failed')
      return { push, mail: { sent: false, problem: messageOf(error) } }
    }
  }

  /** Resolves when nothing is being sent any more. */
  async close(): Promise<void> {
    this.#ended.abort()
    this.#wake()
    // A send under way has its own limits; a stop does not wait for them.
    await orTimeout(this.#running, CLOSE_MS, undefined)
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended
    // After a start pages need a moment to come back; until then their people only seem away.
    await Promise.allSettled([sleep(this.#times.pollMs, undefined, { signal, ref: false })])
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve))
      for (const lane of this.#lanes) {
        if (!this.#options.leads()) break
        try {
          while (!signal.aborted && (await this.#advance(lane)));
        } catch (error) {
          // The next look may succeed. Before the first start of ai-agent there is no outbox yet.
          const level = error instanceof SandlotError && error.code === 'not_ready' ? 'debug' : 'warn'
          this.#options.log[level](
            { error: messageOf(error), lane: lane.name },
            'notifications could not be read',
          )
        }
      }
      await orTimeout(woken, this.#times.pollMs, undefined)
    }
  }

  /** True: there is more that is due. */
  async #advance(lane: Lane): Promise<boolean> {
    const { store, reader } = this.#options
    const after = await store.cursor(lane.name)
    const rows = await (await reader()).notifications.after(after, BATCH)
    const now = Date.now()
    const isOurs = ({ kind }: NotificationRow): boolean => lane.kinds.includes(kind)
    const early = rows.findIndex((row) => isOurs(row) && row.at > now - lane.delayMs)
    const due = early < 0 ? rows : rows.slice(0, early)
    const last = due.at(-1)
    if (last === undefined) return false
    await store.moveCursor(lane.name, last.id)
    const sent = due.filter((row) => isOurs(row) && row.id > (this.#joined.get(keyOf(lane, row)) ?? 0))
    const chats = Map.groupBy(sent, (row) => keyOf(lane, row))
    for (const row of rows.slice(due.length))
      if (isOurs(row) && chats.has(keyOf(lane, row))) {
        chats.get(keyOf(lane, row))?.push(row)
        this.#joined.set(keyOf(lane, row), row.id)
      }
    for (const [key, id] of this.#joined) if (id <= last.id) this.#joined.delete(key)
    await Promise.all([...chats.values()].map((chat) => this.#send(lane, chat, now)))
    return early < 0 && rows.length === BATCH
  }

  /** Rows of one person and one chat, at least one. */
  async #send({ way }: Lane, rows: readonly NotificationRow[], now: number): Promise<void> {
    const { store, log, presence, count } = this.#options
    const fresh = rows.filter(({ at }) => at > now - OLDEST_MS)
    if (fresh.length < rows.length) count(way, 'dropped')
    const [first] = fresh
    if (first === undefined) return
    const { userId } = first
    try {
      const to = await store.recipient(userId)
      if (to === undefined || (await presence.isLooking(userId))) return
      const seen = way === 'mail' ? await presence.lastLooked(userId) : 0
      const wanted = fresh.filter(({ kind, open, at }) => open && to.choice[kind][way] && at > seen)
      if (wanted.length === 0) return
      if (way === 'push') await this.#push(to.browsers, wanted, now)
      else void this.#mail(to, wanted)
    } catch (error) {
      count(way, 'failed')
      log.error({ err: error, user: userId }, 'a notification could not be sent')
    }
  }

  async #push(browsers: readonly PushTarget[], rows: readonly NotificationRow[], now: number): Promise<void> {
    const { count } = this.#options
    const { title, lines, path, sessionId } = wordsOf(rows)
    const message = { title, body: lines.join('\n'), tag: sessionId, url: path }
    await Promise.all(
      browsers.map(async (browser) => {
        if (browser.retryAt > now) count('push', 'dropped')
        else await this.#pushTo(browser, message)
      }),
    )
  }

  /** Answers the problem, for people. */
  async #pushTo(browser: PushTarget, message: PushMessage): Promise<string | undefined> {
    const { push, store, log, count } = this.#options
    const { endpoint } = browser
    const outcome = await push.send(browser, message)
    if (outcome.is === 'sent') {
      count('push', 'sent')
      if (browser.failures > 0) await store.endpointState(endpoint, { failures: 0, retryAt: 0 })
      return undefined
    }
    count('push', 'failed')
    const failures = browser.failures + 1
    const gone = outcome.is === 'gone' || failures >= MOST_PUSH_FAILURES
    if (gone) await store.endpointGone(endpoint)
    else {
      const retryAt = Date.now() + backoffMs(failures, PUSH_RETRY)
      await store.endpointState(endpoint, { failures, retryAt })
    }
    log.warn({ why: outcome.why, failures, removed: gone }, 'a push service did not accept a notification')
    return outcome.why
  }

  /** Never rejects. */
  async #mail({ email }: Recipient, rows: readonly NotificationRow[]): Promise<void> {
    const { sendMail, publicUrl, log, count } = this.#options
    const { signal } = this.#ended
    const { title, lines, path } = wordsOf(rows)
    const said = [title, ...lines].join('\n')
    const why = 'You were away, so this came by e-mail. Settings, Notices says what does.'
    const text = `${said}\n\n${publicUrl()}${path}\n\n-- \n${why}\n`
    if (this.#mailWaiting >= MOST_MAIL_WAITING) return count('mail', 'dropped')
    this.#mailWaiting++
    try {
      for (let tries = 1; !signal.aborted; tries++) {
        try {
          await sendMail?.({ to: email, subject: `Sandlot: ${title}`, text })
          return count('mail', 'sent')
        } catch (error) {
          if (tries >= MOST_MAIL_TRIES) throw error
          await sleep(backoffMs(tries, this.#times.mailRetry), undefined, { signal, ref: false })
        }
      }
    } catch (error) {
      count('mail', 'failed')
      if (!signal.aborted) log.warn({ error: messageOf(error) }, 'a notification could not be mailed')
    } finally {
      this.#mailWaiting--
    }
  }
}

function keyOf({ name }: Lane, { userId, sessionId }: NotificationRow): string {
  return `${name} ${userId} ${sessionId}`
}

/**
 * The text of a chat's notifications, the most urgent first: never a title, a message, or a tool's
 * arguments.
 */
function wordsOf(rows: readonly NotificationRow[]): {
  title: string
  lines: string[]
  path: string
  sessionId: string
} {
  const urgency: readonly NotificationKind[] = ['approval', 'mentioned', 'shared', 'ended']
  const byUrgency = rows.toSorted((a, b) => urgency.indexOf(a.kind) - urgency.indexOf(b.kind))
  const [title = '', ...others] = new Set(byUrgency.map((row) => sentenceOf(row)))
  const lines = others.slice(0, MOST_LINES)
  if (others.length > MOST_LINES) lines.push(`And ${others.length - MOST_LINES} more.`)
  const sessionId = rows[0]?.sessionId ?? ''
  return { title, lines, path: `/s/${encodeURIComponent(sessionId)}`, sessionId }
}

function sentenceOf({ kind, about }: NotificationRow): string {
  const who = about?.replaceAll(/\p{Cc}+/gu, ' ') ?? 'A person'
  switch (kind) {
    case 'approval':
      return `A chat waits for you: ${about ?? 'an approval'}`
    case 'ended':
      return 'A prompt of yours has ended'
    case 'mentioned':
      return `${who} mentioned you in a comment`
    case 'shared':
      return `${who} shared a chat with you`
  }
}
