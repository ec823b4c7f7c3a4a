/**
 * One POST over the dispatcher of `fetch`, with its connections, proxy and trust, without its web
 * streams: the bytes of the answer go to a callback as they come.
 */
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'

/**
 * Hands over the bytes of a body as they come, until `onBytes` returns true: then the rest is not
 * needed. Call it once. Resolves at the end: with undefined, or with why there was none, such as
 * the reason of the request's signal. Rejects with what `onBytes` throws.
 */
export type ReadBody = (onBytes: (bytes: Uint8Array) => boolean) => Promise<unknown>

interface HttpAnswer {
  status: number
  headers: Headers
  /** Decompressed. Until it is called, nothing of the body is read. */
  read: ReadBody
}

/** By lower-case names; an undefined one is not sent. */
type HttpHeaders = Record<string, string | undefined>

interface HttpRequest {
  url: URL
  method: 'POST' | 'GET'
  headers: HttpHeaders
  body: string | undefined
}

/** Those with a key: another origin does not get them. */
const SECRET_HEADERS = ['authorization', 'x-api-key', 'api-key'] as const

/** The limit of `fetch`. */
const MOST_REDIRECTS = 20
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/**
 * Sends `body` and resolves when the head of the answer is there, whatever its status; redirects
 * are followed as `fetch` follows them. No time limits but that of connecting. `signal` closes the
 * connection, also while the body is read. Rejects with the signal's reason, or with what the
 * connection threw.
 */
export async function httpPost(
  url: URL,
  headers: HttpHeaders,
  body: string,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  let request: HttpRequest = { url, method: 'POST', headers, body }
  for (let redirects = 0; ; redirects++) {
    signal.throwIfAborted()
    const exchange = new Exchange(signal)
    const answer = await exchange.send(request)
    const next = redirected(request, answer)
    if (next === undefined) return answer
    exchange.close(undefined)
    if (redirects === MOST_REDIRECTS) throw new Error('it redirects without end')
    request = next
  }
}

function redirected(request: HttpRequest, { status, headers }: HttpAnswer): HttpRequest | undefined {
  const location = headers.get('location')
  if (location === null || !REDIRECTS.has(status)) return undefined
  const url = new URL(location, request.url)
  if (!/^https?:$/.test(url.protocol)) throw new Error(`it redirects to ${url.protocol}`)
  const secret = url.origin === request.url.origin ? [] : SECRET_HEADERS.map((name) => [name, undefined])
  const sent = { ...request.headers, ...Object.fromEntries(secret) }
  return status < 307
    ? { url, method: 'GET', headers: { ...sent, 'content-type': undefined }, body: undefined }
    : { ...request, url, headers: sent }
}

/** The part of undici's controller that we use. */
interface Controller {
  abort(reason: Error): void
  pause(): void
  resume(): void
}

/**
 * Milliseconds in which the end of a body may follow what was needed of it: then the connection
 * serves the next request.
 */
const LINGER_MS = 200

/** One request at undici, whose handler it is. */
class Exchange {
  readonly #signal: AbortSignal
  readonly #head = Promise.withResolvers<HttpAnswer>()
  readonly #end = Promise.withResolvers<unknown>()
  readonly #onAbort = (): void => this.close(this.#signal.reason)
  #controller: Controller | undefined
  #onBytes: (bytes: Uint8Array) => boolean = () => true
  #decode: ((first: Buffer) => Transform) | undefined
  #decoder: Transform | undefined
  #linger: NodeJS.Timeout | undefined
  #closed = false

  constructor(signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  send({ url, headers, ...request }: HttpRequest): Promise<HttpAnswer> {
    // Node loads undici, which sets the symbol, when a class of `fetch` is first named.
    void Headers
    const dispatcher: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'))
    const { dispatch } = dispatcher as { dispatch: (options: object, handler: Exchange) => void }
    const encodings = url.protocol === 'https:' ? 'br, gzip, deflate' : 'gzip, deflate'
    const options = { ...request, origin: url.origin, path: url.pathname + url.search }
    // The limits of undici are off: ours may be longer.
    const limits = { headersTimeout: 0, bodyTimeout: 0 }
    const sent = { ...headers, 'accept-encoding': encodings }
    dispatch.call(dispatcher, { ...options, ...limits, headers: sent }, this)
    return this.#head.promise
  }

  /** Closes the connection. */
  close(reason: unknown): void {
    this.#settle(reason)
    this.#controller?.abort(new Error('The request is over.'))
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#closed) this.close(undefined)
  }

  onResponseStart(controller: Controller, status: number, all: Record<string, string | string[]>): void {
    if (status < 200) return
    controller.pause()
    const headers = new Headers()
    for (const [name, values] of Object.entries(all))
      for (const value of [values].flat()) headers.append(name, value)
    this.#decode = DECODERS[headers.get('content-encoding')?.trim().toLowerCase() ?? '']
    const read: ReadBody = (onBytes) => {
      this.#onBytes = onBytes
      controller.resume()
      return this.#end.promise
    }
    this.#head.resolve({ status, headers, read })
  }

  onResponseData(_: Controller, bytes: Buffer): void {
    if (this.#decode === undefined) return this.#handOver(bytes)
    this.#decoder ??= this.#decode(bytes)
      .on('data', (decoded: Buffer) => this.#handOver(decoded))
      .on('end', () => this.#settle(undefined))
      .on('error', (error) => this.close(error))
    this.#decoder.write(bytes)
  }

  onResponseEnd(): void {
    clearTimeout(this.#linger)
    if (this.#decoder === undefined) this.#settle(undefined)
    else this.#decoder.end()
  }

  onResponseError(_: Controller, error: Error): void {
    this.#settle(error)
  }

  #handOver(bytes: Buffer): void {
    if (this.#closed || this.#linger !== undefined) return
    try {
      if (!this.#onBytes(bytes)) return
      this.#end.resolve(undefined)
      this.#linger = setTimeout(() => this.close(undefined), LINGER_MS)
    } catch (error) {
      this.#end.reject(error)
      this.close(error)
    }
  }

  /** Nothing is to come, for this reason; an earlier outcome stays. */
  #settle(reason: unknown): void {
    this.#closed = true
    this.#signal.removeEventListener('abort', this.#onAbort)
    clearTimeout(this.#linger)
    this.#head.reject(reason)
    this.#end.resolve(reason)
  }
}

/** Tolerant of a missing end, like `fetch`. */
const FLUSH = { flush: zlib.constants.Z_SYNC_FLUSH, finishFlush: zlib.constants.Z_SYNC_FLUSH }

/** By their content codings, for a body that begins with these bytes. */
const DECODERS: Partial<Record<string, (first: Buffer) => Transform>> = {
  gzip: () => zlib.createGunzip(FLUSH),
  'x-gzip': () => zlib.createGunzip(FLUSH),
  // Some send it without the header of zlib.
  deflate: ([first = 0]) => ((first & 15) === 8 ? zlib.createInflate(FLUSH) : zlib.createInflateRaw(FLUSH)),
  br: () => zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH }),
}
