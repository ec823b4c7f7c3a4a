/**
 * Every living agent, where chats are in PostgreSQL: one of them has a person with their sessions
 * and their sandbox at a time. Which one can change at any moment, so requests that are safe to
 * repeat are sent again for a while.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentMetricsAnswer, AgentStatus } from '@sandlot/shared/acp/meta'
import { type BackoffRules, backoffMs } from '@sandlot/shared/async/backoff'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { Replica, ReplicaReads } from '@sandlot/storage/replicas/replicas'
import { LRUCache } from 'lru-cache'
import type { Logger } from '../log.ts'
import { addresseeOf } from './addressee.ts'
import type { AgentPlace } from './agent-client.ts'
import { type AgentsOptions, type Member, Agents, ONLY, isNotOwner, unavailable } from './agents.ts'
import { mergeMetrics, mergeStatus } from './merge-answers.ts'

/** The registry of agents in their database. */
export type Replicas = Pick<ReplicaReads, 'list' | 'ownerOf'>

interface FoundAgents {
  find: () => Promise<Replicas>
  /** The owner of this session; undefined: there is none. */
  ownerOf: (sessionId: string) => Promise<string | undefined>
  /** Shown to those that have a certificate. */
  token: string | undefined
  /** The address of an agent that registers none, as one on a file. */
  otherwise: AgentPlace
}

/** Milliseconds between two polls of the registry; a failed request polls at once. */
const POLL_MS = 2_000
/** Retry period of a request: longer than users of a dead agent wait for another one. */
const AGAIN_MS = 12_000
const PAUSE: BackoffRules = { firstMs: 75, longestMs: 1_500 }
/** Sessions whose person is cached. */
const MOST_KNOWN = 20_000

export class AgentReplicas extends Agents {
  readonly #found: FoundAgents
  readonly #log: Logger
  readonly #members = new Map<string, Member>()
  /** Owners by person, as last read. */
  readonly #owners = new LRUCache<string, string>({ max: MOST_KNOWN })
  /** By person who had no owner: the agent asked to take them, since the last poll. */
  readonly #takers = new Map<string, string>()
  /** By session. */
  readonly #people = new LRUCache<string, string>({ max: MOST_KNOWN })
  readonly #running: Promise<void>
  #polling: Promise<void> | undefined
  /** Links are of everybody: they begin in the context of no request, also where one finds them. */
  readonly #outside = AsyncLocalStorage.snapshot()

  constructor(found: FoundAgents, options: AgentsOptions) {
    super(options)
    this.#found = found
    this.#log = options.log
    this.#running = this.#keepPolling()
  }

