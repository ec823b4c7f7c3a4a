/**
 * `fetch` for addresses that a client names. It reaches the public internet and this machine itself, where the client runs
 * too, and nothing of the network in between. A name is looked up once, for the connection itself, so that it cannot
 * mean something else a moment later. Redirects are given back, not followed.
 */
import { type LookupOptions, lookup } from 'node:dns'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { type LookupFunction, isIP } from 'node:net'
import { Readable } from 'node:stream'
import { isPublicAddress } from '@sandlot/sandbox/egress/addresses'

export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** Answers that have no body. */
const BODYLESS = new Set([204, 205, 304])

/** `refusal`: why this host may not be reached although its address may; asked before every request. */
export function guardedFetch(refusal: (host: string, port: number) => Promise<string | undefined>): Fetch {
  return async (address, init) => {
    const url = new URL(address)
    const request = new Request(url, init)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
    // A number is never looked up.
    const why = isIP(host) > 0 ? addressProblem(host, host) : undefined
    const refused = why ?? (await refusal(host, port))
    if (refused !== undefined) throw failed(new AddressRefused(refused))
    return send(url, request, Buffer.from(await request.arrayBuffer()))
  }
}

function send(url: URL, request: Request, body: Buffer): Promise<Response> {
  const { method, signal } = request
  const start = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const headers = { ...Object.fromEntries(request.headers), 'content-length': body.length }
    // A connection of its own: one that somebody left open was not looked up by us.
    const sending = start(url, { method, headers, lookup: guardedLookup, agent: false, signal })
    sending.on('error', (error) => reject(signal.aborted ? signal.reason : failed(error)))
    sending.on('response', (incoming) => resolve(responseOf(incoming, method)))
    sending.end(body)
  })
}

function responseOf(incoming: IncomingMessage, method: string): Response {
  const { statusCode: status = 502, statusMessage: statusText = '', rawHeaders } = incoming
  const headers = new Headers()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  const bodyless = BODYLESS.has(status) || method === 'HEAD'
  if (bodyless) incoming.resume()
  const body = bodyless ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>)
  return new Response(body, { status, statusText, headers })
}

/** One address that may not be reached is enough: who answers so has something in mind. */
const guardedLookup: LookupFunction = (host, options: LookupOptions, callback) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    const problem = addresses
      ?.map(({ address }) => addressProblem(address, host))
      .find((one) => one !== undefined)
    const failure = error ?? (problem === undefined ? null : new AddressRefused(problem))
    if (failure !== null) return callback(failure, '', 4)
    if (options.all === true) return callback(null, addresses)
    const [first] = addresses
    callback(null, first?.address ?? '', first?.family ?? 4)
  })
}

function addressProblem(address: string, host: string): string | undefined {
  if (isPublicAddress(address) || isThisMachine(address)) return undefined
  const where = address === host ? address : `${address}, which is what ${host} means`
  return `${where}, is an address of a private network; only whoever runs this Sandlot can name a server there (mcpServers in its configuration)`
}

function isThisMachine(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address) || address === '::1'
}

/** As `fetch` says it. */
function failed(cause: Error): TypeError {
  return new TypeError('fetch failed', { cause })
}
