/**
 * Says to an operator when something fails and when it is well again, by e-mail and by a webhook.
 * The facts are those of `/readyz`; what was said is kept, so that a restart says nothing twice and
 * forgets nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import type { Readiness } from '@sandlot/shared/account/api'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { messageOf } from '@sandlot/shared/base/errors'
import { ALERT_KINDS, type AlertKind, type AlertTest, type AlertsView } from '@sandlot/shared/admin/alerts'
import type { AlertsStore } from '@sandlot/storage/accounts/alerts'
import { z } from 'zod'
import { parseJson } from '@sandlot/shared/base/json'
import type { Logger } from '../log.ts'
import { type AlertFact, type AlertSay, alertState, type AlertTimes, nextAlertState } from './alert-state.ts'
import type { PostAlert } from './alert-webhook.ts'
import type { SendMail } from './mail.ts'

export interface AlertsTimes extends AlertTimes {
  /** Between two looks. */
  checkMs: number
  /** First and longest pause before what was not taken is sent again. */
  retry: { firstMs: number; longestMs: number }
}

const ALERT_TIMES: AlertsTimes = {
  checkMs: 30_000,
  raiseMs: 60_000,
  clearMs: 5 * 60_000,
  remindMs: 24 * 60 * 60_000,
  retry: { firstMs: 30_000, longestMs: 10 * 60_000 },
}

interface AlertsOptions {
  /** Addresses, with what mails them. */
  email: readonly string[]
  sendMail: SendMail | undefined
  /** The host that alerts are posted to, with what posts them. */
  webhook: { host: string; post: PostAlert } | undefined
  readiness: () => Promise<Readiness>
  store: AlertsStore
  /** True if this service sends them, and not another one. */
  leads: () => boolean
  publicUrl: () => string
  log: Logger
  times?: Partial<AlertsTimes>
}

/** Which parts of `/readyz` each is about, and what it is called when raised and when cleared. */
const KINDS: Record<AlertKind, { parts: readonly string[]; raised: string; cleared: string }> = {
  disk: { parts: ['disk'], raised: 'the disk is nearly full', cleared: 'the disk has room again' },
  store: {
    parts: ['store', 'sessions', 'accounts'],
    raised: 'chats or accounts cannot be stored',
    cleared: 'chats and accounts can be stored again',
  },
  agent: { parts: ['agent'], raised: 'the agent does not answer', cleared: 'the agent answers again' },
  engine: { parts: ['sandbox'], raised: 'sandboxes do not work', cleared: 'sandboxes work again' },
  'model-key': {
    parts: ['model-key'],
    raised: 'a model’s key is refused',
    cleared: 'the model’s key is accepted again',
  },
  provider: {
    parts: ['provider'],
    raised: 'a model’s provider fails',
    cleared: 'the model’s provider answers again',
  },
  backup: { parts: ['backup'], raised: 'a backup failed', cleared: 'a backup was made again' },
}

/** The stored state of each kind. */
const storedAlert = z.object({
  state: alertState,
  /** The last message, and its remaining recipients. */
  said: z
    .object({
      say: z.enum(['raised', 'reminder', 'cleared']),
      message: z.string(),
      since: z.number(),
      at: z.number(),
      unsent: z.array(z.string()),
    })
    .optional(),
})
type StoredAlert = z.infer<typeof storedAlert>

const WEBHOOK = 'webhook'
const CLOSE_MS = 3_000

export class Alerts {
  readonly #options: AlertsOptions
  readonly #times: AlertsTimes
  readonly #ended = new AbortController()
  readonly #running: Promise<void>
  readonly #alerts = new Map<AlertKind, StoredAlert>()
  /** The stored state. */
  readonly #stored = new Map<AlertKind, string>()
  #read = false
  /** By kind and channel: how often it was not taken, and when it is tried again. */
  readonly #failures = new Map<string, { tries: number; nextAt: number; why: string }>()

