/**
 * The connection of our own service: it gets our stream unchanged, and names the user of each
 * request.
 */
import {
  type AnyMessage,
  type ClientCapabilities,
  type PromptResponse,
  methods,
} from '@agentclientprotocol/sdk'
import { agentUser, type AgentUser } from '@sandlot/shared/account/agent-user'
import type { AgentRequest } from '@sandlot/shared/agent-requests'
import { EXT, loadSessionMeta, promptMeta, serviceCapability, typingParams } from '@sandlot/shared/acp/meta'
import { Recent } from '@sandlot/shared/async/recent'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { z } from 'zod'
import type { Session } from '../session/session.ts'
import { type AskedPrompt, type ConnectionParts, type EndedPrompt, ClientConnection } from './connection.ts'
import { parseParams } from './errors.ts'

const withUser = z.looseObject({ sandlot: z.looseObject({ user: agentUser }) })
const meta = z.looseObject({ sandlot: serviceCapability.optional().catch(undefined) })

/** Caches the last events: the same object for each reader, written as JSON once for all. */
const sent = new Recent<readonly SessionEvent[], object>(
  (one, other) => one.length === other.length && one.every((event, index) => event === other[index]),
)

/** Writes a notification without the SDK's queue. Undefined: the next one may follow at once. */
export type SendNow = (message: AnyMessage) => Promise<void> | undefined

/** The capability of our service; undefined: the client is an editor. */
export function serviceCapabilityOf(
  capabilities: ClientCapabilities | undefined,
): z.output<typeof serviceCapability> | undefined {
  return meta.parse(capabilities?._meta ?? {}).sandlot
}

const aboutPerson = z.object({
  userId: z.string().optional(),
  user: z.object({ id: z.string() }).optional(),
})

export class ServiceConnection extends ClientConnection {
  readonly #sendNow: SendNow | undefined
  readonly #close: () => void
  #sendsChanges = false

  /** `sendNow`: if the stream has it. */
  constructor(parts: ConnectionParts, close: () => void, sendNow: SendNow | undefined) {
    super(parts)
    this.#close = close
    this.#sendNow = sendNow
  }

  initialize(capabilities: ClientCapabilities | undefined): void {
    if (this.#sendsChanges || serviceCapabilityOf(capabilities)?.sessionChanges !== true) return
    this.#sendsChanges = true
    void this.#sendChanges()
  }

  extensionParams(_request: AgentRequest, params: unknown): unknown {
    return params
  }

  claim({ claims }: AgentRequest, params: unknown): Promise<void> | undefined {
    const { ownership } = this.parts
    if (claims === undefined) return undefined
    // The handler refuses params of another shape.
    const { success, data } = aboutPerson.safeParse(params)
    const userId = success ? (data.userId ?? data.user?.id) : undefined
    return userId === undefined || ownership.has(userId) ? undefined : ownership.claim(userId)
  }

  meta<S extends z.ZodType>(schema: S, given: unknown): z.infer<S> {
    return parseParams(z.looseObject({ sandlot: schema }), given, '_meta').sandlot as z.infer<S>
  }

  async typing(params: unknown): Promise<void> {
    const { data } = typingParams.safeParse(params)
    if (data === undefined) return
    const { user, sessionId } = data
    try {
      const { session } = await this.parts.manager.open(user, sessionId, 'take_part')
      session.typing(user.id)
    } catch (error) {
      const fields = { sessionId, error: messageOf(error) }
      this.parts.log.warn(fields, 'a typing notification had no effect')
    }
  }

  // ── Sessions and prompts ──────────────────────────────────────────────────────────────────────

  eventsBefore(given: unknown): number {
    return this.meta(loadSessionMeta, given).after ?? 0
  }

  loadedMeta(seq: number): { _meta: object } {
    return { _meta: { sandlot: { seq } } }
  }

  /** Our service names no servers: what a page says is not a client's word about this machine. */
  begin(_session: Session, servers: readonly unknown[] | null | undefined): void {
    if ((servers ?? []).length > 0)
      throw new SandlotError('forbidden', 'MCP servers of a session come from a client at this machine.')
  }

  offerCommands(): void {}

  promptMeta(given: unknown): AskedPrompt {
    return this.meta(promptMeta, given)
  }

  beforePrompt(): undefined {}

  suppressEcho(): void {}

  async accepted(sessionId: string, promptId: string, requestId: string | undefined): Promise<void> {
    await this.notify(EXT.promptAccepted, { sessionId, promptId, requestId })
  }

  promptResponse({ stopReason, promptId, reason, duplicate }: EndedPrompt): PromptResponse {
    return {
      stopReason,
      _meta: { sandlot: { promptId, reason, ...(duplicate ? { duplicate } : {}) } },
    }
  }

  // ── Sending ───────────────────────────────────────────────────────────────────────────────────

  protected send({ id: sessionId }: Session, events: readonly SessionEvent[]): Promise<void> | undefined {
    const [update] = events
    const isOne = events.length === 1
    const params = sent.get(events, () => (isOne ? { sessionId, update } : { sessionId, updates: events }))
    return this.post(isOne ? methods.client.session.update : EXT.sessionUpdates, params)
  }

  /**
   * Our service reads notifications before the SDK does. Responses follow on the wire what was sent
   * before them.
   */
  protected override post(method: string, params: object): Promise<void> | undefined {
    if (this.#sendNow === undefined || this.closed.aborted) return super.post(method, params)
    return this.#sendNow({ jsonrpc: '2.0', method, params })
  }

  protected userOf(given: unknown): AgentUser {
    return parseParams(withUser, given, '_meta').sandlot.user
  }

  protected readerOf(user: AgentUser): AgentUser {
    return user
  }

  protected caughtUp(): void {}

  protected override async unshared(sessionId: string): Promise<void> {
    await super.unshared(sessionId)
    await this.notify(EXT.sessionClosed, { sessionId, why: 'unshared' })
  }

  /** It connects again, to the agent that has the session now. */
  protected override moved(sessionId: string): void {
    super.moved(sessionId)
    this.#close()
  }

  /** If the new owner belongs to another agent, it connects again, to that one. */
  protected override async handedOver(sessionId: string, user: AgentUser, after: number): Promise<void> {
    await super.handedOver(sessionId, user, after)
    try {
      const { session, access } = await this.parts.manager.open(user, sessionId, 'read')
      this.follow(session, after, user, access)
    } catch (error) {
      if (error instanceof SandlotError && error.code === 'not_found') return this.unshared(sessionId)
      this.#close()
    }
  }

  /** Sends every change in the session lists of all users. Ends with the connection. */
  async #sendChanges(): Promise<void> {
    for await (const change of this.parts.manager.shares.changes(this.closed))
      await this.notify(EXT.sessionChanged, change)
  }
}
