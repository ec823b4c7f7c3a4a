/** What the agent itself says to the user of a client that is not ours, beside the model's answers and outside the log. */
import { randomUUID } from 'node:crypto'
import {
  type AgentContext,
  type SessionUpdate,
  type ClientCapabilities,
  methods,
} from '@agentclientprotocol/sdk'
import { messageOf } from '@sandlot/shared/errors'
import { z } from 'zod'
import type { ToolLog } from '../tools/tool.ts'
import { type Note, type ForeignOptions, spoken, noticeOf, wordsOf } from './foreign-client.ts'
import { serviceCapability } from '@sandlot/shared/acp-meta'

// ── What a client can ───────────────────────────────────────────────────────────────────────────

export interface ClientWishes extends ForeignOptions {
  /** Our own service: it gets our stream as it is, and says for which user it asks. */
  ours: boolean
  /** Our own service's connection for what concerns everybody: it is told of every change in a session list. */
  sessionChanges: boolean
  /** It can ask its user whether to open a link. */
  links: boolean
}

const meta = z.looseObject({
  sandlot: serviceCapability.optional().catch(undefined),
  terminal_output: z.boolean().optional().catch(undefined),
  terminal_output_delta: z.boolean().optional().catch(undefined),
})

/** Of a client that has said nothing. */
export const NO_WISHES: ClientWishes = {
  ours: false,
  sessionChanges: false,
  links: false,
  terminal: undefined,
}

export function wishesOf(capabilities: ClientCapabilities | undefined): ClientWishes {
  const said = meta.parse(capabilities?._meta ?? {})
  return {
    ours: said.sandlot !== undefined,
    sessionChanges: said.sandlot?.sessionChanges === true,
    links: capabilities?.elicitation?.url != null,
    terminal: terminalOf(said),
    compaction: capabilities?.session?.compaction != null,
    notices: capabilities?.session?.notices != null,
  }
}

function terminalOf(said: z.output<typeof meta>): ForeignOptions['terminal'] {
  if (said.terminal_output === true) return 'terminal_output'
  return said.terminal_output_delta === true ? 'terminal_output_delta' : undefined
}

/** The SDK does not check answers. */
const accepted = z.looseObject({ action: z.literal('accept') })

export interface Link {
  url: string
  /** Aborted when somebody has come back from it, however that ended. */
  over: AbortSignal
}

export class Asides {
  readonly #client: AgentContext
  readonly #closed: AbortSignal
  readonly #log: ToolLog
  #wishes: ClientWishes = NO_WISHES

  constructor(client: AgentContext, closed: AbortSignal, log: ToolLog) {
    this.#client = client
    this.#closed = closed
    this.#log = log
  }

  /** From now on they are said as this client wants them. */
  suit(wishes: ClientWishes): void {
    this.#wishes = wishes
  }

  /** A sentence that must be read, as the agent's own words. */
  async say(sessionId: string, text: string): Promise<void> {
    await this.#update(sessionId, spoken(text))
  }

  /** As notices; in words, in brackets before what the agent says next. */
  async note(sessionId: string, notes: readonly Note[]): Promise<void> {
    if (notes.length === 0) return
    if (this.#wishes.notices === true) for (const note of notes) await this.#update(sessionId, noticeOf(note))
    else await this.say(sessionId, inBrackets(notes.map(wordsOf).join(' ')))
  }

  /** The same for one, never in anybody's way. */
  tell(sessionId: string, note: Note): void {
    this.#beside(this.note(sessionId, [note]))
  }

  /**
   * A sentence with a link to open: where the client can, it asks its user whether to. What they say changes nothing here;
   * when `over` is aborted nobody can do anything at the link any more, and the client hears of that. Always something that is
   * not missed: a notice may be gone before its link was opened.
   */
  offer(sessionId: string, text: string, { url, over }: Link): void {
    const inWords = inBrackets(`${text.replace(/\.$/, '')}: ${url}`)
    if (!this.#wishes.links) return this.#beside(this.say(sessionId, inWords))
    const elicitationId = randomUUID()
    // Whoever has said no, or is gone, waits for nothing.
    const nobodyWaits = new AbortController()
    const { signal } = nobodyWaits
    this.#closed.addEventListener('abort', () => nobodyWaits.abort(), { once: true, signal })
    const complete = (): void => {
      nobodyWaits.abort()
      this.#beside(this.#client.notify(methods.client.elicitation.complete, { elicitationId }))
    }
    over.addEventListener('abort', complete, { once: true, signal })
    const asked = { mode: 'url' as const, sessionId, elicitationId, url, message: text }
    this.#client.request(methods.client.elicitation.create, asked).then(
      (answer: unknown) => {
        if (!accepted.safeParse(answer).success) nobodyWaits.abort()
      },
      (error: unknown) => {
        nobodyWaits.abort()
        if (this.#closed.aborted) return
        this.#log.warn({ error: messageOf(error) }, 'a client could not ask its user to open a link')
        this.#beside(this.say(sessionId, inWords))
      },
    )
  }

  async #update(sessionId: string, update: SessionUpdate): Promise<void> {
    await this.#client.notify(methods.client.session.update, { sessionId, update })
  }

  #beside(sending: Promise<void>): void {
    sending.catch((error: unknown) => {
      // A connection that is gone has nobody to tell; anything else is worth knowing.
      if (!this.#closed.aborted) this.#log.warn({ error: messageOf(error) }, 'a client could not be told')
    })
  }
}

function inBrackets(words: string): string {
  return `(${words})\n\n`
}
