/**
 * `fetch` that connects to public addresses only. What a name resolves to is looked at where the connection is made, and
 * only there: a name that answers differently the second time is not asked a second time.
 */
import { type LookupAddress, lookup } from 'node:dns'
import * as http from 'node:http'
import * as https from 'node:https'
import type { LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import type { FetchLike } from '@modelcontextprotocol/client'
import { isPublicAddress } from '@sandlot/sandbox/egress/addresses'

/** A request was led to where it may not go. */
export class AddressNotAllowed extends Error {
  override readonly name = 'AddressNotAllowed'
}

export type Resolve = (
  hostname: string,
  told: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

const resolveAll: Resolve = (hostname, told) => lookup(hostname, { all: true }, told)

/**
 * Follows no redirect. An address that is written in the URL itself is for the caller to judge. `isRefused`: which of those
 * that a name resolves to may not be reached; one is enough.
 */
export function publicFetch(
  resolve: Resolve = resolveAll,
  isRefused: (address: string) => boolean = (address) => !isPublicAddress(address),
): FetchLike {
  const goesThroughProxy = proxyRule(https.globalAgent)
  // What `request` throws is a rejection, as of any `fetch`.
  return async (address, init) => {
    const url = new URL(address)
    // There it is the operator's proxy that resolves names and decides where they may lead.
    if (goesThroughProxy(url)) return fetch(url, { ...init, redirect: 'manual' })
    return request(url, init, publicLookup(resolve, isRefused))
  }
}

/**
 * Whether `fetch` would certainly send a request for this URL to the operator's proxy, by what this process was started with
 * (Node keeps it only where it heeds it). In doubt it would not: then we connect, and look.
 */
function proxyRule(agent: object): (url: URL) => boolean {
  const options = 'options' in agent ? (agent.options as { proxyEnv?: Record<string, string> }) : {}
  const env = options.proxyEnv ?? {}
  // The small letters count where both are there, also when they say nothing.
  const secure = env['https_proxy'] ?? env['HTTPS_PROXY'] ?? ''
  const plain = env['http_proxy'] ?? env['HTTP_PROXY'] ?? ''
  const direct = `${env['no_proxy'] ?? ''} ${env['NO_PROXY'] ?? ''}`
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    // `*.corp`, `.corp` and `corp` are read differently by different programs: for us each is all that ends so, `*` is all.
    .map((entry) => entry.replace(/:\d+$/, '').replace(/^\*?\.?/, ''))
  return ({ protocol, hostname }) =>
    (protocol === 'https:' ? secure : plain) !== '' && !direct.some((entry) => hostname.endsWith(entry))
}

function publicLookup(resolve: Resolve, isRefused: (address: string) => boolean): LookupFunction {
  return (hostname, options, told) => {
    resolve(hostname, (error, found) => {
      // With an error nothing was found, not even an empty list.
      if (error !== null) return told(error, '')
      const [first] = found
      const refused = found.find((one) => isRefused(one.address))
      if (refused !== undefined || first === undefined)
        return told(
          new AddressNotAllowed(
            `${hostname} is at ${refused?.address ?? 'no address'}, which is not a public one`,
          ),
          '',
        )
      if (options.all === true) return told(null, found)
      told(null, first.address, first.family)
    })
  }
}

function request(url: URL, init: RequestInit = {}, lookup: LookupFunction): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const { body, signal } = init
  const text = body == null ? undefined : bodyText(body)
  const asked = (url.protocol === 'https:' ? https : http).request(url, {
    // No connection is kept: the next request looks again.
    agent: false,
    lookup,
    method: init.method ?? 'GET',
    headers: {
      ...Object.fromEntries(new Headers(init.headers)),
      ...(text === undefined ? {} : { 'content-length': Buffer.byteLength(text) }),
    },
    ...(signal == null ? {} : { signal }),
  })
  // As `fetch` fails, so that what stands above it need not know the difference.
  const failed = (cause: unknown): void => reject(new TypeError('fetch failed', { cause }))
  asked.on('response', (answer) => {
    try {
      resolve(responseOf(answer))
    } catch (error) {
      // A status or a text that the parser lets through and a `Response` cannot have. Nobody stands above a listener.
      answer.destroy()
      failed(error)
    }
  })
  asked.on('error', (error) => {
    if (error instanceof AddressNotAllowed) reject(error)
    else failed(error.cause ?? error)
  })
  // An answer that is none, like a change of protocol, ends the connection without any of the two.
  asked.on('close', () => failed(new Error('the connection ended without an answer')))
  asked.end(text)
  return promise
}

function bodyText(body: NonNullable<RequestInit['body']>): string {
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('only text and forms are sent')
}

function responseOf(answer: http.IncomingMessage): Response {
  const { statusCode: status = 0, statusMessage: statusText = '' } = answer
  const headers = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  )
  const empty = status === 204 || status === 205 || status === 304
  if (empty) answer.resume()
  const body = empty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>)
  return new Response(body, { status, statusText, headers })
}
