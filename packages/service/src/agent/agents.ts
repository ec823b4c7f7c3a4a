/**
 * The agents there are, and which of them is asked: one at a fixed address where chats are a file;
 * where they are in PostgreSQL every living one, of which one has a person with their sessions and
 * their sandbox at a time. Which one can change at any moment, so what is safe to repeat is asked
 * again for a while.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AgentMetricsAnswer,
  type AgentStatus,
  type SessionChanged,
  streamTicket,
} from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { EffectiveSettings } from '@sandlot/shared/account/agent-settings'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { Replica, ReplicaReads } from '@sandlot/storage/replicas/replicas'
import type { WebSocket } from 'ws'
import { LRUCache } from 'lru-cache'
import type { Logger } from '../log.ts'
import { addresseeOf, isRepeatable, type Answered } from './addressee.ts'
import type { AgentConnection, AgentPlace, OnNotification } from './agent-client.ts'
import { AgentLink, type AgentLinkOptions } from './agent-link.ts'
import { mergeMetrics, mergeStatus } from './merge-answers.ts'

/** The registry of agents in their database. */
export type Replicas = Pick<ReplicaReads, 'list' | 'ownerOf'>

interface FoundAgents {
  find: () => Promise<Replicas>
  /** Shown to those that have a certificate. */
  token: string | undefined
  /** The address of an agent that registers none, as one on a file. */
  otherwise: AgentPlace
}

interface AgentsOptions {
  /** The address of the one agent, or the registry of all. */
  at: AgentPlace | FoundAgents
  /** The owner of this session; undefined: there is none. */
  personOf: (sessionId: string) => Promise<string | undefined>
  log: Logger
  /** Must not throw. */
  onSessionChanged: (change: SessionChanged) => void
  /** True if any is connected; with true also for each further one. */
  onConnected: (connected: boolean) => void
  pauses?: AgentLinkOptions['pauses']
}

/** Between two looks at which there are, in milliseconds; a failure is a reason to look at once. */
const POLL_MS = 2_000
/** Retry period of a request: longer than users of a dead agent wait for another one. */
const AGAIN_MS = 12_000
const PAUSE_MS = { first: 50, longest: 1_000 }
/** Sessions whose person is remembered. */
const MOST_KNOWN = 20_000
/** The one agent, which has no name. */
const ONLY: Replica = { id: '', url: '', version: '', draining: false, living: true, people: 0 }

interface Member {
  replica: Replica
  link: AgentLink
}

export class Agents {
  readonly #options: AgentsOptions
  readonly #members = new Map<string, Member>()
  /** By person, as was read: until it shows that it is another. */
  readonly #owners = new LRUCache<string, string>({ max: MOST_KNOWN })
  /** By person who had no owner: who was asked to take them, since the last look. */
  readonly #takers = new Map<string, string>()
  /** By session. */
  readonly #people = new LRUCache<string, string>({ max: MOST_KNOWN })
  readonly #ended = new AbortController()
  readonly #waiting = new Set<() => void>()
  #polling: Promise<void> | undefined
  #lastStatus: AgentStatus | undefined
  readonly #running: Promise<void>
  /** Links are of everybody: they begin in the context of no request, also where one finds them. */
  readonly #outside = AsyncLocalStorage.snapshot()

  constructor(options: AgentsOptions) {
    this.#options = options
    const { at } = options
    if ('url' in at) this.#join({ ...ONLY, url: at.url }, at)
    this.#running = 'url' in at ? Promise.resolve() : this.#keepPolling()
  }

  get connected(): boolean {
    return this.#connected().length > 0
  }

  get closed(): boolean {
    return this.#ended.signal.aborted
  }

  /** Undefined where there is one agent, whatever it is called. */
  list(): (Replica & { connected: boolean })[] | undefined {
    if (!this.#isSeveral) return undefined
    const all = [...this.#members.values()].map(({ replica, link }) => ({
      ...replica,
      connected: link.connected,
    }))
    return all.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Throws `SandlotError`, as the agent does, or `agent_unavailable`. */
  request(method: string, params: object): Promise<unknown> {
    return this.again(
      () => this.#linkFor(method, params),
      ({ link }) => link.request(method, params),
      () => isRepeatable(method, params),
    )
  }

