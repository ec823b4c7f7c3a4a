/**
 * `fetch` for what a server says about where to sign in. Those addresses are the server's, not the operator's: they may
 * not lead a request of ours to where the server itself is not, such as the services of a cloud's own network.
 */
import type { FetchLike } from '@modelcontextprotocol/client'
import { boundedFetch } from '../transports/bounded-fetch.ts'
import { isInsideHost, isThisMachine } from '../transports/inside-hosts.ts'
import { AddressNotAllowed, publicFetch } from '../transports/public-fetch.ts'

const MAX_BYTES = 1024 * 1024
const TIMEOUT_MS = 10_000

export interface OAuthFetchOptions {
  /** As the operator wrote them: the server's address, and where `auth.issuer` says that one signs in. Their hosts are allowed whatever they are. */
  named: readonly string[]
  /** For everything else. */
  toPublic?: FetchLike
  /** For the hosts that the operator named. */
  toNamed?: FetchLike
}

/** Any host that the operator did not name must be https, and public where the connection is made. */
export function oauthFetch({ named, toPublic, toNamed }: OAuthFetchOptions): FetchLike {
  const hosts = named.map((url) => new URL(url).hostname)
  const everywhere = boundedFetch(MAX_BYTES, () => undefined, toNamed ?? fetch)
  const outside = boundedFetch(MAX_BYTES, () => undefined, toPublic ?? publicFetch())
  // A server on this machine is tried out here, with a sign-in that is here too.
  const fromHere = hosts.every(isThisMachine)
  return async (address, init) => {
    const url = new URL(address)
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    const signal = init?.signal == null ? timeout : AbortSignal.any([init.signal, timeout])
    // A redirect could lead anywhere; the SDK follows those within the origin itself, each through here again.
    const request = { ...init, signal, redirect: 'manual' as const }
    if (hosts.includes(url.hostname) || (fromHere && isThisMachine(url.hostname)))
      return everywhere(address, request)
    try {
      if (url.protocol !== 'https:' || isInsideHost(url.hostname))
        throw new AddressNotAllowed('it is not https, or not public')
      return await outside(address, request)
    } catch (error) {
      if (!(error instanceof AddressNotAllowed)) throw error
      throw new AddressNotAllowed(
        `the server sends sign-ins to ${url.origin}, which is not allowed (${error.message}); if that is meant, name it as auth.issuer`,
      )
    }
  }
}
