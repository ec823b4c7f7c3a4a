/**
 * The service's connections to one ai-agent. One lasting connection for what concerns all users
 * (the agent's status, changes of the session lists, requests of the HTTP API), reopened with
 * growing pauses when it drops; and `open()`, a separate connection for each browser socket.
 *
 * Why not one connection for all sockets: the agent owns the join of history and live tail, and
 * does it per connection. On a shared one, two sockets that resume the same session at different
 * numbers would get each other's replays and snapshots in between their live tails, and the service
 * would have to join a second time to sort them out. On its own connection each socket gets exactly
 * what the agent sends, in order; a socket that reads slowly delays no other. The cost is a Unix
 * socket per open tab.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type BackoffRules, backoffMs } from '@sandlot/shared/async/backoff'
import { createKeyedGate } from '@sandlot/shared/async/keyed-lock'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { EXT, agentMetrics, agentStatus, sessionChanged, settingsAnswer } from '@sandlot/shared/acp/meta'
import type { AgentMetricsAnswer, AgentStatus, SessionChanged } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { EffectiveSettings } from '@sandlot/shared/account/agent-settings'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { Logger } from '../log.ts'
import type { WebSocket } from 'ws'
import { connectAgent, openAgentStream } from './agent-client.ts'
import type { AgentConnection, AgentPlace, OnNotification } from './agent-client.ts'
import { askerOf } from './addressee.ts'

const STATUS_TIMEOUT_MS = 3_000
/** Requests of one user. */
const MOST_OF_ONE = 8
/** These pass the user's own: the page and approvals do not wait for a program's requests. */
const FIRST = new Set<string>([EXT.approve, EXT.approvals, EXT.cancelCall, EXT.settings])

export interface AgentLinkOptions {
  place: AgentPlace
  log: Logger
  /** Must not throw. */
  onSessionChanged: (change: SessionChanged) => void
  onConnected: (connected: boolean) => void
  /** First and longest pause before the next try, in milliseconds. */
  pauses?: BackoffRules
}

export class AgentLink {
  readonly #options: AgentLinkOptions
  readonly #pauses: BackoffRules
  readonly #ended = new AbortController()
  #current: AgentConnection | undefined
  /** Each closes a connection or a stream that is open. */
  readonly #opened = new Set<() => void>()
  readonly #inTurn = createKeyedGate(MOST_OF_ONE)
  readonly #running: Promise<void>

  constructor(options: AgentLinkOptions) {
    this.#options = options
    this.#pauses = options.pauses ?? { firstMs: 150, longestMs: 1_500 }
    this.#running = this.#keepConnected()
  }

  get connected(): boolean {
    return this.#current !== undefined
  }

  get closed(): boolean {
    return this.#ended.signal.aborted
  }

  /** Opens a separate connection for the caller. Throws `agent_unavailable`. */
  async open(onNotification: OnNotification): Promise<AgentConnection> {
    this.#ended.signal.throwIfAborted()
    const { place, log } = this.#options
    try {
      const connection = await connectAgent(place, onNotification)
      this.#closeWithUs(() => connection.close(), connection.closed)
      return connection
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined
      log.warn({ error: messageOf(cause ?? error) }, 'a reader could not be connected to the agent')
      throw error
    }
  }

