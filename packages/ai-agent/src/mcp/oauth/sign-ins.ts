/** Users' access to servers with OAuth: finds the sign-in that a user returns from. */
import type { Log } from '../../log.ts'
import { reasonOf } from '../error.ts'
import { OAuthAccess } from './access.ts'
import { type ClientServerFetch, oauthFetch } from './fetch.ts'
import { SecretRecords, type SecretStore } from './records.ts'
import type { HttpSpec } from '../server-spec.ts'

interface SignInsParts {
  /**
   * Servers that this user signs in to; they may return to one that was not used since the start.
   */
  specs: (userId: string) => readonly HttpSpec[]
  /** Access to a user's own servers and their sign-ins: they are not trusted. */
  ownFetch?: ((userId: string) => ClientServerFetch) | undefined
  secrets: SecretStore
  redirectUrl: string
  /** The URL of the client document; undefined when it cannot be fetched from outside. */
  documentUrl: string | undefined
  log: Log
}

/** Entries by user and server; an evicted one is restored from its records. */
const MAX_ACCESSES = 10_000

export type SignInResult = { server: string } | { problem: string }

export class SignIns {
  readonly #parts: SignInsParts
  readonly #accesses = new Map<string, OAuthAccess>()

  constructor(parts: SignInsParts) {
    this.#parts = parts
  }

  /** The same object for the same user and server. */
  access(spec: HttpSpec, userId: string): OAuthAccess {
    const key = JSON.stringify([userId, spec.place])
    const known = this.#accesses.get(key)
    if (known !== undefined) return known
    const { auth, url } = spec.config
    const oauth = auth?.type === 'oauth' ? auth : undefined
    const { clientId, issuer } = oauth ?? {}
    const { secrets, redirectUrl, documentUrl, ownFetch } = this.#parts
    const own = spec.added?.ownerId === undefined ? undefined : ownFetch?.(userId)
    const access = new OAuthAccess({
      url,
      redirectUrl: async () => redirectUrl,
      documentUrl: oauth?.clientDocument === false ? undefined : documentUrl,
      own: clientId === undefined ? undefined : { clientId, clientSecret: spec.clientSecret },
      issuer,
      scope: oauth?.scope,
      records: new SecretRecords(secrets, userId, spec.added?.recordsAs ?? spec.name),
      fetch: oauthFetch({
        named: issuer === undefined ? [url] : [url, issuer],
        ...(own === undefined ? {} : { toNamed: own.server, toPublic: own.authority }),
      }),
      now: Date.now,
    })
    this.#accesses.set(key, access)
    const [oldest] = this.#accesses.keys()
    if (this.#accesses.size > MAX_ACCESSES && oldest !== undefined) this.#accesses.delete(oldest)
    return access
  }

  /**
   * Finishes the user's sign-in with the parameters of the redirect. Never rejects; other users'
   * sign-ins are not touched.
   */
  async finish(userId: string, answer: URLSearchParams): Promise<SignInResult> {
    for (const spec of this.#parts.specs(userId)) {
      const about = { server: spec.name, userId, log: this.#parts.log }
      const ended = await finishSignIn(() => this.access(spec, userId), answer, about)
      if (ended !== undefined) return ended
    }
    return { problem: UNKNOWN_SIGN_IN }
  }
}

export const UNKNOWN_SIGN_IN =
  'This sign-in is not known any more. Ask for the link again in the chat: each is good for one sign-in, for ten minutes.'

/** Finishes the sign-in if `access` began it; undefined otherwise. Never rejects. */
export async function finishSignIn(
  access: () => OAuthAccess,
  answer: URLSearchParams,
  { server, userId, log }: { server: string; userId: string; log: Log },
): Promise<SignInResult | undefined> {
  try {
    const begunBy = access()
    const flow = await begunBy.take(answer.get('state') ?? '')
    if (flow === undefined) return undefined
    const refused = await begunBy.finish(flow, answer)
    if (refused !== undefined)
      return {
        problem: `${server} was not connected: ${refused.replaceAll(/\p{C}/gu, ' ').slice(0, 200)}`,
      }
    log.info({ server, userId }, 'a user has connected an MCP server')
    return { server }
  } catch (error) {
    log.warn({ server, error: reasonOf(error) }, 'a sign-in to an MCP server failed')
    return { problem: `${server} did not accept the sign-in. Ask for a new link in the chat.` }
  }
}
