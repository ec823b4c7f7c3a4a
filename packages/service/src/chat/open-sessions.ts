/** The sessions that one reader follows, and how far each of them has been read. */
import { methods } from '@agentclientprotocol/sdk'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import type { AgentConnection } from '../agent/agent-client.ts'
import { isNotOwner } from '../agent/agents.ts'
import type { ReaderConnection } from '../agent/reader-connection.ts'
import { Cursor } from './cursor.ts'
import { CWD } from './submission.ts'

interface OpenSessionsOptions {
  user: AgentUser
  /** Must not throw or wait. */
  send: (frame: ServerFrame) => void
}

/** `work` with the connection to the agent of a session. */
type Connected = (work: (by: Connection) => Promise<void>) => Promise<void>

export interface Connection {
  reader: ReaderConnection
  connection: AgentConnection
}

interface OpenSession {
  /** By whose connection its events come. */
  reader: ReaderConnection
  cursor: Cursor
  /** Loads run in order, so that the last one decides. */
  loads: SerialQueue
}

export class OpenSessions {
  readonly #options: OpenSessionsOptions
  readonly #open = new Map<string, OpenSession>()

  constructor(options: OpenSessionsOptions) {
    this.#options = options
  }

  /** Ids of those whose events come by this connection. */
  by(reader: ReaderConnection): string[] {
    return [...this.#open].flatMap(([id, session]) => (session.reader === reader ? [id] : []))
  }

  anyBy(reader: ReaderConnection): boolean {
    return this.#open.values().some((session) => session.reader === reader)
  }

  readerOf(sessionId: string): ReaderConnection | undefined {
    return this.#open.get(sessionId)?.reader
  }

  has(sessionId: string): boolean {
    return this.#open.has(sessionId)
  }

  open(reader: ReaderConnection, sessionId: string, cursor: Cursor): OpenSession {
    const session = { reader, cursor, loads: new SerialQueue() }
    this.#open.set(sessionId, session)
    return session
  }

  /** No more events will come, so it is not loaded after a reconnect. */
  forget(sessionId: string): void {
    this.#open.delete(sessionId)
  }

  cursorOf(sessionId: string): Cursor | undefined {
    return this.#open.get(sessionId)?.cursor
  }

  /** Everything settled after `after`, what is in flight, then live. Resolves when caught up. */
  async resume(
    reader: ReaderConnection,
    sessionId: string,
    after: number,
    connected: Connected,
  ): Promise<void> {
    const known = this.#open.get(sessionId)
    known?.cursor.restart(after)
    const session = known ?? this.open(reader, sessionId, new Cursor(after))
    try {
      await connected(({ connection }) => this.#load(connection, sessionId, session, after))
    } catch (error) {
      // A session that the agent refuses gets no events; one that it could not answer for is loaded
      // after the reconnect.
      if (isUnavailable(error)) session.reader.restore()
      else if (known === undefined) this.forget(sessionId)
      throw error
    }
  }

  /** Its events come by this connection from now on, from where its reader stands. */
  async moveTo(reader: ReaderConnection, sessionId: string, connected: Connected): Promise<void> {
    const session = this.#open.get(sessionId)
    if (session === undefined) return
    session.reader = reader
    await this.resume(reader, sessionId, session.cursor.upTo, connected)
  }

  /**
   * Loads every open session of this connection from where its reader stands. One that the agent
   * refuses is forgotten and passed to `onRefused`. Rejects when the agent is lost again.
   */
  async loadAgain(
    reader: ReaderConnection,
    connection: AgentConnection,
    onRefused: (error: unknown, sessionId: string) => void,
  ): Promise<void> {
    for (const [sessionId, session] of this.#open) {
      if (session.reader !== reader) continue
      try {
        await this.#load(connection, sessionId, session, session.cursor.upTo)
      } catch (error) {
        if (isUnavailable(error) || isNotOwner(error)) throw error
        this.forget(sessionId)
        onRefused(error, sessionId)
      }
    }
  }

  #load(connection: AgentConnection, sessionId: string, session: OpenSession, after: number): Promise<void> {
    const { user, send } = this.#options
    return session.loads.run(async () => {
      await connection.request(methods.agent.session.load, {
        sessionId,
        cwd: CWD,
        mcpServers: [],
        _meta: { sandlot: { user, after } },
      })
      send({ type: 'ai_chat_caught_up', sessionId, seq: session.cursor.upTo })
    })
  }
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof SandlotError && error.code === 'agent_unavailable'
}
