/** Users' access to servers with OAuth: finds the sign-in that a user returns from. */
import { LRUCache } from 'lru-cache'
import type { Log } from '../../log.ts'
import { reasonOf } from '../error.ts'
import { OAuthAccess } from './access.ts'
import { type ClientServerFetch, oauthFetch } from './fetch.ts'
import type { OAuthRecords } from './records.ts'
import type { HttpSpec } from '../server-spec.ts'

interface SignInsParts {
  /** Identifies a server among those of a user. */
  keyOf: (spec: HttpSpec) => unknown
  records: (spec: HttpSpec, userId: string) => OAuthRecords
  /** Access to a server that is not trusted, and to its sign-in; undefined: it is trusted. */
  fetch: (spec: HttpSpec, userId: string) => ClientServerFetch | undefined
  /** The redirect target of authorization servers. */
  redirectUrl: () => Promise<string>
  /** The URL of the client document; undefined when it cannot be fetched from outside. */
  documentUrl: string | undefined
  /** Entries in memory; an evicted one is restored from its records. */
  most: number
  log: Log
}

/** One user's sign-in to one server. */
interface SignIn {
  spec: HttpSpec
  userId: string
}

interface Known extends SignIn {
  access: OAuthAccess
}

export type SignInResult = { server: string } | { problem: string }

export class SignIns {
  readonly #parts: SignInsParts
  readonly #known: LRUCache<string, Known>

  constructor(parts: SignInsParts) {
    this.#parts = parts
    this.#known = new LRUCache<string, Known>({ max: parts.most })
  }

  /** The same object for the same user and server. */
  access(spec: HttpSpec, userId: string): OAuthAccess {
    const key = this.#keyOf({ spec, userId })
    const access = this.#known.get(key)?.access ?? this.#make(spec, userId)
    this.#known.set(key, { spec, userId, access })
    return access
  }

  /** Those in memory, with the last spec of each server. */
  get known(): readonly SignIn[] {
    return [...this.#known.values()]
  }

  /** Forgets a removed user. */
  removeUser(userId: string): void {
    const forgotten = [...this.#known].filter(([, known]) => known.userId === userId)
    for (const [key] of forgotten) this.#known.delete(key)
  }

  /**
   * Finishes the one of these sign-ins that the redirect with these parameters belongs to. Never
   * rejects; others are not touched.
   */
  async finish(pending: readonly SignIn[], answer: URLSearchParams): Promise<SignInResult> {
    for (const signIn of pending) {
      const ended = await this.#finish(signIn, answer)
      if (ended !== undefined) return ended
    }
    return {
      problem:
        'This sign-in is not known any more. Ask for the link again in the chat: each is good for one sign-in, for ten minutes.',
    }
  }

  #keyOf({ spec, userId }: SignIn): string {
    return JSON.stringify([userId, this.#parts.keyOf(spec)])
  }

  /** Undefined: it was not begun here. Never rejects. */
  async #finish(signIn: SignIn, answer: URLSearchParams): Promise<SignInResult | undefined> {
    const { log } = this.#parts
    const { spec, userId } = signIn
    const server = spec.name
    try {
      // Reading does not count as use: the order of eviction stays.
      const access = this.#known.peek(this.#keyOf(signIn))?.access ?? this.access(spec, userId)
      const flow = await access.take(answer.get('state') ?? '')
      if (flow === undefined) return undefined
      const refused = await access.finish(flow, answer)
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

  #make(spec: HttpSpec, userId: string): OAuthAccess {
    const { auth, url } = spec.config
    const oauth = auth?.type === 'oauth' ? auth : undefined
    const { clientId, issuer } = oauth ?? {}
    const { records, redirectUrl, documentUrl, fetch } = this.#parts
    const untrusted = fetch(spec, userId)
    return new OAuthAccess({
      url,
      redirectUrl,
      documentUrl: oauth?.clientDocument === false ? undefined : documentUrl,
      own: clientId === undefined ? undefined : { clientId, clientSecret: spec.clientSecret },
      issuer,
      scope: oauth?.scope,
      records: records(spec, userId),
      fetch: oauthFetch({
        named: issuer === undefined ? [url] : [url, issuer],
        toNamed: untrusted?.server,
        toPublic: untrusted?.authority,
      }),
      now: Date.now,
    })
  }
}