  /** The byte stream of a ticket, not read yet. Throws `agent_unavailable`. */
  async openStream(ticket: string): Promise<WebSocket> {
    const socket = await openAgentStream(this.#options.place, ticket)
    const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()))
    this.#closeWithUs(() => socket.terminate(), closed)
    return socket
  }

  /**
   * By the lasting connection, which is read in order: of one user so few requests are under way
   * that those of others do not wait behind many. Throws `SandlotError`.
   */
  async request(method: string, params: object): Promise<unknown> {
    const send = async (): Promise<unknown> => this.#connected().request(method, params)
    const user = FIRST.has(method) ? undefined : askerOf(params)
    return user === undefined ? send() : this.#inTurn(user, send)
  }

  /** By the lasting connection. Throws `agent_unavailable`. */
  async notify(method: string, params: object): Promise<void> {
    await this.#connected().notify(method, params)
  }

  /** The agent's status. Throws `agent_unavailable`, also after a timeout. */
  async status(): Promise<AgentStatus> {
    const answer = await this.#soon(EXT.status, {})
    if (answer === undefined) throw new SandlotError('agent_unavailable', 'The agent does not answer.')
    return agentStatus.parse(answer)
  }

  /** The agent's metrics; undefined when it does not answer in time. Does not throw. */
  metrics(): Promise<AgentMetricsAnswer | undefined> {
    return this.#readSoon(EXT.metrics, {}, (answer) => agentMetrics.parse(answer))
  }

  /** The settings that hold for this user; undefined: not known now. Does not throw. */
  settingsOf(user: AgentUser): Promise<EffectiveSettings | undefined> {
    const params = { user, ask: { do: 'own' } }
    return this.#readSoon(EXT.settings, params, (answer) => settingsAnswer.parse(answer).effective)
  }

  async #readSoon<T>(method: string, params: object, read: (answer: unknown) => T): Promise<T | undefined> {
    try {
      const answer = await this.#soon(method, params)
      return answer === undefined ? undefined : read(answer)
    } catch (error) {
      this.#options.log.debug({ method, error: messageOf(error) }, 'the agent did not answer')
      return undefined
    }
  }

  /** Undefined when it does not answer in time. */
  async #soon(method: string, params: object): Promise<unknown> {
    return orTimeout(this.request(method, params), STATUS_TIMEOUT_MS, undefined)
  }

  /** With everything that it has opened. */
  async close(): Promise<void> {
    this.#ended.abort()
    this.#current?.close()
    for (const close of this.#opened) close()
    await this.#running
  }

  /** An agent that is dead to the others may look alive from here: its host is cut off. */
  #closeWithUs(close: () => void, closed: Promise<void>): void {
    this.#opened.add(close)
    void closed.then(() => this.#opened.delete(close))
    if (this.closed) close()
  }

  #connected(): AgentConnection {
    if (this.#current !== undefined) return this.#current
    throw new SandlotError('agent_unavailable', 'The agent is not reachable just now. Try again in a moment.')
  }

  async #keepConnected(): Promise<void> {
    const { place, log, onConnected } = this.#options
    const { signal } = this.#ended
    let refusal: string | undefined
    let failures = 0
    while (!signal.aborted) {
      try {
        const onNotification: OnNotification = (method, params) => this.#onNotification(method, params)
        const connection = await connectAgent(place, onNotification, { sessionChanges: true })
        if (signal.aborted) {
          connection.close()
          break
        }
        log.info('connected to the agent')
        failures = 0
        refusal = undefined
        this.#current = connection
        onConnected(true)
        await connection.closed
        this.#current = undefined
        onConnected(false)
        if (!signal.aborted) log.warn('disconnected from the agent; reconnecting')
      } catch (error) {
        const cause = error instanceof Error ? error.cause : undefined
        log.debug({ error: messageOf(cause ?? error), failures }, 'the agent is not reachable')
        const why = refusalOf(cause)
        // Not with each try: it stays so until a person mends it.
        if (why !== undefined && why !== refusal) log.error({ error: messageOf(cause) }, why)
        refusal = why
      }
      // Random, so that several services do not return in the same instant.
      const pause = backoffMs(++failures, this.#pauses, Math.random)
      await sleep(pause, undefined, { signal }).catch(ignoreAbort)
    }
  }

  #onNotification(method: string, params: unknown): void {
    if (method !== EXT.sessionChanged) return
    const changed = sessionChanged.safeParse(params)
    if (changed.success) this.#options.onSessionChanged(changed.data)
    else
      this.#options.log.warn({ method, problem: changed.error.message }, 'the agent sent an unknown message')
  }
}

/** An error that an operator has to fix and that no retry does; undefined: another kind. */
function refusalOf(cause: unknown): string | undefined {
  const said = messageOf(cause)
  if (/server response: 401/.test(said))
    return 'the agent refuses SANDLOT_AGENT_TOKEN: agents and services must have the same'
  if (/certificate/i.test(said)) return 'what listens in place of the agent has another certificate'
  return undefined
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error) || error.name !== 'AbortError') throw error
}
