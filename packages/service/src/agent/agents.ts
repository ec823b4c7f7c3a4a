/** The agents there are, and the way of a request to the one it is for. */
import {
  type AgentMetricsAnswer,
  type AgentStatus,
  type SessionChanged,
  streamTicket,
} from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { EffectiveSettings } from '@sandlot/shared/account/agent-settings'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { Replica } from '@sandlot/storage/replicas/replicas'
import type { WebSocket } from 'ws'
import type { Logger } from '../log.ts'
import { isRepeatable, type Answered } from './addressee.ts'
import type { AgentConnection, AgentPlace, OnNotification } from './agent-client.ts'
import { AgentLink, type AgentLinkOptions } from './agent-link.ts'

export interface AgentsOptions {
  log: Logger
  /** Must not throw. */
  onSessionChanged: (change: SessionChanged) => void
  /** True if any is connected; with true also for each further one. */
  onConnected: (connected: boolean) => void
  pauses?: AgentLinkOptions['pauses']
}

export interface Member {
  replica: Replica
  link: AgentLink
}

/** The one agent, which has no name. */
export const ONLY: Replica = { id: '', url: '', version: '', draining: false, living: true, people: 0 }

export abstract class Agents {
  readonly #options: AgentsOptions
  protected readonly ended = new AbortController()
  readonly #waiting = new Set<() => void>()
  #lastStatus: AgentStatus | undefined

  constructor(options: AgentsOptions) {
    this.#options = options
  }

  /** Connected or not. */
  protected abstract get members(): readonly Member[]
  /** Undefined where there is one agent, whatever it is called. */
  abstract list(): (Replica & { connected: boolean })[] | undefined
  /** These people in groups, each of one agent. */
  abstract byAgent(userIds: readonly string[]): Promise<string[][]>
  /**
   * By whom readers of a session, or of what is this user's own, share a connection: it goes to
   * that person's agent. The same for all where there is one agent.
   */
  abstract holderOf(userId: string, sessionId?: string): Promise<string>
  /**
   * The addressee of a request. `refresh`: read the owner again, where a wrong agent would not
   * refuse. Throws `agent_unavailable`.
   */
  protected abstract memberFor(method: string, params: object, refresh?: boolean): Member | Promise<Member>
  /** The agent that has this person. Throws `agent_unavailable`. */
  protected abstract memberOf(person: string, refresh?: boolean): Member | Promise<Member>
  /** `use` of what `connect` gives, begun at once; both again where that can help. */
  abstract again<C, T>(
    connect: () => C | Promise<C>,
    use: (connected: C) => Promise<T>,
    mayRepeat: () => boolean,
  ): Promise<T>
  /** Reloads the list of agents: a request went to the wrong one. Never rejects. */
  abstract lookAgain(): Promise<void>
  protected abstract readStatus(): Promise<AgentStatus>
  /** The metrics of all agents; undefined when none answers in time. Does not throw. */
  abstract metrics(): Promise<AgentMetricsAnswer | undefined>

  get connected(): boolean {
    return this.members.some(({ link }) => link.connected)
  }

  get closed(): boolean {
    return this.ended.signal.aborted
  }

  /** Throws `SandlotError`, as the agent does, or `agent_unavailable`. */
  request(method: string, params: object): Promise<unknown> {
    return this.again(
      () => this.memberFor(method, params),
      ({ link }) => link.request(method, params),
      () => isRepeatable(method, params),
    )
  }

  /** The answer of every agent that answers, at least one. Throws the last one's error. */
  async each(method: string, params: object): Promise<Answered<unknown>[]> {
    const asked = await Promise.allSettled(
      this.connectedMembers().map(async ({ replica, link }) => ({
        replica: replica.id,
        answer: await link.request(method, params),
      })),
    )
    const answered = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const failed = asked.findLast((one) => one.status === 'rejected')
    if (answered.length === 0 && failed !== undefined) throw failed.reason
    return answered
  }

