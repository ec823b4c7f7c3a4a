/**
 * The authorization server of a server: named by its metadata, or the server itself as in the
 * specification of March 2025. The SDK's `discoverOAuthServerInfo` takes a server that is down for
 * one without metadata, and knows no configured issuer.
 */
import {
  type AuthorizationServerMetadata,
  checkResourceAllowed,
  computeScopeUnion,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  type FetchLike,
  isStrictScopeSuperset,
  type OAuthProtectedResourceMetadata,
  resourceUrlFromServerUrl,
} from '@modelcontextprotocol/client'
import { messageOf } from '@sandlot/shared/base/errors'
import { AddressNotAllowedError } from '@sandlot/shared/node/safe-fetch'
import { ServerUnavailableError } from '../error.ts'

export interface Authority {
  /** Registrations and tokens belong to it, and are never sent to another authority. */
  issuer: string
  /** The base of its endpoints when it has no metadata. */
  url: string
  metadata: AuthorizationServerMetadata | undefined
  /** The resource that tokens are for (RFC 8707); undefined where the server does not say. */
  resource: string | undefined
  /** The scopes that the server says its tools need. */
  scope: string | undefined
}

interface AuthorityOptions {
  serverUrl: string
  /** The address of the metadata, from a refused request. */
  resourceMetadataUrl?: URL | undefined
  /** The only allowed authority. */
  issuer: string | undefined
  fetch: FetchLike
}

/**
 * Throws `ServerUnavailableError` when the metadata is not acceptable, `AddressNotAllowedError`, or
 * what `fetch` throws.
 */
export async function findAuthority(options: AuthorityOptions): Promise<Authority> {
  const { serverUrl, issuer: expected, fetch } = options
  const resource = await protectedResource(options)
  const [named] = resource?.authorization_servers ?? []
  if (named !== undefined && expected !== undefined && !sameIssuer(expected, named))
    throw new ServerUnavailableError(
      `its sign-in is at ${named.slice(0, 200)}, but its auth.issuer says ${expected}; put right which of the two is meant`,
    )
  // March 2025: the server's own root, whatever issuer it names. Bound to that root, such metadata
  // cannot claim to be another authority's.
  const known = named ?? expected
  const url = known ?? String(new URL('/', serverUrl))
  const metadata = await discoverAuthorizationServerMetadata(url, {
    fetchFn: fetch,
    skipIssuerValidation: known === undefined,
  })
  const issuer = known === undefined ? url : (metadata?.issuer ?? url)
  const pkce = metadata?.code_challenge_methods_supported
  if (named !== undefined && expected === undefined && metadata !== undefined && pkce === undefined)
    throw new ServerUnavailableError(
      `its sign-in at ${issuer.slice(0, 200)} does not say that it protects codes (PKCE); if it is to be trusted, name it as auth.issuer`,
    )
  return {
    issuer,
    url,
    metadata,
    resource: resource?.resource,
    scope: joinScopes(...(resource?.scopes_supported ?? [])),
  }
}

async function protectedResource({
  serverUrl,
  resourceMetadataUrl,
  fetch,
}: AuthorityOptions): Promise<OAuthProtectedResourceMetadata | undefined> {
  let found: OAuthProtectedResourceMetadata
  try {
    const at = resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }
    found = await discoverOAuthProtectedResourceMetadata(serverUrl, at, fetch)
  } catch (error) {
    // Only a server without metadata is one of March 2025; one that is down is asked again later.
    const isThere = error instanceof TypeError || error instanceof AddressNotAllowedError
    if (isThere || /^HTTP 5\d\d/.test(messageOf(error))) throw error
    return undefined
  }
  const requestedResource = resourceUrlFromServerUrl(serverUrl)
  if (!checkResourceAllowed({ requestedResource, configuredResource: found.resource }))
    // The server could use a token for another resource there.
    throw new ServerUnavailableError(
      `it wants tokens for ${found.resource.slice(0, 200)}, which is not its own address`,
    )
  return found
}

/** One of them may have a trailing slash. */
export function sameIssuer(one: string, other: string): boolean {
  return one.replace(/\/$/, '') === other.replace(/\/$/, '')
}

/** RFC 6749, 3.3: no character that breaks a line or a quotation. */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]{1,200}$/
const MAX_SCOPES = 64

/**
 * Each scope once, in the order of first appearance; undefined when there is none. Drops what is no
 * scope.
 */
export function joinScopes(...scopes: readonly (string | undefined)[]): string | undefined {
  const words = (computeScopeUnion(...scopes) ?? '').split(' ').filter((word) => SCOPE.test(word))
  return words.length === 0 ? undefined : words.slice(0, MAX_SCOPES).join(' ')
}

/** True when `granted` allows all of `wanted`. */
export function includesScopes(granted: string | undefined, wanted: string | undefined): boolean {
  return !isStrictScopeSuperset(joinScopes(wanted), granted)
}
