/**
 * Sign-ins to servers that a client named. Their addresses are not trusted, and their user may have
 * no account with the service: the redirect leads to this machine, where the client runs, and
 * tokens are kept in memory only.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuthProvider } from '@modelcontextprotocol/client'
import { MCP_SIGN_IN_PATH } from '@sandlot/shared/base/mcp-client'
import { LRUCache } from 'lru-cache'
import { SignInRequiredError, reasonOf } from '../error.ts'
import type { OAuthAccess } from './access.ts'
import type { ClientServerFetch } from './fetch.ts'
import { memoryRecords } from './records.ts'
import { SignIns } from './sign-ins.ts'
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

export class ClientServerSignIns {
  readonly #redirect = new LoopbackRedirect((answer) => this.#finish(answer))
  /** By user and address: independent of the server's name and session. */
  readonly #signIns: SignIns
  /** By the state, which only the link contains. */
  readonly #awaited = new LRUCache<string, AbortController>({ max: MAX_AWAITED })

  constructor({ fetch, log }: ClientServerSignInsParts) {
    this.#signIns = new SignIns({
      keyOf: ({ config }) => config.url,
      records: memoryRecords,
      fetch: (_, userId) => fetch?.(userId),
      redirectUrl: () => this.#redirect.url(),
      // A document on this machine could not be fetched from outside.
      documentUrl: undefined,
      most: MAX_ACCESSES,
      log,
    })
  }

  access(spec: HttpSpec, userId: string): ServerAccess {
    return withHint(this.#signIns.access(spec, userId), spec.signInHint)
  }

  /**
   * The signal is aborted when the user returns from this link, however the sign-in ended; an
   * unused link just expires.
   */
  signInEnded(link: string): AbortSignal {
    const state = new URL(link).searchParams.get('state') ?? ''
    const awaited = this.#awaited.get(state) ?? new AbortController()
    this.#awaited.set(state, awaited)
    return awaited.signal
  }

  /** Forgets a removed user. */
  removeUser(userId: string): void {
    this.#signIns.removeUser(userId)
  }

  /** Never rejects. */
  close(): Promise<void> {
    return this.#redirect.close()
  }

  /** Never rejects. The state identifies the sign-in. */
  async #finish(answer: URLSearchParams): Promise<RedirectPage> {
    const ended = await this.#signIns.finish(this.#signIns.known, answer)
    const state = answer.get('state') ?? ''
    this.#awaited.get(state)?.abort()
    this.#awaited.delete(state)
    return 'server' in ended
      ? {
          good: true,
          text: `${ended.server} is connected. You can close this page and go on in your editor.`,
        }
      : { good: false, text: ended.problem }
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
