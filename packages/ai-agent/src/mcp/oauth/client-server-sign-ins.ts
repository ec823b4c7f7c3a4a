/**
 * Sign-ins to servers that a client named. Their addresses are not trusted, and their user may have
 * no account with the service: the redirect leads to this machine, where the client runs, and
 * tokens are kept in memory only.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuthProvider } from '@modelcontextprotocol/client'
import { MCP_SIGN_IN_PATH } from '@sandlot/shared/base/mcp-client'
import { SignInRequiredError, reasonOf } from '../error.ts'
import { OAuthAccess } from './access.ts'
import { type ClientServerFetch, oauthFetch } from './fetch.ts'
import { memoryRecords } from './records.ts'
import { finishSignIn, UNKNOWN_SIGN_IN } from './sign-ins.ts'
import type { ServerAccess } from '../server-access.ts'
import type { HttpSpec } from '../server-spec.ts'
import type { Log } from '../../log.ts'

interface ClientServerSignInsParts {
  /**
   * Access to a user's servers (`server`), and to their authorities (`authority`: public addresses
   * only).
   */
  fetch?: ((userId: string) => ClientServerFetch) | undefined
  log: Log
}

/** Entries by user and address. */
const MAX_ACCESSES = 1_000
/** Links whose end a caller waits for. */
const MAX_AWAITED = 1_000

interface KnownAccess {
  userId: string
  /** The client's last name for it. */
  server: string
  access: OAuthAccess
}

export class ClientServerSignIns {
  readonly #parts: ClientServerSignInsParts
  readonly #redirect = new LoopbackRedirect((answer) => this.#finish(answer))
  /**
   * By user and address, least recently used first: independent of the server's name and session.
   */
  readonly #accesses = new Map<string, KnownAccess>()
  /** By the state, which only the link contains. */
  readonly #awaited = new Map<string, AbortController>()

  constructor(parts: ClientServerSignInsParts) {
    this.#parts = parts
  }

  access(spec: HttpSpec, userId: string): ServerAccess {
    const { url } = spec.config
    const key = JSON.stringify([userId, url])
    const access = this.#accesses.get(key)?.access ?? this.#make(url, userId)
    this.#accesses.delete(key)
    this.#accesses.set(key, { userId, server: spec.name, access })
    const [oldest] = this.#accesses.keys()
    if (this.#accesses.size > MAX_ACCESSES && oldest !== undefined) this.#accesses.delete(oldest)
    return withHint(access, spec.signInHint)
  }

  /**
   * The signal is aborted when the user returns from this link, however the sign-in ended; an
   * unused link just expires.
   */
  signInEnded(link: string): AbortSignal {
    const state = new URL(link).searchParams.get('state') ?? ''
    const awaited = this.#awaited.get(state) ?? new AbortController()
    this.#awaited.set(state, awaited)
    const [oldest] = this.#awaited.keys()
    if (this.#awaited.size > MAX_AWAITED && oldest !== undefined) this.#awaited.delete(oldest)
    return awaited.signal
  }

  /** Forgets a removed user. */
  removeUser(userId: string): void {
    for (const [key, known] of this.#accesses) if (known.userId === userId) this.#accesses.delete(key)
  }

  /** Never rejects. */
  close(): Promise<void> {
    return this.#redirect.close()
  }

  #make(url: string, userId: string): OAuthAccess {
    const fetch = this.#parts.fetch?.(userId)
    return new OAuthAccess({
      url,
      redirectUrl: () => this.#redirect.url(),
      // A document on this machine could not be fetched from outside.
      documentUrl: undefined,
      own: undefined,
      issuer: undefined,
      scope: undefined,
      records: memoryRecords(),
      fetch: oauthFetch({
        named: [url],
        ...(fetch === undefined ? {} : { toNamed: fetch.server, toPublic: fetch.authority }),
      }),
      now: Date.now,
    })
  }

  /** Never rejects. The state identifies the sign-in. */
  async #finish(answer: URLSearchParams): Promise<RedirectPage> {
    for (const { access, ...about } of this.#accesses.values()) {
      const ended = await finishSignIn(() => access, answer, { ...about, log: this.#parts.log })
      if (ended === undefined) continue
      this.#end(answer.get('state') ?? '')
      return 'server' in ended
        ? {
            good: true,
            text: `${ended.server} is connected. You can close this page and go on in your editor.`,
          }
        : { good: false, text: ended.problem }
    }
    return { good: false, text: UNKNOWN_SIGN_IN }
  }

  #end(state: string): void {
    this.#awaited.get(state)?.abort()
    this.#awaited.delete(state)
  }
}

/**
 * Adds instructions for a server that refuses and offers no sign-in that works from here. A user
 * who has signed in needs none: then their authority has failed, perhaps for a moment.
 */
function withHint(access: OAuthAccess, how: string | undefined): ServerAccess {
  const inner = access.provider()
  const orHint = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (error instanceof SignInRequiredError || (await access.isSignedIn())) throw error
      throw new SignInRequiredError(`there is no sign-in by a link (${reasonOf(error)})`, {
        how,
        cause: error,
      })
    }
  }
  const provider: AuthProvider = {
    token: () => inner.token(),
    onUnauthorized: (context) => orHint(async () => inner.onUnauthorized?.(context)),
  }
  return {
    provider: () => provider,
    watch: (base) => access.watch(base),
    widen: (challenge) => access.widen(challenge),
    signInUrl: () => access.signInUrl(),
  }
}

const HOST = '127.0.0.1'
const HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  // The address contains a code: keep it out of caches and referrers.
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** The page for the browser; `good` after success. */
type RedirectPage = { good: boolean; text: string }

class LoopbackRedirect {
  readonly #finish: (answer: URLSearchParams) => Promise<RedirectPage>
  #listening: Promise<Server> | undefined

  /** `finish` must not reject. */
  constructor(finish: (answer: URLSearchParams) => Promise<RedirectPage>) {
    this.#finish = finish
  }

  /**
   * The redirect address, the same until `close`; the first call starts listening. Rejects when it
   * cannot listen; the next call tries again.
   */
  async url(): Promise<string> {
    this.#listening ??= this.#listen()
    this.#listening.catch(() => {
      this.#listening = undefined
    })
    const { port } = (await this.#listening).address() as AddressInfo
    return `http://${HOST}:${port}${MCP_SIGN_IN_PATH}`
  }

  /** Never rejects. */
  async close(): Promise<void> {
    const [listening] = await Promise.allSettled([this.#listening])
    if (listening.status === 'rejected' || listening.value === undefined) return
    const server = listening.value
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }

  #listen(): Promise<Server> {
    const server = createServer((request, response) => void this.#answer(request, response))
    // It must not keep the process alive.
    server.unref()
    return new Promise((resolve, reject) => {
      // Not removed: a later error must not end the process.
      server.on('error', reject)
      server.listen(0, HOST, () => resolve(server))
    })
  }

  async #answer({ method, url = '/' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path, query = ''] = url.split('?', 2)
    if (method !== 'GET' || path !== MCP_SIGN_IN_PATH) {
      response.writeHead(404, HEADERS).end('There is nothing here.')
      return
    }
    const { good, text } = await this.#finish(new URLSearchParams(query))
    response.writeHead(good ? 200 : 400, { ...HEADERS, connection: 'close' }).end(text)
  }
}
