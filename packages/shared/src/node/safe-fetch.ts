/**
 * `fetch` for addresses from a user or a server: public addresses only, with bounds on size and
 * time. A name is resolved once, when connecting, and exactly the checked addresses are dialled.
 */
import { type LookupAddress, lookup } from 'node:dns'
import * as http from 'node:http'
import * as https from 'node:https'
import { type LookupFunction, isIP } from 'node:net'
import { Readable } from 'node:stream'
import type { Transformer } from 'node:stream/web'
import { isLoopback, isPublicAddress, withoutBrackets } from './addresses.ts'

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

type Resolve = (
  hostname: string,
  done: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

interface FetchBounds {
  /** Bytes of a response body, or of one event of an event stream. */
  maxBytes?: number
  /**
   * Milliseconds for a request with its whole response. Absent for streams: the caller aborts them.
   */
  timeoutMs?: number
  /**
   * Milliseconds from the first to the last byte of a body, or of a stream's event. White space and
   * comments before it may keep a connection open.
   */
  transferMs?: number
  /** Called when a response body was cut off at `maxBytes` or after `transferMs`. */
  onCutOff?: (error: ResponseCutOffError) => void
}

interface SafeFetchOptions extends FetchBounds {
  /** Permits this machine as well. */
  loopback?: boolean
  /** Checked before every request: the reason to refuse a host with a permitted address. */
  refusal?: (host: string, port: number) => Promise<string | undefined>
  /** Added to the error for private addresses. */
  hint?: string
  /** Default: the system's resolver. */
  resolve?: Resolve
}

/** The host or address of the request is not permitted. */
export class AddressNotAllowedError extends Error {
  override readonly name = 'AddressNotAllowedError'
}

class ResponseCutOffError extends Error {
  override readonly name = 'ResponseCutOffError'
}

/**
 * A `fetch` that sends text, forms and bytes. It follows no redirect, so each is checked by the
 * caller's next request. Throws `AddressNotAllowedError`, or the errors of `fetch`.
 */
export function safeFetch(options: SafeFetchOptions = {}): Fetch {
  const { loopback = false, refusal, hint = '', resolve = resolveAll } = options
  const isRefused = (address: string): boolean =>
    !isPublicAddress(address) && !(loopback && isLoopback(address))
  const goesThroughProxy = proxyRule(https.globalAgent)
  const checkedLookup = lookupOf(resolve, isRefused)
  const connect: Fetch = async (address, init) => {
    const url = new URL(address)
    const host = withoutBrackets(url.hostname)
    // A literal address is never looked up.
    if (isIP(host) > 0 && isRefused(host))
      throw new AddressNotAllowedError(`${host} is an address of a private network${hint}`)
    const refused = await refusal?.(host, portOf(url))
    if (refused !== undefined) throw new AddressNotAllowedError(refused)
    // The operator's proxy resolves names itself, and decides on their addresses.
    if (goesThroughProxy(url)) return fetch(url, { ...init, redirect: 'manual' })
    return request(url, init, checkedLookup)
  }
  return boundedFetch(connect, options)
}

/**
 * A `fetch` to any address that is not refused, also of a private network; it follows no redirect.
 * Throws `AddressNotAllowedError`, or the errors of `fetch`.
 */
export function refusingFetch(refusal: NonNullable<SafeFetchOptions['refusal']>): Fetch {
  return async (address, init) => {
    const url = new URL(address)
    const refused = await refusal(withoutBrackets(url.hostname), portOf(url))
    if (refused !== undefined) throw new AddressNotAllowedError(refused)
    return fetch(url, { ...init, redirect: 'manual' })
  }
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

/** `base` with bounds, for addresses from an operator. The body throws `ResponseCutOffError`. */
export function boundedFetch(base: Fetch, bounds: FetchBounds): Fetch {
  const { maxBytes, timeoutMs } = bounds
  return async (url, init) => {
    const timeout = timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)]
    const signals = [...timeout, ...(init?.signal == null ? [] : [init.signal])]
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0]
    const response = await base(url, { ...init, signal })
    if (response.body === null || maxBytes === undefined) return response
    const isStream = /text\/event-stream/i.test(response.headers.get('content-type') ?? '')
    const bounded = response.body.pipeThrough(bodyLimit({ ...bounds, maxBytes }, isStream))
    const { status, statusText, headers } = response
    return new Response(bounded, { status, statusText, headers })
  }
}

const NEWLINE = 10
const RETURN = 13
const SPACE = 32
const COLON = 58

