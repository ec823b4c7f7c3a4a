/**
 * Where an authorization server sends the browser back to when the client is a program on its user's machine, and no service is
 * there (RFC 8252): an address of this machine that nobody else reaches, with a port that is free.
 */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MCP_SIGN_IN_PATH } from '@sandlot/shared/mcp-client'

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
