/**
 * `fetch` for what a server says about where to sign in. Those addresses are the server's, not the operator's: they may
 * not lead a request of ours to where the server itself is not, such as the services of a cloud's own network.
 */
import { BlockList, isIP } from 'node:net'
import type { FetchLike } from '@modelcontextprotocol/client'
import { boundedFetch } from './bounded-fetch.ts'

const MAX_BYTES = 1024 * 1024
const TIMEOUT_MS = 10_000

const inside = new BlockList()
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['224.0.0.0', 3],
] as const)
  inside.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of [
  ['::', 127],
  ['::ffff:0:0', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  inside.addSubnet(net, bits, 'ipv6')

export class AddressNotAllowed extends Error {
  override readonly name = 'AddressNotAllowed'
}

/** `serverUrl`: as the operator wrote it. Its own host is allowed whatever it is; any other must be https and a public name. */
export function oauthFetch(serverUrl: string, base: FetchLike = fetch): FetchLike {
  const { hostname: own } = new URL(serverUrl)
  const bounded = boundedFetch(MAX_BYTES, () => undefined, base)
  return (address, init) => {
    const url = new URL(address)
    if (url.hostname !== own && !(isLocal(own) && isLocal(url.hostname))) {
      if (url.protocol !== 'https:' || isLocal(url.hostname))
        return Promise.reject(
          new AddressNotAllowed(
            `the server sends sign-ins to ${url.origin}, which is not allowed: it must be https and public`,
          ),
        )
    }
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    const signal = init?.signal == null ? timeout : AbortSignal.any([init.signal, timeout])
    return bounded(address, { ...init, signal })
  }
}

function isLocal(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(host)
  if (family === 0) return host === 'localhost' || host.endsWith('.localhost') || host.endsWith('.internal')
  return inside.check(host, family === 4 ? 'ipv4' : 'ipv6')
}
