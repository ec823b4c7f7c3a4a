/** How we describe ourselves to those who let people in to MCP servers: sent when registering, or fetched from our address. */
import type { OAuthClientMetadata } from '@modelcontextprotocol/client'
import { MCP_CLIENT_PATH, mcpClientDocument } from '@sandlot/shared/mcp-client'
import { isPrivateHost } from '@sandlot/shared/node/addresses'

/** For a registration. */
export function clientMetadata(redirectUrl: string, scope: string | undefined): OAuthClientMetadata {
  const kind = isPrivateHost(new URL(redirectUrl).hostname) ? 'native' : 'web'
  return {
    ...mcpClientDocument(redirectUrl),
    application_type: kind,
    scope,
  }
}

/** Where our description is published; undefined when strangers could not read it there. `publicUrl`: the service's. */
export function documentUrlOf(publicUrl: string): string | undefined {
  const { protocol, hostname } = new URL(publicUrl)
  return protocol === 'https:' && !isPrivateHost(hostname) ? `${publicUrl}${MCP_CLIENT_PATH}` : undefined
}