  constructor(options: AlertsOptions) {
    this.#options = options
    this.#times = { ...ALERT_TIMES, ...options.times }
    this.#running = this.#run()
  }

  get view(): AlertsView {
    const { email, webhook } = this.#options
    const raised = [...this.#alerts].flatMap(([kind, { state, said }]) => {
      if (state.is === 'well') return []
      const whys = (said?.unsent ?? []).map(
        (channel) => this.#failures.get(`${kind} ${channel}`)?.why ?? 'It is being sent.',
      )
      const problem = whys.length === 0 ? null : whys.join(' ')
      return [{ kind, title: KINDS[kind].raised, message: state.message, since: state.since, problem }]
    })
    return {
      email: [...email],
      webhook: webhook?.host ?? null,
      raised: raised.toSorted((a, b) => a.since - b.since),
    }
  }

  /** One to each of them, whatever there is to say. */
  async test(): Promise<AlertTest> {
    const at = Date.now()
    const text = 'This is a test. It would say what fails here, and when it is well again.'
    const sent = this.#channels.map(async (channel) => {
      try {
        await this.#send(channel, { type: 'test', title: 'alerts reach you here', text, at, data: {} })
        return { to: this.#nameOf(channel), problem: null }
      } catch (error) {
        return { to: this.#nameOf(channel), problem: messageOf(error) }
      }
    })
    return { sent: await Promise.all(sent) }
  }

  /** Resolves when nothing is looked at or sent any more. */
  async close(): Promise<void> {
    this.#ended.abort()
    // A send under way has its own limits; a stop does not wait for them.
    await orTimeout(this.#running, CLOSE_MS, undefined)
  }

  get #channels(): string[] {
    const { email, webhook } = this.#options
    return [...email, ...(webhook === undefined ? [] : [WEBHOOK])]
  }

  #nameOf(channel: string): string {
    return channel === WEBHOOK ? (this.#options.webhook?.host ?? channel) : channel
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended
    for (;;) {
      await Promise.allSettled([sleep(this.#times.checkMs, undefined, { signal, ref: false })])
      if (signal.aborted) return
      try {
        if (this.#options.leads()) await this.#check()
        else await this.#readAnew()
      } catch (error) {
        this.#options.log.warn({ error: messageOf(error) }, 'alerts could not be checked')
      }
    }
  }

  async #check(): Promise<void> {
    const { readiness, log } = this.#options
    await this.#readKept()
    const facts = factsOf(await readiness())
    if (this.#ended.signal.aborted) return
    const at = Date.now()
    for (const kind of ALERT_KINDS) {
      const before = this.#alerts.get(kind) ?? { state: { is: 'well' } }
      const { state, say } = nextAlertState(before.state, facts.get(kind), at, this.#times)
      if (say === undefined) {
        this.#alerts.set(kind, { ...before, state })
        continue
      }
      const was = state.is === 'ill' ? state : before.state
      const since = was.is === 'ill' ? was.since : at
      const message = facts.get(kind)?.message ?? ''
      this.#alerts.set(kind, { state, said: { say, message, since, at, unsent: this.#channels } })
      for (const channel of this.#channels) this.#failures.delete(`${kind} ${channel}`)
      log[say === 'cleared' ? 'info' : 'warn']({ kind, message }, `alert ${say}: ${titleOf(kind, say)}`)
    }
    // Before anything is sent: what is sent twice is worse than what is late.
    await this.#write()
    await Promise.all(ALERT_KINDS.map((kind) => this.#deliver(kind)))
    await this.#write()
  }

  async #deliver(kind: AlertKind): Promise<void> {
    const said = this.#alerts.get(kind)?.said
    if (said === undefined) return
    const { say, message, since, at } = said
    const still = new Set(said.unsent.filter((channel) => this.#channels.includes(channel)))
    await Promise.all(
      [...still].map(async (channel) => {
        const key = `${kind} ${channel}`
        const failure = this.#failures.get(key)
        if (failure !== undefined && failure.nextAt > Date.now()) return
        const data = { kind, since: new Date(since).toISOString() }
        const text = say === 'cleared' ? `It had been so since ${minuteOf(since)}.` : message
        try {
          await this.#send(channel, { type: say, title: titleOf(kind, say), text, at, data })
          still.delete(channel)
          this.#failures.delete(key)
        } catch (error) {
          const tries = (failure?.tries ?? 0) + 1
          const nextAt = Date.now() + backoffMs(tries, this.#times.retry)
          this.#failures.set(key, { tries, nextAt, why: messageOf(error) })
          this.#options.log.warn({ kind, tries, error: messageOf(error) }, 'an alert could not be sent')
        }
      }),
    )
    this.#keep(kind, { ...said, unsent: [...still] })
  }

  #keep(kind: AlertKind, said: NonNullable<StoredAlert['said']>): void {
    const now = this.#alerts.get(kind)
    if (now !== undefined) this.#alerts.set(kind, { ...now, said })
  }

  async #send(
    channel: string,
    alert: { type: AlertSay | 'test'; title: string; text: string; at: number; data: object },
  ): Promise<void> {
    const { sendMail, webhook, publicUrl } = this.#options
    const { type, title, text, at, data } = alert
    const url = `${publicUrl()}/settings/overview`
    if (channel === WEBHOOK) {
      const timestamp = new Date(at).toISOString()
      const line = `Sandlot ${publicUrl()}: ${title}. ${text}`
      await webhook?.post({
        type: `alert.${type}`,
        timestamp,
        text: line,
        data: { ...data, title, text, url },
      })
      return
    }
    const said = `${publicUrl()}, ${minuteOf(at)}: ${title}.`
    await sendMail?.({
      to: channel,
      subject: `Sandlot: ${title}`,
      text: `${said}\n\n${text}\n\n${url}\n\n-- \nSANDLOT_ALERT_EMAIL of this Sandlot names you.\n`,
    })
  }

  /** The state that the previous leader stored. */
  async #readAnew(): Promise<void> {
    this.#alerts.clear()
    this.#stored.clear()
    this.#failures.clear()
    this.#read = false
    await this.#readKept()
  }

  async #readKept(): Promise<void> {
    if (this.#read) return
    for (const [kind, text] of await this.#options.store.all()) {
      const known = ALERT_KINDS.find((one) => one === kind)
      // Stored by another version: as if nothing had been sent.
      const read = storedAlert.safeParse(parseJson(text))
      if (known === undefined || !read.success) continue
      this.#alerts.set(known, read.data)
      this.#stored.set(known, text)
    }
    this.#read = true
  }

  /** A disk that is full is a reason for an alert, and none to send no alert. */
  async #write(): Promise<void> {
    for (const [kind, value] of this.#alerts) {
      const text = JSON.stringify(value)
      if (this.#stored.get(kind) === text) continue
      try {
        await this.#options.store.put(kind, text)
        this.#stored.set(kind, text)
      } catch (error) {
        this.#options.log.warn({ kind, error: messageOf(error) }, 'the state of an alert could not be stored')
      }
    }
  }
}

/** Facts of the kinds about which something is known. */
function factsOf({ reasons }: Readiness): Map<AlertKind, AlertFact> {
  const facts = new Map<AlertKind, AlertFact>()
  for (const kind of ALERT_KINDS) {
    const about = reasons.filter(({ part }) => KINDS[kind].parts.includes(part))
    const bad = about.filter(({ ok }) => !ok)
    if (about.length === 0) continue
    facts.set(kind, { ok: bad.length === 0, message: bad.map(({ message }) => message).join(' ') })
  }
  return facts
}

function titleOf(kind: AlertKind, say: AlertSay): string {
  const { raised, cleared } = KINDS[kind]
  return say === 'cleared' ? cleared : say === 'reminder' ? `still: ${raised}` : raised
}

function minuteOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
