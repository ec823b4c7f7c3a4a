/**
 * The OAuth client for an authority: registered by the operator, the published document, or
 * registered now. The SDK has this choice inside `auth()` only.
 */
import {
  type FetchLike,
  type OAuthClientInformationMixed,
  type OAuthClientMetadata,
  registerClient,
} from '@modelcontextprotocol/client'
import { MCP_CLIENT_PATH, mcpClientDocument } from '@sandlot/shared/base/mcp-client'
import { isPrivateHost } from '@sandlot/shared/node/addresses'
import { z } from 'zod'
import { ServerUnavailableError } from '../error.ts'
import { type Authority, sameIssuer } from './authority.ts'

/** Registered by the operator with the authority. */
export interface OwnClient {
  clientId: string
  clientSecret: string | undefined
}

interface ClientOptions {
  serverUrl: string
  own: OwnClient | undefined
  /** The only allowed authority. */
  issuer: string | undefined
  /** The URL of the client document, for authorities that support it. */
  documentUrl: string | undefined
  metadata: OAuthClientMetadata
  /** A stored registration, as JSON. */
  read: () => Promise<string | undefined>
  save: (registration: string) => Promise<void>
  fetch: FetchLike
}

const registration = z.looseObject({
  client_id: z.string(),
  issuer: z.string(),
  redirect_uris: z.array(z.string()).default([]),
})

/** Throws `ServerUnavailableError` when there is no way to be a client, or the SDK's errors. */
export async function clientFor(
  authority: Authority,
  options: ClientOptions,
): Promise<OAuthClientInformationMixed> {
  const { own, documentUrl, metadata } = options
  if (own !== undefined) return ownClient(authority, own, options)
  if (documentUrl !== undefined && authority.metadata?.['client_id_metadata_document_supported'] === true)
    return { client_id: documentUrl }
  const stored = registrationOf(await options.read())
  const fits =
    stored !== undefined &&
    sameIssuer(stored.issuer, authority.issuer) &&
    // Registered under another address of Sandlot: the authority would refuse the redirect.
    metadata.redirect_uris.every((uri) => stored.redirect_uris.includes(uri))
  if (fits) return stored
  if (authority.metadata !== undefined && authority.metadata.registration_endpoint === undefined)
    throw new ServerUnavailableError(
      `its sign-in at ${authority.issuer.slice(0, 200)} does not register clients by itself; register this Sandlot there (redirect address ${metadata.redirect_uris[0] ?? 'none'}) and set auth.clientId`,
    )
  const made = await registerClient(authority.url, {
    metadata: authority.metadata,
    clientMetadata: metadata,
    fetchFn: options.fetch,
  })
  const { redirect_uris } = metadata
  await options.save(JSON.stringify({ ...made, redirect_uris, issuer: authority.issuer }))
  return made
}

/**
 * The configured client. Its secret is sent to the configured issuer or the server's own host only,
 * not to where a server says. Throws `ServerUnavailableError`.
 */
export function ownClient(
  authority: { issuer: string; url: string; metadata?: { token_endpoint: string } | undefined },
  { clientId, clientSecret }: OwnClient,
  { serverUrl, issuer }: { serverUrl: string; issuer: string | undefined },
): OAuthClientInformationMixed {
  if (clientSecret === undefined) return { client_id: clientId }
  const host = new URL(serverUrl).hostname
  const endpoints = [authority.url, authority.metadata?.token_endpoint ?? authority.url]
  if (issuer === undefined && endpoints.some((url) => new URL(url).hostname !== host))
    throw new ServerUnavailableError(
      `its sign-in is at ${authority.issuer.slice(0, 200)}, and a client secret goes to another host only when the operator names it: set auth.issuer to that if it is right`,
    )
  return { client_id: clientId, client_secret: clientSecret }
}

function registrationOf(text: string | undefined): z.output<typeof registration> | undefined {
  return text === undefined ? undefined : registration.safeParse(JSON.parse(text)).data
}

/** The metadata for a registration. */
export function clientMetadata(redirectUrl: string, scope: string | undefined): OAuthClientMetadata {
  const kind = isPrivateHost(new URL(redirectUrl).hostname) ? 'native' : 'web'
  return {
    ...mcpClientDocument(redirectUrl),
    application_type: kind,
    scope,
  }
}

/**
 * The URL of the client document; undefined when it cannot be fetched from outside. `publicUrl`:
 * the service's.
 */
export function documentUrlOf(publicUrl: string): string | undefined {
  const { protocol, hostname } = new URL(publicUrl)
  return protocol === 'https:' && !isPrivateHost(hostname) ? `${publicUrl}${MCP_CLIENT_PATH}` : undefined
}
