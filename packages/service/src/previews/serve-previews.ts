/**
 * Requests at the hosts of previews: let in by a ticket, known by a cookie, passed on to the
 * program in the sandbox. Nothing of our own app answers here.
 */
import {
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { messageOf, SandlotError } from '@sandlot/shared/base/errors'
import type { Logger } from '../log.ts'
import type { PreviewPlaces } from './places.ts'
import {
  type Ends,
  type Header,
  headersInside,
  headersOutside,
  isSendable,
  keyIn,
  PREVIEW_COOKIE,
} from './preview-headers.ts'
import type { Pass, Previews } from './previews.ts'
import { PreviewAgent, type Upstreams } from './upstream-socket.ts'

/** Nothing of a program is likely to be there. */
export const ENTRANCE = '/.sandlot/open'

/** Methods of requests that may be made twice. */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

class OddAnswer extends Error {
  override readonly name = 'OddAnswer'
}

interface Parts {
  places: PreviewPlaces
  previews: Previews
  upstreams: Upstreams
  /** True if browsers reach us by https. */
  secure: boolean
  log: Logger
}

/** The page for a browser without access. */
const ENDED = 'This preview has ended, or was never opened in this browser. Open it again in Sandlot.'
const FOREIGN = 'Another site asked for this preview, so it is not shown.'

export class PreviewServer {
  readonly #parts: Parts
  readonly #agents = new WeakMap<Pass, PreviewAgent>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** True if a request with this `Host` is for previews, and for nothing else. */
  isFor(host: string | undefined): boolean {
    return this.#parts.places.idOf(host) !== undefined
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    this.#answer(request, response).catch((error: unknown) => {
      this.#parts.log.debug({ error: messageOf(error) }, 'a preview could not be shown')
      refuse(response, error)
    })
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { log } = this.#parts
    socket.on('error', (error) => log.debug({ error: error.message }, 'a preview’s socket broke'))
    this.#join(request, socket, head).catch((error: unknown) => {
      log.debug({ error: messageOf(error) }, 'a preview’s socket could not be opened')
      refuseRaw(socket, error)
    })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { places, previews } = this.#parts
    const id = places.idOf(request.headers.host) ?? ''
    // Null: a program may have addresses that are no URL, as `//`.
    const url = URL.parse(request.url ?? '/', 'http://preview.invalid')
    if (url?.pathname === ENTRANCE) {
      const key = await previews.enter(id, url.searchParams.get('ticket') ?? '')
      if (key === undefined) throw new SandlotError('forbidden', ENDED)
      response.writeHead(303, {
        location: '/',
        'set-cookie': this.#cookie(key),
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
      })
      return void response.end()
    }
    const { pass, cookies } = await this.#pass(request, id)
    const ends = this.#ends(request, pass)
    const answer = await this.#ask(request, response, { pass, ends })
    const status = statusOf(answer)
    const headers = [...headersOutside(answer.rawHeaders, ends), ...cookies]
    response.writeHead(status, statusText(status), headers.flat())
    await pipeline(answer, response)
  }

  /** Throws `OddAnswer`, and what the connection to the program fails with. */
  async #ask(
    request: IncomingMessage,
    response: ServerResponse,
    { pass, ends }: { pass: Pass; ends: Ends },
  ): Promise<IncomingMessage> {
    const isEmpty =
      request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined
    const gone = new AbortController()
    const leave = (): void => gone.abort()
    request.on('aborted', leave)
    response.on('close', leave)
    for (;;) {
      const sent = httpRequest({
        agent: this.#agentOf(pass),
        method: request.method,
        path: request.url,
        headers: headersInside(request.headers, ends).flat(),
        setHost: false,
        signal: gone.signal,
      })
      const answered = answerTo(sent)
      if (isEmpty) sent.end()
      // A program may answer before it has the whole body, and need not take the rest.
      else pipeline(request, sent).catch(() => undefined)
      try {
        const { answer, joined } = await answered
        if (joined === undefined) return answer
        joined.socket.destroy()
        throw new OddAnswer('The program switched to a protocol that was not asked for.')
      } catch (error) {
        // The program may have closed a kept connection at the moment at which it was used again.
        const mayRepeat = sent.reusedSocket && isEmpty && REPEATABLE.has(request.method ?? '')
        if (!mayRepeat || error instanceof OddAnswer || gone.signal.aborted) throw error
      }
    }
  }

  async #join(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { places, upstreams } = this.#parts
    const { pass, cookies } = await this.#pass(request, places.idOf(request.headers.host) ?? '')
    const ends = this.#ends(request, pass)
    const { origin, upgrade } = request.headers
    // The cookie comes with what a page of another preview opens, too.
    if (origin !== undefined && origin !== ends.outside) throw new SandlotError('bad_origin', FOREIGN)
    const inside = await upstreams.open(pass)
    socket.once('close', () => inside.destroy())
    const headers = [
      ...headersInside(request.headers, ends),
      ['connection', 'Upgrade'],
      ['upgrade', upgrade ?? ''],
    ]
    const sent = httpRequest({
      createConnection: () => inside,
      method: request.method,
      path: request.url,
      headers: headers.flat(),
      setHost: false,
    })
    sent.end()
    const { answer, joined } = await answerTo(sent)
    if (joined === undefined) {
      const refused: Header[] = [...headersOutside(answer.rawHeaders, ends), ['connection', 'close']]
      socket.write(headOf(statusOf(answer), refused), 'latin1')
      return void (await Promise.allSettled([pipeline(answer, socket)]))
    }
    const taken: Header[] = [
      ...headersOutside(answer.rawHeaders, ends),
      ...cookies,
      ['connection', 'Upgrade'],
      ['upgrade', answer.headers.upgrade ?? ''],
    ]
    socket.write(headOf(101, taken.filter(isSendable)), 'latin1')
    inside.unshift(joined.first)
    if (head.length > 0) inside.write(head)
    await Promise.allSettled([pipeline(socket, inside), pipeline(inside, socket)])
  }

  /** The caller, and their cookies. Throws `forbidden`. */
  async #pass(
    { headers, method }: IncomingMessage,
    id: string,
  ): Promise<{ pass: Pass; cookies: ['set-cookie', string][] }> {
    const found = await this.#parts.previews.passOf(id, keyIn(headers.cookie))
    if (found === undefined) throw new SandlotError('forbidden', ENDED)
    const from = headers['sec-fetch-site']
    const isOwn = from === undefined || from === 'same-origin' || from === 'none'
    const navigates = headers['sec-fetch-mode'] === 'navigate' && (method === 'GET' || method === 'HEAD')
    if (!isOwn && !navigates) throw new SandlotError('bad_origin', FOREIGN)
    const { pass, cookie } = found
    return { pass, cookies: cookie === undefined ? [] : [['set-cookie', this.#cookie(cookie)]] }
  }

  #cookie(value: string): string {
    const secure = this.#parts.secure ? '; Secure' : ''
    return `${PREVIEW_COOKIE}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}`
  }

  #ends({ headers }: IncomingMessage, { port }: Pass): Ends {
    const scheme = this.#parts.secure ? 'https' : 'http'
    return { outside: `${scheme}://${headers.host ?? ''}`, inside: `http://localhost:${port}` }
  }

  #agentOf(pass: Pass): PreviewAgent {
    const known = this.#agents.get(pass)
    if (known !== undefined) return known
    const made = new PreviewAgent(() => this.#parts.upstreams.open(pass))
    this.#agents.set(pass, made)
    pass.ended.addEventListener('abort', () => made.destroy())
    return made
  }
}