  /** Throws `agent_unavailable`. */
  async notify(method: string, params: object): Promise<void> {
    await this.again(
      () => this.memberFor(method, params, true),
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
      () => this.memberFor(method, params),
      async (member) => ({ ...member, ...streamTicket.parse(await member.link.request(method, params)) }),
      () => isRepeatable(method, params),
    )
    return link.openStream(ticket)
  }

  /** A separate connection to the agent of `holder`. Throws `agent_unavailable`. */
  async open(holder: string, onNotification: OnNotification): Promise<AgentConnection> {
    this.ended.signal.throwIfAborted()
    return (await this.memberOf(holder, true)).link.open(onNotification)
  }

  /** A separate connection for this request. Throws `agent_unavailable`. */
  openFor(method: string, params: object, onNotification: OnNotification): Promise<AgentConnection> {
    return this.again(
      () => this.memberFor(method, params, true),
      ({ link }) => link.open(onNotification),
      () => true,
    )
  }

  /** The status of all agents together. Throws `agent_unavailable`, also after a time-out. */
  async status(): Promise<AgentStatus> {
    this.#lastStatus = await this.readStatus()
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

  /** The settings that hold for this user; undefined: not known now. Does not throw. */
  async settingsOf(user: AgentUser): Promise<EffectiveSettings | undefined> {
    const member = await Promise.resolve(this.memberOf(user.id)).catch(() => undefined)
    return member?.link.settingsOf(user)
  }

  /** Resolves when any is reachable. Rejects when `signal` aborts or this is closed. */
  async whenConnected(signal: AbortSignal): Promise<void> {
    const given = AbortSignal.any([signal, this.ended.signal])
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
    this.ended.abort()
    await Promise.all(this.members.map(({ link }) => link.close()))
  }

  /** Throws `agent_unavailable` where none is. */
  protected connectedMembers(): readonly Member[] {
    const connected = this.members.filter(({ link }) => link.connected)
    if (connected.length === 0) throw unavailable()
    return connected
  }

  /** Begins to connect to the agent of this id. */
  protected openLink(id: string, place: AgentPlace): AgentLink {
    const { log, onSessionChanged, onConnected, pauses } = this.#options
    return new AgentLink({
      place,
      log: id === ONLY.id ? log : log.child({ replica: id }),
      onSessionChanged,
      onConnected: (connected) => {
        if (connected) for (const wake of this.#waiting) wake()
        if (connected) this.#waiting.clear()
        // Another may still be.
        onConnected(connected || this.connected)
      },
      pauses,
    })
  }
}

/** One agent at a fixed address, where chats are a file. */
export class OneAgent extends Agents {
  readonly #only: Member

  constructor(place: AgentPlace, options: AgentsOptions) {
    super(options)
    this.#only = { replica: { ...ONLY, url: place.url }, link: this.openLink(ONLY.id, place) }
  }

  protected get members(): readonly Member[] {
    return [this.#only]
  }

  list(): undefined {}

  byAgent(userIds: readonly string[]): Promise<string[][]> {
    return Promise.resolve([[...userIds]])
  }

  holderOf(): Promise<string> {
    return Promise.resolve(ONLY.id)
  }

  protected memberFor(): Member {
    return this.#only
  }

  protected memberOf(): Member {
    return this.#only
  }

  async again<C, T>(connect: () => C | Promise<C>, use: (connected: C) => Promise<T>): Promise<T> {
    const connected = connect()
    return use(connected instanceof Promise ? await connected : connected)
  }

  lookAgain(): Promise<void> {
    return Promise.resolve()
  }

  protected readStatus(): Promise<AgentStatus> {
    return this.#only.link.status()
  }

  metrics(): Promise<AgentMetricsAnswer | undefined> {
    return this.#only.link.metrics()
  }
}

export function isNotOwner(error: unknown): boolean {
  return error instanceof SandlotError && error.code === 'not_owner'
}

export function unavailable(cause?: unknown): SandlotError {
  const words = 'The agent is not reachable just now. Try again in a moment.'
  return new SandlotError('agent_unavailable', words, { cause })
}