function bodyLimit(
  { maxBytes, transferMs, onCutOff }: FetchBounds & { maxBytes: number },
  isStream: boolean,
): TransformStream<Uint8Array, Uint8Array> {
  let count = 0
  let lineIsEmpty = true
  let last = 0
  let timer: NodeJS.Timeout | undefined
  type Controller = TransformStreamDefaultController<Uint8Array>
  const end = (): void => {
    clearTimeout(timer)
    timer = undefined
  }
  const cutOff = (controller: Controller, why: string): void => {
    end()
    const error = new ResponseCutOffError(why)
    onCutOff?.(error)
    controller.error(error)
  }
  const begin = (controller: Controller): void => {
    if (transferMs === undefined) return
    const why = `it did not send the whole of a message within ${transferMs / 1_000} s`
    timer ??= setTimeout(cutOff, transferMs, controller, why)
  }
  /** Counted per byte, because a chunk may end anywhere. An empty line ends an event. */
  const readEvents = (byte: number, controller: Controller): void => {
    count++
    if (byte === NEWLINE || byte === RETURN) {
      if (byte === NEWLINE && last === RETURN) return
      if (lineIsEmpty) {
        count = 0
        end()
      }
      lineIsEmpty = true
    } else {
      // A comment keeps a stream open, and begins no event.
      if (lineIsEmpty && byte !== COLON) begin(controller)
      lineIsEmpty = false
    }
  }
  // `cancel` is not among the types yet.
  const transformer: Transformer<Uint8Array, Uint8Array> & { cancel: () => void } = {
    transform(chunk, controller) {
      if (!isStream) {
        count += chunk.length
        if (chunk.some((byte) => byte > SPACE)) begin(controller)
      } else
        for (const byte of chunk) {
          if (count > maxBytes) break
          readEvents(byte, controller)
          last = byte
        }
      if (count > maxBytes) cutOff(controller, `it sent a message of more than ${maxBytes} bytes`)
      else controller.enqueue(chunk)
    },
    flush: end,
    cancel: end,
  }
  return new TransformStream(transformer)
}

const resolveAll: Resolve = (hostname, done) => lookup(hostname, { all: true }, done)

/**
 * True if `fetch` certainly uses the operator's proxy for a URL, by the environment at Node's
 * start. In doubt false: then the address is checked here.
 */
function proxyRule(agent: object): (url: URL) => boolean {
  const options = 'options' in agent ? (agent.options as { proxyEnv?: Record<string, string> }) : {}
  const env = options.proxyEnv ?? {}
  // The lower-case name wins if both are set, also when it is empty.
  const secure = env['https_proxy'] ?? env['HTTPS_PROXY'] ?? ''
  const plain = env['http_proxy'] ?? env['HTTP_PROXY'] ?? ''
  const direct = `${env['no_proxy'] ?? ''} ${env['NO_PROXY'] ?? ''}`
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    // Programs read `*.corp`, `.corp` and `corp` differently: here each is a suffix, and `*` is
    // everything.
    .map((entry) => entry.replace(/:\d+$/, '').replace(/^\*?\.?/, ''))
  return ({ protocol, hostname }) =>
    (protocol === 'https:' ? secure : plain) !== '' && !direct.some((entry) => hostname.endsWith(entry))
}

/** Refuses a name when one of its addresses is refused. */
function lookupOf(resolve: Resolve, isRefused: (address: string) => boolean): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, (error, found) => {
      // With an error `found` is undefined.
      if (error !== null) return done(error, '')
      const [first] = found
      const refused = found.find((one) => isRefused(one.address))
      if (refused !== undefined || first === undefined)
        return done(
          new AddressNotAllowedError(
            `${hostname} is at ${refused?.address ?? 'no address'}, which is not a public one`,
          ),
          '',
        )
      if (options.all === true) return done(null, found)
      done(null, first.address, first.family)
    })
  }
}

function request(url: URL, init: RequestInit = {}, lookup: LookupFunction): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const { body, signal } = init
  const content = body == null ? undefined : contentOf(body)
  const outgoing = (url.protocol === 'https:' ? https : http).request(url, {
    // No connection is kept: the next request resolves and checks again.
    agent: false,
    lookup,
    method: init.method ?? 'GET',
    headers: {
      ...Object.fromEntries(new Headers(init.headers)),
      ...(content === undefined ? {} : { 'content-length': Buffer.byteLength(content) }),
    },
    ...(signal == null ? {} : { signal }),
  })
  // The same error as that of `fetch`, so that callers need not distinguish them.
  const fail = (cause: unknown): void => reject(new TypeError('fetch failed', { cause }))
  outgoing.on('response', (incoming) => {
    try {
      resolve(responseOf(incoming))
    } catch (error) {
      // The parser accepts a status or a reason that a `Response` cannot have.
      incoming.destroy()
      fail(error)
    }
  })
  outgoing.on('error', (error) => {
    if (error instanceof AddressNotAllowedError) reject(error)
    else fail(error.cause ?? error)
  })
  // After a protocol upgrade the connection closes without `response` and `error`.
  outgoing.on('close', () => fail(new Error('the connection ended without an answer')))
  outgoing.end(content)
  return promise
}

function contentOf(body: NonNullable<RequestInit['body']>): string | Uint8Array {
  if (typeof body === 'string' || body instanceof Uint8Array) return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('only text, forms and bytes are sent')
}

function responseOf(incoming: http.IncomingMessage): Response {
  const { statusCode: status = 0, statusMessage: statusText = '' } = incoming
  const headers = Object.entries(incoming.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  )
  const empty = status === 204 || status === 205 || status === 304
  if (empty) incoming.resume()
  const body = empty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>)
  return new Response(body, { status, statusText, headers })
}
