/**
 * The connection of one reader: opened when first needed, and reopened when it is lost while
 * sessions are open.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@sandlot/shared/base/errors'
import type { Logger } from '../log.ts'
import type { AgentConnection, OnNotification } from './agent-client.ts'
import { type Agents, isNotOwner } from './agents.ts'

/** Pause before it is tried again although the agent is reachable. */
const RETRY_MS = 500

interface ReaderConnectionOptions {
  agent: Agents
  /** The owner of the agent. */
  holder: string
  log: Logger
  onNotification: OnNotification
  /** True if a lost connection is reopened automatically. */
  wanted: () => boolean
  /** Called with each reopened connection. If it rejects, it is called again. */
  onBack: (connection: AgentConnection) => Promise<void>
}

export class ReaderConnection {
  readonly #options: ReaderConnectionOptions
  readonly #closed = new AbortController()
  #opening: Promise<AgentConnection> | undefined
  #restoring = false

  constructor(options: ReaderConnectionOptions) {
    this.#options = options
  }

  get closed(): boolean {
    return this.#closed.signal.aborted
  }

  /** Throws `agent_unavailable`, or an `AbortError` after `close()`. */
  get(): Promise<AgentConnection> {
    this.#closed.signal.throwIfAborted()
    if (this.#opening !== undefined) return this.#opening
    const { agent, holder, onNotification } = this.#options
    const opening = agent.open(holder, onNotification)
    this.#opening = opening
    const forget = (): void => {
      if (this.#opening === opening) this.#opening = undefined
    }
    opening.then(async (connection) => {
      if (this.closed) connection.close()
      await connection.closed
      forget()
      if (this.#options.wanted()) this.restore()
    }, forget)
    return opening
  }

  /** `work` with this connection, which is of no use where another agent has the person by now. */
  async use<T>(connection: AgentConnection, work: (connection: AgentConnection) => Promise<T>): Promise<T> {
    try {
      return await work(connection)
    } catch (error) {
      if (isNotOwner(error)) {
        connection.close()
        await connection.closed
      }
      throw error
    }
  }

  /** Continues in the background until `onBack` has succeeded. */
  restore(): void {
    if (this.#restoring || this.closed) return
    this.#restoring = true
    void this.#restore().finally(() => {
      this.#restoring = false
    })
  }

  close(): void {
    if (this.closed) return
    this.#closed.abort()
    this.#opening?.then(
      (connection) => connection.close(),
      () => undefined,
    )
  }

  async #restore(): Promise<void> {
    const { agent, log, onBack } = this.#options
    const { signal } = this.#closed
    while (!signal.aborted) {
      try {
        await agent.whenConnected(signal)
        await this.use(await this.get(), onBack)
        return
      } catch (error) {
        if (signal.aborted || agent.closed) return
        log.debug({ error: messageOf(error) }, 'a reader is not reconnected to the agent yet')
        await Promise.all([agent.lookAgain(), sleep(RETRY_MS)])
      }
    }
  }
}
