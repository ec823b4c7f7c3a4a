/**
 * The agent's own messages to the user of a foreign client: texts, notices and links that are
 * neither the model's answers nor in the log.
 */
import { randomUUID } from 'node:crypto'
import {
  type AgentContext,
  type SessionUpdate,
  type ClientCapabilities,
  methods,
} from '@agentclientprotocol/sdk'
import { messageOf } from '@sandlot/shared/base/errors'
import { z } from 'zod'
import type { Log } from '../../log.ts'
import { type Notice, type ForeignOptions, textUpdate, noticeUpdate } from './foreign-client.ts'

// ── Capabilities of a client ────────────────────────────────────────────────────────────────────

export interface ClientFeatures extends ForeignOptions {
  /** It can ask its user whether to open a link. */
  links: boolean
}

const meta = z.looseObject({
  terminal_output: z.boolean().optional().catch(undefined),
  terminal_output_delta: z.boolean().optional().catch(undefined),
})

/** The features of a client that has declared none. */
export const NO_FEATURES: ClientFeatures = {
  links: false,
  terminal: undefined,
}

/** The features that a client's `clientCapabilities` declare. Pure. */
export function clientFeatures(capabilities: ClientCapabilities | undefined): ClientFeatures {
  const sent = meta.parse(capabilities?._meta ?? {})
  return {
    links: capabilities?.elicitation?.url != null,
    terminal: terminalOf(sent),
    compaction: capabilities?.session?.compaction != null,
    notices: capabilities?.session?.notices != null,
  }
}

function terminalOf(sent: z.output<typeof meta>): ForeignOptions['terminal'] {
  if (sent.terminal_output === true) return 'terminal_output'
  return sent.terminal_output_delta === true ? 'terminal_output_delta' : undefined
}

/** The SDK does not check answers. */
const accepted = z.looseObject({ action: z.literal('accept') })

export interface Link {
  url: string
  /** Aborted when the user has returned from the link, whatever the result. */
  completed: AbortSignal
}

export class ClientMessages {
  readonly #client: AgentContext
  readonly #closed: AbortSignal
  readonly #log: Log
  #features: ClientFeatures = NO_FEATURES

  constructor(client: AgentContext, closed: AbortSignal, log: Log) {
    this.#client = client
    this.#closed = closed
    this.#log = log
  }

  /** Sets the form in which later messages are sent. */
  configure(features: ClientFeatures): void {
    this.#features = features
  }

  /** Sends a text that must be read, as a message of the agent. */
  async sendText(sessionId: string, text: string): Promise<void> {
    await this.#update(sessionId, textUpdate(text))
  }

  /**
   * Sends notices. A client without them gets none: as text they would be a part of the model's
   * answer, which programs read.
   */
  async sendNotifications(sessionId: string, notices: readonly Notice[]): Promise<void> {
    if (this.#features.notices !== true) return
    for (const notice of notices) await this.#update(sessionId, noticeUpdate(notice))
  }

  /** Sends one notice in the background. Never throws. */
  sendNotification(sessionId: string, notice: Notice): void {
    this.#beside(this.sendNotifications(sessionId, [notice]))
  }

  /**
   * Sends a text with a link. A client that can asks its user whether to open it; the answer
   * changes nothing here. When `completed` aborts, sends `elicitation/complete`. Never a notice,
   * which may be gone before its link was opened.
   */
  offerLink(sessionId: string, text: string, { url, completed }: Link): void {
    const inWords = inBrackets(`${text.replace(/\.$/, '')}: ${url}`)
    if (!this.#features.links) return this.#beside(this.sendText(sessionId, inWords))
    const elicitationId = randomUUID()
    // Declined or disconnected: do not send `elicitation/complete`.
    const done = new AbortController()
    const { signal } = done
    this.#closed.addEventListener('abort', () => done.abort(), { once: true, signal })
    const complete = (): void => {
      done.abort()
      this.#beside(this.#client.notify(methods.client.elicitation.complete, { elicitationId }))
    }
    completed.addEventListener('abort', complete, { once: true, signal })
    const asked = { mode: 'url' as const, sessionId, elicitationId, url, message: text }
    this.#client.request(methods.client.elicitation.create, asked).then(
      (answer: unknown) => {
        if (!accepted.safeParse(answer).success) done.abort()
      },
      (error: unknown) => {
        done.abort()
        if (this.#closed.aborted) return
        this.#log.warn({ error: messageOf(error) }, 'a client could not ask its user to open a link')
        this.#beside(this.sendText(sessionId, inWords))
      },
    )
  }

  async #update(sessionId: string, update: SessionUpdate): Promise<void> {
    await this.#client.notify(methods.client.session.update, { sessionId, update })
  }

  #beside(sending: Promise<void>): void {
    sending.catch((error: unknown) => {
      // On a closed connection this is expected.
      if (!this.#closed.aborted)
        this.#log.warn({ error: messageOf(error) }, 'a message to a client was not sent')
    })
  }
}

function inBrackets(words: string): string {
  return `(${words})\n\n`
}