  protected get members(): readonly Member[] {
    return [...this.#members.values()]
  }

  list(): (Replica & { connected: boolean })[] {
    const all = this.members.map(({ replica, link }) => ({ ...replica, connected: link.connected }))
    return all.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }

  async byAgent(userIds: readonly string[]): Promise<string[][]> {
    const found = await Promise.all(
      userIds.map(async (userId) => ({ userId, at: (await this.memberOf(userId)).replica.id })),
    )
    return [...Map.groupBy(found, ({ at }) => at).values()].map((group) => group.map(({ userId }) => userId))
  }

  async holderOf(userId: string, sessionId?: string): Promise<string> {
    return (sessionId === undefined ? undefined : await this.#personOf(sessionId)) ?? userId
  }

  protected async memberFor(method: string, params: object, refresh = false): Promise<Member> {
    const { session, person } = addresseeOf(method, params)
    const whose = (session === undefined ? undefined : await this.#personOf(session)) ?? person
    return whose === undefined ? this.#leastBusy() : this.memberOf(whose, refresh)
  }

  protected async memberOf(person: string, refresh = false): Promise<Member> {
    const known = refresh ? undefined : this.#owners.get(person)
    const owner = known ?? (await (await this.#found.find()).ownerOf(person))
    const member = owner === undefined ? undefined : this.#members.get(owner)
    // Without an owner, or of one that is dead: any other takes them when it is asked.
    if (owner === undefined || member === undefined) return this.#takerOf(person)
    if (!member.link.connected) throw unavailable()
    this.#owners.set(person, owner)
    return member
  }

  /**
   * Both again for a while: when `connect` fails, when another agent has the person, and, if it
   * `mayRepeat`, when the agent is lost on the way.
   */
  async again<C, T>(
    connect: () => C | Promise<C>,
    use: (connected: C) => Promise<T>,
    mayRepeat: () => boolean,
  ): Promise<T> {
    const until = performance.now() + AGAIN_MS
    for (let tries = 1; ; tries++) {
      let sent = false
      try {
        const given = connect()
        const connected = given instanceof Promise ? await given : given
        sent = true
        return await use(connected)
      } catch (error) {
        const isLost = error instanceof SandlotError && error.code === 'agent_unavailable'
        if (!isNotOwner(error) && !(isLost && (!sent || mayRepeat()))) throw error
        const pause = backoffMs(tries, PAUSE, Math.random)
        if (performance.now() + pause > until || this.ended.signal.aborted)
          throw isLost ? error : unavailable(error)
        await sleep(pause, undefined, { ref: false })
        await this.lookAgain()
      }
    }
  }

  async lookAgain(): Promise<void> {
    this.#owners.clear()
    // Chats of a person who is removed may have been handed over.
    this.#people.clear()
    await this.#poll()
  }

  protected async readStatus(): Promise<AgentStatus> {
    const { members } = this
    if (members.length === 0) throw unavailable()
    const said = await Promise.allSettled(members.map(({ link }) => link.status()))
    const statuses = said.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const silent = members.filter((_, index) => said[index]?.status === 'rejected')
    return mergeStatus(
      statuses,
      members.map(({ replica }) => replica),
      silent.map(({ replica }) => replica),
    )
  }

  async metrics(): Promise<AgentMetricsAnswer | undefined> {
    const all = await Promise.all(
      this.members
        .filter(({ link }) => link.connected)
        .map(async ({ replica, link }) => ({ replica: replica.id, answer: await link.metrics() })),
    )
    return mergeMetrics(
      all.flatMap(({ replica, answer }) => (answer === undefined ? [] : [{ replica, answer }])),
    )
  }

  override async close(): Promise<void> {
    this.ended.abort()
    await this.#running
    await this.#polling
    await super.close()
  }

  // ── Choice of one ─────────────────────────────────────────────────────────────────────────────

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
    const [first] = this.connectedMembers().toSorted(
      ({ replica: a }, { replica: b }) =>
        Number(a.draining) - Number(b.draining) || a.people - b.people || (a.id < b.id ? -1 : 1),
    )
    if (first === undefined) throw unavailable()
    return first
  }

  async #personOf(sessionId: string): Promise<string | undefined> {
    const known = this.#people.get(sessionId)
    if (known !== undefined) return known
    const person = await this.#found.ownerOf(sessionId)
    if (person !== undefined) this.#people.set(sessionId, person)
    return person
  }

  // ── The registry ──────────────────────────────────────────────────────────────────────────────

  async #keepPolling(): Promise<void> {
    const { signal } = this.ended
    while (!signal.aborted) {
      await this.#poll()
      await Promise.allSettled([sleep(POLL_MS, undefined, { signal, ref: false })])
    }
  }

  /** Never rejects: what is known stays, until the database can be read. */
  #poll(): Promise<void> {
    this.#polling ??= this.#outside(() => this.#pollNow())
      .catch((error: unknown) => {
        this.#log.debug({ error: messageOf(error) }, 'the agents could not be read')
      })
      .finally(() => {
        this.#polling = undefined
      })
    return this.#polling
  }

  async #pollNow(): Promise<void> {
    if (this.ended.signal.aborted) return
    const registered = (await (await this.#found.find()).list()).filter((replica) => replica.living)
    const living = registered.length > 0 ? registered : [{ ...ONLY, ...this.#found.otherwise }]
    if (this.ended.signal.aborted) return
    this.#takers.clear()
    for (const replica of living) {
      const member = this.#members.get(replica.id)
      const isSame = member?.replica.url === replica.url && member.replica.certificate === replica.certificate
      if (member !== undefined && isSame) member.replica = replica
      else {
        void member?.link.close()
        const place = { url: replica.url, certificate: replica.certificate, token: this.#found.token }
        this.#members.set(replica.id, { replica, link: this.openLink(replica.id, place) })
      }
    }
    for (const [id, { link }] of this.#members) {
      if (living.some((replica) => replica.id === id)) continue
      this.#members.delete(id)
      this.#owners.clear()
      await link.close()
    }
  }
}
