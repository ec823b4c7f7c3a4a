/**
 * `fetch` for what a server says about its sign-in: the hosts that the operator named, and public
 * ones over https. A server must not redirect requests to private services, such as a cloud's
 * metadata.
 */
import { isLoopback, isPrivateHost } from '@sandlot/shared/node/addresses'
import { AddressNotAllowedError, type Fetch, boundedFetch, safeFetch } from '@sandlot/shared/node/safe-fetch'

const BOUNDS = { maxBytes: 1024 * 1024, timeoutMs: 10_000 }

/** Access to servers that are not trusted, and to their authorities. */
export interface ClientServerFetch {
  server: Fetch
  authority: Fetch
}

interface OAuthFetchOptions {
  /**
   * The server's address and `auth.issuer`, as configured: these hosts are allowed wherever they
   * are.
   */
  named: readonly string[]
  /** For everything else. */
  toPublic?: Fetch | undefined
  /** For the hosts that the operator named. */
  toNamed?: Fetch | undefined
}

/** Throws `AddressNotAllowedError` for a host that is not named and is not https or not public. */
export function oauthFetch({ named, toPublic = safeFetch(), toNamed = fetch }: OAuthFetchOptions): Fetch {
  const hosts = named.map((url) => new URL(url).hostname)
  const trusted = boundedFetch(toNamed, BOUNDS)
  const outside = boundedFetch(toPublic, BOUNDS)
  // A server on this machine is being tried out, with a sign-in on this machine.
  const fromHere = hosts.every(isLoopback)
  return async (address, init) => {
    const url = new URL(address)
    // The SDK follows redirects within the origin, each by another call of this.
    const request = { ...init, redirect: 'manual' as const }
    if (hosts.includes(url.hostname) || (fromHere && isLoopback(url.hostname)))
      return trusted(address, request)
    try {
      if (url.protocol !== 'https:' || isPrivateHost(url.hostname))
        throw new AddressNotAllowedError('it is not https, or not public')
      return await outside(address, request)
    } catch (error) {
      if (!(error instanceof AddressNotAllowedError)) throw error
      throw new AddressNotAllowedError(
        `the server sends sign-ins to ${url.origin}, which is not allowed (${error.message}); if that is meant, name it as auth.issuer`,
      )
    }
  }
}