interface Answered {
  answer: IncomingMessage
  /** Set when the program switched protocols: the connection, and the bytes received on it. */
  joined?: { socket: Duplex; first: Buffer }
}

/** Settles however the connection ends. */
function answerTo(sent: ClientRequest): Promise<Answered> {
  return new Promise((resolve, reject) => {
    sent.on('response', (answer) => resolve({ answer }))
    sent.on('upgrade', (answer, socket, first) => resolve({ answer, joined: { socket, first } }))
    sent.on('error', reject)
    sent.on('close', () => reject(new OddAnswer('The program closed the connection without an answer.')))
  })
}

/** Throws `OddAnswer` for one that is no status of a whole answer. */
function statusOf({ statusCode = 0 }: IncomingMessage): number {
  if (statusCode >= 200) return statusCode
  throw new OddAnswer(`The program answered with the status ${statusCode}.`)
}

/** The usual words: a program's own may hold what no answer may. */
function statusText(status: number): string {
  return STATUS_CODES[status] ?? 'Unknown'
}

function headOf(status: number, headers: readonly Header[]): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} ${statusText(status)}`, ...lines, '', ''].join('\r\n')
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy()
  const { status, headers, page } = refusalOf(error)
  response.writeHead(status, statusText(status), headers).end(page)
}

function refuseRaw(socket: Duplex, error: unknown): void {
  const { status, headers, page } = refusalOf(error)
  socket.write(headOf(status, [...Object.entries(headers), ['connection', 'close']]), 'latin1')
  socket.end(page)
}

/** A page of plain words, at the preview's origin. */
function refusalOf(error: unknown): { status: number; headers: Record<string, string>; page: string } {
  const known = error instanceof SandlotError
  const words = known ? error.message : 'The program in the sandbox did not answer as a web server does.'
  // The program is missing, not the page.
  const status = !known || error.code === 'not_found' ? 502 : error.status
  const text = words.replaceAll(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Preview</title><style>body{font:16px/1.5 system-ui;max-width:36rem;margin:20vh auto;padding:0 1.5rem;color-scheme:light dark;background:Canvas;color:CanvasText}</style><p>${text}</p></html>`
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-length': String(Buffer.byteLength(page)),
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    'cache-control': 'no-store',
  }
  return { status, headers, page }
}
