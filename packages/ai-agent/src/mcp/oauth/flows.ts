/**
 * The sign-ins of one user to one server that are under way: kept as a secret of theirs, so that somebody who was sent away
 * before the agent was started again comes back to the same. The kept record is the only one: each is good once and for a while.
 */
import { MAX_SECRET_CHARS } from '@sandlot/shared/secrets'
import { z } from 'zod'
import { SealError } from '../../secrets/vault.ts'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'

/** With all that its end needs, so that nothing is asked or found again then. */
const flow = z.object({
  /** Names it, and is known to nobody else before its link is opened. */
  state: z.string(),
  /** Where the user signs in. */
  url: z.string(),
  /** What proves that the code is ours (PKCE). */
  verifier: z.string(),
  /** Of what an authority says of itself, that which an exchange of a code needs. */
  authority: z.object({
    issuer: z.string(),
    url: z.string(),
    metadata: z
      .object({
        issuer: z.string(),
        authorization_endpoint: z.string(),
        token_endpoint: z.string(),
        response_types_supported: z.array(z.string()),
        token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
        authorization_response_iss_parameter_supported: z.boolean().optional(),
      })
      .optional(),
    resource: z.string().optional(),
  }),
  /** Absent: the operator's own, whose secret is in the configuration and nowhere else. */
  client: z
    .object({
      client_id: z.string(),
      client_secret: z.string().optional(),
      token_endpoint_auth_method: z.string().optional(),
    })
    .optional(),
  scope: z.string().optional(),
  /** Epoch milliseconds. */
  endsAt: z.number(),
})
export type Flow = z.output<typeof flow>

const record = z.object({ about: z.string(), flows: z.array(flow) })

/** Links that are good at the same time, each for what was wanted when it was made. */
const MAX_LINKS = 4

export interface FlowsOptions {
  read: () => Promise<string | undefined>
  /** Undefined removes them. */
  keep: (flows: string | undefined) => Promise<void>
  /** What they were begun with, in a word: where that has changed since, they lead nowhere. */
  about: () => Promise<string>
  /** Epoch milliseconds. */
  now: () => number
}

export class Flows {
  readonly #options: FlowsOptions
  readonly #queue = new SerialQueue()

  constructor(options: FlowsOptions) {
    this.#options = options
  }

  /** Those that are good now, the newest last. */
  async alive(): Promise<Flow[]> {
    const { about, now } = this.#options
    const text = await this.#read()
    const read = text === undefined ? undefined : record.safeParse(JSON.parse(text)).data
    if (read === undefined || read.about !== (await about())) return []
    return read.flows.filter(({ endsAt }) => now() < endsAt)
  }

  /** Durable when it resolves. The oldest makes room. */
  add(begun: Flow): Promise<void> {
    // As it will be read: without what an end does not need.
    const added = flow.parse(begun)
    return this.#queue.run(async () => this.#keep([...(await this.alive()), added].slice(-MAX_LINKS)))
  }

  /** The one of this state, for the only time: it is gone for good when this resolves. */
  take(state: string): Promise<Flow | undefined> {
    return this.#queue.run(async () => {
      const alive = await this.alive()
      const taken = alive.find((one) => one.state === state)
      if (taken !== undefined) await this.#keep(alive.filter((one) => one !== taken))
      return taken
    })
  }

  async #keep(flows: readonly Flow[]): Promise<void> {
    const { keep, about } = this.#options
    if (flows.length === 0) return keep(undefined)
    const text = JSON.stringify({ about: await about(), flows })
    // Of an authority with much to say fewer find room.
    return text.length > MAX_SECRET_CHARS && flows.length > 1 ? this.#keep(flows.slice(1)) : keep(text)
  }

  async #read(): Promise<string | undefined> {
    try {
      return await this.#options.read()
    } catch (error) {
      // Sealed with a key that is not there any more: the next link takes its place.
      if (error instanceof SealError) return undefined
      throw error
    }
  }
}