  /** The answer of every agent that answers, at least one. Throws the last one's error. */
  async each(method: string, params: object): Promise<Answered<unknown>[]> {
    const asked = await Promise.allSettled(
      this.#connectedOrThrow().map(async ({ replica, link }) => ({
        replica: replica.id,
        answer: await link.request(method, params),
      })),
    )
    const answered = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const failed = asked.findLast((one) => one.status === 'rejected')
    if (answered.length === 0 && failed !== undefined) throw failed.reason
    return answered
  }

  /** These people in groups, each of one agent. */
  async byAgent(userIds: readonly string[]): Promise<string[][]> {
    if (!this.#isSeveral) return [[...userIds]]
    const found = await Promise.all(
      userIds.map(async (userId) => ({ userId, at: (await this.#memberOf(userId)).replica.id })),
    )
    return [...Map.groupBy(found, ({ at }) => at).values()].map((group) => group.map(({ userId }) => userId))
  }

  /** Throws `agent_unavailable`. */
  async notify(method: string, params: object): Promise<void> {
    await this.again(
      () => this.#linkFor(method, params, true),
      ({ link }) => link.notify(method, params),
      () => true,
    )
  }

  /**
   * The byte stream that this request gives a ticket for, not read yet: at the agent that gave it.
   * Throws as `request` does.
   */
  async openStream(method: string, params: object): Promise<WebSocket> {
    const { link, ticket } = await this.again(
      () => this.#linkFor(method, params),
      async (member) => ({ ...member, ...streamTicket.parse(await member.link.request(method, params)) }),
      () => isRepeatable(method, params),
    )
    return link.openStream(ticket)
  }

  /**
   * By whom readers of a session, or of what is this user's own, share a connection: it goes to
   * that person's agent. The same for all where there is one agent.
   */
  async holderOf(userId: string, sessionId?: string): Promise<string> {
    if (!this.#isSeveral) return ONLY.id
    return (sessionId === undefined ? undefined : await this.#personOf(sessionId)) ?? userId
  }

  /** A separate connection to the agent of `holder`. Throws `agent_unavailable`. */
  async open(holder: string, onNotification: OnNotification): Promise<AgentConnection> {
    this.#ended.signal.throwIfAborted()
    return (await this.#memberOf(holder, true)).link.open(onNotification)
  }

  /** A separate connection for this request. Throws `agent_unavailable`. */
  openFor(method: string, params: object, onNotification: OnNotification): Promise<AgentConnection> {
    return this.again(
      () => this.#linkFor(method, params, true),
      ({ link }) => link.open(onNotification),
      () => true,
    )
  }

  /**
   * `use` of what `connect` gives, begun at once. Both again for a while, where there are several
   * agents: when `connect` fails, when another one has the person, and, if it `isRepeatable`, when
   * the agent is lost on the way.
   */
  async again<C, T>(
    connect: () => C | Promise<C>,
    use: (connected: C) => Promise<T>,
    mayRepeat: () => boolean,
  ): Promise<T> {
    if (!this.#isSeveral) {
      const only = connect()
      return use(only instanceof Promise ? await only : only)
    }
    const until = performance.now() + AGAIN_MS
    let pause = PAUSE_MS.first
    for (;;) {
      let sent = false
      try {
        const given = connect()
        const connected = given instanceof Promise ? await given : given
        sent = true
        return await use(connected)
      } catch (error) {
        const isLost = error instanceof SandlotError && error.code === 'agent_unavailable'
        if (!isNotOwner(error) && !(isLost && (!sent || mayRepeat()))) throw error
        if (performance.now() + pause > until || this.closed) throw isLost ? error : unavailable(error)
        await sleep(pause * (1 + Math.random() / 2), undefined, { ref: false })
        await this.lookAgain()
        pause = Math.min(pause * 2, PAUSE_MS.longest)
      }
    }
  }

  /** Reloads the list of agents: the one that was asked was the wrong one. Never rejects. */
  async lookAgain(): Promise<void> {
    if (!this.#isSeveral) return
    this.#owners.clear()
    // Chats of a person who is removed may have been handed over.
    this.#people.clear()
    await this.#poll()
  }

  /** The status of all agents together. Throws `agent_unavailable`, also after a time-out. */
  async status(): Promise<AgentStatus> {
    if (!this.#isSeveral) {
      this.#lastStatus = await this.#only().link.status()
      return this.#lastStatus
    }
    const members = [...this.#members.values()]
    if (members.length === 0) throw unavailable()
    const said = await Promise.allSettled(members.map(({ link }) => link.status()))
    const statuses = said.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const silent = members.filter((_, index) => said[index]?.status === 'rejected')
    this.#lastStatus = mergeStatus(
      statuses,
      members.map(({ replica }) => replica),
      silent.map(({ replica }) => replica),
    )
    return this.#lastStatus
  }

  /** The current status, else the last known one; undefined before the first. Does not throw. */
  async lastStatus(): Promise<AgentStatus | undefined> {
    try {
      return await this.status()
    } catch (error) {
      this.#options.log.debug({ error: messageOf(error) }, 'no status from the agent')
      return this.#lastStatus
    }
  }

  /** The metrics of all agents; undefined when none answers in time. Does not throw. */
  async metrics(): Promise<AgentMetricsAnswer | undefined> {
    if (!this.#isSeveral) return this.#only().link.metrics()
    const all = await Promise.all(
      this.#connected().map(async ({ replica, link }) => ({
        replica: replica.id,
        answer: await link.metrics(),
      })),
    )
    return mergeMetrics(
      all.flatMap(({ replica, answer }) => (answer === undefined ? [] : [{ replica, answer }])),
    )
  }

  /** The settings that hold for this user; undefined: not known now. Does not throw. */
  async settingsOf(user: AgentUser): Promise<EffectiveSettings | undefined> {
    const member = await this.#memberOf(user.id).catch(() => undefined)
    return member?.link.settingsOf(user)
  }

  /** Resolves when any is reachable. Rejects when `signal` aborts or this is closed. */
  async whenConnected(signal: AbortSignal): Promise<void> {
    const given = AbortSignal.any([signal, this.#ended.signal])
    given.throwIfAborted()
    if (this.connected) return
    await new Promise<void>((resolve, reject) => {
      const wake = (): void => {
        given.removeEventListener('abort', stop)
        resolve()
      }
      const stop = (): void => {
        this.#waiting.delete(wake)
        reject(new Error('the wait for the agent was aborted', { cause: given.reason }))
      }
      given.addEventListener('abort', stop, { once: true })
      this.#waiting.add(wake)
    })
  }

  async close(): Promise<void> {
    this.#ended.abort()
    await this.#running
    await this.#polling
    await Promise.all([...this.#members.values()].map(({ link }) => link.close()))
  }

  // ── Which one ───────────────────────────────────────────────────────────────────────────────

  get #isSeveral(): boolean {
    return !('url' in this.#options.at)
  }

  #only(): Member {
    const [only] = this.#members.values()
    if (only === undefined) throw unavailable()
    return only
  }

  #connected(): Member[] {
    return [...this.#members.values()].filter(({ link }) => link.connected)
  }

  #connectedOrThrow(): Member[] {
    const connected = this.#connected()
    if (connected.length === 0) throw unavailable()
    return connected
  }

  /** `refresh`: read the owner again, where a wrong agent would not refuse. */
  async #linkFor(method: string, params: object, refresh = false): Promise<Member> {
    if (!this.#isSeveral) return this.#only()
    const { session, person } = addresseeOf(method, params)
    const whose = (session === undefined ? undefined : await this.#personOf(session)) ?? person
    return whose === undefined ? this.#leastBusy() : this.#memberOf(whose, refresh)
  }

  /** Throws `agent_unavailable`. */
  async #memberOf(person: string, refresh = false): Promise<Member> {
    const { at } = this.#options
    if ('url' in at) return this.#only()
    const known = refresh ? undefined : this.#owners.get(person)
    const owner = known ?? (await (await at.find()).ownerOf(person))
    const member = owner === undefined ? undefined : this.#members.get(owner)
    // Without an owner, or of one that is dead: any other takes them when it is asked.
    if (owner === undefined || member === undefined) return this.#takerOf(person)
    if (!member.link.connected) throw unavailable()
    this.#owners.set(person, owner)
    return member
  }

  /** One that takes this person when it is asked: the same for all that they ask at once. */
  #takerOf(person: string): Member {
    const known = this.#members.get(this.#takers.get(person) ?? '')
    if (known?.link.connected === true) return known
    const taker = this.#leastBusy()
    // Until the next poll: otherwise all new users would go to the same agent.
    taker.replica = { ...taker.replica, people: taker.replica.people + 1 }
    this.#takers.set(person, taker.replica.id)
    return taker
  }

  #leastBusy(): Member {
    const [first] = this.#connectedOrThrow().toSorted(
      ({ replica: a }, { replica: b }) =>
        Number(a.draining) - Number(b.draining) || a.people - b.people || (a.id < b.id ? -1 : 1),
    )
    if (first === undefined) throw unavailable()
    return first
  }

  async #personOf(sessionId: string): Promise<string | undefined> {
    const known = this.#people.get(sessionId)
    if (known !== undefined) return known
    const person = await this.#options.personOf(sessionId)
    if (person !== undefined) this.#people.set(sessionId, person)
    return person
  }

  // ── Which there are ─────────────────────────────────────────────────────────────────────────

  async #keepPolling(): Promise<void> {
    const { signal } = this.#ended
    while (!signal.aborted) {
      await this.#poll()
      await Promise.allSettled([sleep(POLL_MS, undefined, { signal, ref: false })])
    }
  }

  /** Never rejects: what is known stays, until the database can be read. */
  #poll(): Promise<void> {
    this.#polling ??= this.#outside(() => this.#pollNow())
      .catch((error: unknown) => {
        this.#options.log.debug({ error: messageOf(error) }, 'the agents could not be read')
      })
      .finally(() => {
        this.#polling = undefined
      })
    return this.#polling
  }

  async #pollNow(): Promise<void> {
    const { at } = this.#options
    if ('url' in at || this.closed) return
    const found = (await (await at.find()).list()).filter((replica) => replica.living)
    const living = found.length > 0 ? found : [{ ...ONLY, ...at.otherwise }]
    if (this.closed) return
    this.#takers.clear()
    for (const replica of living) {
      const member = this.#members.get(replica.id)
      const isSame = member?.replica.url === replica.url && member.replica.certificate === replica.certificate
      if (member !== undefined && isSame) member.replica = replica
      else {
        void member?.link.close()
        this.#join(replica, { url: replica.url, certificate: replica.certificate, token: at.token })
      }
    }
    for (const [id, { link }] of this.#members) {
      if (living.some((replica) => replica.id === id)) continue
      this.#members.delete(id)
      this.#owners.clear()
      await link.close()
    }
  }

  #join(replica: Replica, place: AgentPlace): void {
    const { log, onSessionChanged, onConnected, pauses } = this.#options
    const link = new AgentLink({
      place,
      log: replica.id === ONLY.id ? log : log.child({ replica: replica.id }),
      onSessionChanged,
      onConnected: (connected) => {
        if (connected) for (const wake of this.#waiting) wake()
        if (connected) this.#waiting.clear()
        // Another may still be.
        onConnected(connected || this.connected)
      },
      pauses,
    })
    this.#members.set(replica.id, { replica, link })
  }
}

export function isNotOwner(error: unknown): boolean {
  return error instanceof SandlotError && error.code === 'not_owner'
}

function unavailable(cause?: unknown): SandlotError {
  const words = 'The agent is not reachable just now. Try again in a moment.'
  return new SandlotError('agent_unavailable', words, { cause })
}
