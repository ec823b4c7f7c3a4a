/**
 * The pending sign-ins of one user to one server: stored as a secret of theirs, so that a user who
 * was redirected before a restart of the agent comes back to the same. Each can be used once, and
 * expires.
 */
import { MAX_SECRET_CHARS } from '@sandlot/shared/account/secrets'
import { z } from 'zod'
import { SealError } from '../../people/vault.ts'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'

/** Contains everything to finish it, so that nothing is looked up again. */
const flow = z.object({
  /** Identifies it; secret until the link is opened. */
  state: z.string(),
  /** The sign-in page. */
  url: z.string(),
  /** The PKCE verifier. */
  verifier: z.string(),
  /** The part of the authority's metadata that a code exchange needs. */
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
  /** Absent: the operator's client, whose secret is only in the configuration. */
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

/** Valid links at a time, each for the scopes needed when it was made. */
const MAX_LINKS = 4

interface FlowsOptions {
  read: () => Promise<string | undefined>
  /** Undefined removes them. */
  save: (flows: string | undefined) => Promise<void>
  /** Describes the configuration they began with: when that changes, they are invalid. */
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

  /** The ones that are valid now, the newest last. */
  async pending(): Promise<Flow[]> {
    const { about, now } = this.#options
    const text = await this.#read()
    const read = text === undefined ? undefined : record.safeParse(JSON.parse(text)).data
    if (read === undefined || read.about !== (await about())) return []
    return read.flows.filter(({ endsAt }) => now() < endsAt)
  }

  /** Durable when it resolves. Evicts the oldest. */
  add(begun: Flow): Promise<void> {
    // Parsed as it will be read: without members that the end does not need.
    const added = flow.parse(begun)
    return this.#queue.run(async () => this.#save([...(await this.pending()), added].slice(-MAX_LINKS)))
  }

  /** Takes the one with this state: it is removed durably when this resolves. */
  take(state: string): Promise<Flow | undefined> {
    return this.#queue.run(async () => {
      const pending = await this.pending()
      const taken = pending.find((one) => one.state === state)
      if (taken !== undefined) await this.#save(pending.filter((one) => one !== taken))
      return taken
    })
  }

  async #save(flows: readonly Flow[]): Promise<void> {
    const { save, about } = this.#options
    if (flows.length === 0) return save(undefined)
    const text = JSON.stringify({ about: await about(), flows })
    // With large metadata fewer fit.
    return text.length > MAX_SECRET_CHARS && flows.length > 1 ? this.#save(flows.slice(1)) : save(text)
  }

  async #read(): Promise<string | undefined> {
    try {
      return await this.#options.read()
    } catch (error) {
      // Sealed with a key that is gone: the next link replaces it.
      if (error instanceof SealError) return undefined
      throw error
    }
  }
}
