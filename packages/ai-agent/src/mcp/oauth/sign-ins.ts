/** Users' accesses to servers that want OAuth: where somebody who comes back from an authorization server belongs. */
import type { ToolLog } from '../../tools/tool.ts'
import { reasonOf } from '../error.ts'
import { OAuthAccess } from './access.ts'
import { oauthFetch } from './fetch.ts'
import { SecretRecords, type SecretStore } from './records.ts'
import type { HttpSpec } from '../server-spec.ts'

export interface SignInsParts {
  /** Servers that people sign in to: also of those that nobody has asked for since the start somebody may come back. */
  specs: readonly HttpSpec[]
  secrets: SecretStore
  redirectUrl: string
  /** Where our description of ourselves is published; undefined when nobody outside could read it. */
  documentUrl: string | undefined
  log: ToolLog
}

/** Users times servers that are remembered; one that was forgotten is made again from what is kept. */
const MAX_ACCESSES = 10_000

export type SignedIn = { server: string } | { problem: string }

export class SignIns {
  readonly #parts: SignInsParts
  readonly #accesses = new Map<string, OAuthAccess>()

  constructor(parts: SignInsParts) {
    this.#parts = parts
  }

  /** The same object for the same user and server. */
  access(spec: HttpSpec, userId: string): OAuthAccess {
    const key = JSON.stringify([userId, spec.name])
    const known = this.#accesses.get(key)
    if (known !== undefined) return known
    const { auth, url } = spec.config
    const oauth = auth?.type === 'oauth' ? auth : undefined
    const { clientId, issuer } = oauth ?? {}
    const { secrets, redirectUrl, documentUrl } = this.#parts
    const access = new OAuthAccess({
      url,
      redirectUrl: async () => redirectUrl,
      documentUrl: oauth?.clientDocument === false ? undefined : documentUrl,
      own: clientId === undefined ? undefined : { clientId, clientSecret: spec.clientSecret },
      issuer,
      scope: oauth?.scope,
      records: new SecretRecords(secrets, userId, spec.name),
      fetch: oauthFetch({ named: issuer === undefined ? [url] : [url, issuer] }),
      now: Date.now,
    })
    this.#accesses.set(key, access)
    const [oldest] = this.#accesses.keys()
    if (this.#accesses.size > MAX_ACCESSES && oldest !== undefined) this.#accesses.delete(oldest)
    return access
  }

  /** What the authorization server sent the user back with. Never rejects; only that user's own sign-in is finished. */
  async finish(userId: string, answer: URLSearchParams): Promise<SignedIn> {
    for (const spec of this.#parts.specs) {
      const about = { server: spec.name, userId, log: this.#parts.log }
      const ended = await finishSignIn(() => this.access(spec, userId), answer, about)
      if (ended !== undefined) return ended
    }
    return { problem: UNKNOWN_SIGN_IN }
  }
}

export const UNKNOWN_SIGN_IN =
  'This sign-in is not known any more. Ask for the link again in the chat: each is good for one sign-in, for ten minutes.'

/** Ends the sign-in that this is the answer of, where `access` has begun it; undefined where it has not. Never rejects. */
export async function finishSignIn(
  access: () => OAuthAccess,
  answer: URLSearchParams,
  { server, userId, log }: { server: string; userId: string; log: ToolLog },
): Promise<SignedIn | undefined> {
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
