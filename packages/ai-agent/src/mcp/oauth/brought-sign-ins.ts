/**
 * Sign-ins to servers that a client brought. Their addresses are nobody's in whom we trust, and their user may have no account with
 * the service: the way back leads to this machine, where that client is, and what comes of it is in memory only.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuthProvider, FetchLike } from '@modelcontextprotocol/client'
import { MCP_SIGN_IN_PATH } from '@sandlot/shared/mcp-client'
import { NeedsAuth, reasonOf } from '../error.ts'
import { OAuthAccess } from './access.ts'
import { oauthFetch } from './fetch.ts'
import { recordsInMemory } from './records.ts'
import { finishSignIn, UNKNOWN_SIGN_IN } from './sign-ins.ts'
import type { ServerAccess } from '../server-access.ts'
import type { HttpSpec } from '../server-spec.ts'
import type { ToolLog } from '../../tools/tool.ts'

export interface BroughtSignInsParts {
  /** How a user's servers are reached (`server`), and where those say that one signs in (`authority`: public addresses only). */
  fetch?: ((userId: string) => BroughtFetch) | undefined
  log: ToolLog
}

export interface BroughtFetch {
  server: FetchLike
  authority: FetchLike
}

/** Users times addresses that are remembered. */
const MAX_ACCESSES = 1_000
/** Links whose end somebody waits for. */
const MAX_AWAITED = 1_000

interface Begun {
  userId: string
  /** What the client called it last. */
  server: string
  access: OAuthAccess
}

export class BroughtSignIns {
  readonly #parts: BroughtSignInsParts
  readonly #redirect = new LoopbackRedirect((answer) => this.#finish(answer))
  /** By user and address: under another name, or in another session, it is the same access. The longest unused first. */
  readonly #begun = new Map<string, Begun>()
  /** By the state that only the link has. */
  readonly #awaited = new Map<string, AbortController>()

  constructor(parts: BroughtSignInsParts) {
    this.#parts = parts
  }

  access(spec: HttpSpec, userId: string): ServerAccess {
    const { url } = spec.config
    const key = JSON.stringify([userId, url])
    const access = this.#begun.get(key)?.access ?? this.#make(url, userId)
    this.#begun.delete(key)
    this.#begun.set(key, { userId, server: spec.name, access })
    const [oldest] = this.#begun.keys()
    if (this.#begun.size > MAX_ACCESSES && oldest !== undefined) this.#begun.delete(oldest)
    return withWayOut(access, spec.signIn)
  }

  /** Aborted when somebody has come back from this link, however their sign-in ended; one that nobody opens just expires. */
  over(link: string): AbortSignal {
    const state = new URL(link).searchParams.get('state') ?? ''
    const awaited = this.#awaited.get(state) ?? new AbortController()
    this.#awaited.set(state, awaited)
    const [oldest] = this.#awaited.keys()
    if (this.#awaited.size > MAX_AWAITED && oldest !== undefined) this.#awaited.delete(oldest)
    return awaited.signal
  }

  /** This user was removed. */
  leaveUser(userId: string): void {
    for (const [key, begun] of this.#begun) if (begun.userId === userId) this.#begun.delete(key)
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
      // Nobody outside could read a description of ours on this machine.
      documentUrl: undefined,
      own: undefined,
      issuer: undefined,
      scope: undefined,
      records: recordsInMemory(),
      fetch: oauthFetch({
        named: [url],
        ...(fetch === undefined ? {} : { toNamed: fetch.server, toPublic: fetch.authority }),
      }),
      now: Date.now,
    })
  }

  /** Never rejects. Whose it is says the state, which only the link had. */
  async #finish(answer: URLSearchParams): Promise<Told> {
    for (const { access, ...about } of this.#begun.values()) {
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
 * Where a server only says no, and offers no sign-in that works from here, its user hears what else they can do. Whoever has
 * signed in has nothing to do: what failed is their authority, which may be back later.
 */
function withWayOut(access: OAuthAccess, how: string | undefined): ServerAccess {
  const inner = access.provider()
  const orSay = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (error instanceof NeedsAuth || (await access.isSignedIn())) throw error
      throw new NeedsAuth(`there is no sign-in by a link (${reasonOf(error)})`, { how, cause: error })
    }
  }
  const provider: AuthProvider = {
    token: () => inner.token(),
    onUnauthorized: (context) => orSay(async () => inner.onUnauthorized?.(context)),
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
  // The address holds a code: it stays out of caches, and no other site hears of it.
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** What the person at the browser reads: `good` when all is well. */
export type Told = { good: boolean; text: string }

export class LoopbackRedirect {
  readonly #finish: (answer: URLSearchParams) => Promise<Told>
  #listening: Promise<Server> | undefined

  /** `finish` must not reject. */
  constructor(finish: (answer: URLSearchParams) => Promise<Told>) {
    this.#finish = finish
  }

  /** The same until the end: it listens from the first time on. Rejects when it cannot listen; the next time it tries again. */
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
    // Nobody waits for it: it is there as long as the agent is.
    server.unref()
    return new Promise((resolve, reject) => {
      // It stays: an error later, of which nobody waits to hear, must not end the process.
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
