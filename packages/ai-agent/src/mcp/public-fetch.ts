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
import { isInsideAddress } from './inside-addresses.ts'

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
  isRefused: (address: string) => boolean = isInsideAddress,
): FetchLike {
  // Behind a proxy of the operator's it is the proxy that resolves names and decides where they may lead.
  if (usesProxy(https.globalAgent)) return fetch
  return (address, init) => request(new URL(address), init, publicLookup(resolve, isRefused))
}

/** Node says so only where it keeps what it was started with. */
function usesProxy(agent: object): boolean {
  const options = 'options' in agent ? (agent.options as { proxyEnv?: Record<string, string> }) : {}
  const env = options.proxyEnv ?? {}
  return (env['https_proxy'] ?? env['HTTPS_PROXY'] ?? '') !== ''
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
  asked.on('response', (answer) => resolve(responseOf(answer)))
  asked.on('error', (error) => {
    // As `fetch` fails, so that what stands above it need not know the difference.
    const { cause } = error
    reject(
      error instanceof AddressNotAllowed ? error : new TypeError('fetch failed', { cause: cause ?? error }),
    )
  })
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
