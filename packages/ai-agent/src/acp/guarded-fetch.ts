/**
 * `fetch` for addresses that a client names, or that such a server names. It reaches the public internet, of what a client names
 * also this machine itself, where the client runs too, and nothing of the networks in between.
 */
import { isIP } from 'node:net'
import { isPublicAddress } from '@sandlot/sandbox/egress/addresses'
import { type Resolve, publicFetch } from '../mcp/transports/public-fetch.ts'

class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

export interface GuardedFetchOptions {
  /** Whether this machine may be reached. Default: yes. */
  here?: boolean
  resolve?: Resolve | undefined
}

/** `refusal`: why this host may not be reached although its address may; asked before every request. */
export function guardedFetch(
  refusal: (host: string, port: number) => Promise<string | undefined>,
  { here = true, resolve }: GuardedFetchOptions = {},
): Fetch {
  const isRefused = (address: string): boolean =>
    !isPublicAddress(address) && !(here && isThisMachine(address))
  const connect = publicFetch(resolve, isRefused)
  return async (address, init) => {
    const url = new URL(address)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
    // A number is never looked up.
    const problem =
      isIP(host) > 0 && isRefused(host)
        ? `${host} is an address of a private network; only whoever runs this Sandlot can name a server there (mcpServers in its configuration)`
        : await refusal(host, port)
    if (problem !== undefined) throw new TypeError('fetch failed', { cause: new AddressRefused(problem) })
    return connect(url, init)
  }
}

function isThisMachine(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address) || address === '::1'
}
