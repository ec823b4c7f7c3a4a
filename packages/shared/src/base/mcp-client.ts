/**
 * The OAuth client description of this Sandlot for MCP servers. The service publishes it; ai-agent
 * sends its address, or the same content when it registers.
 */

/** The service's redirect address. */
export const MCP_SIGN_IN_PATH = '/oauth/mcp'
/** The public address of the description on the service, which is our `client_id`. */
export const MCP_CLIENT_PATH = '/oauth/mcp/client.json'

interface McpClientDocument {
  client_name: string
  redirect_uris: string[]
  grant_types: string[]
  response_types: string[]
  token_endpoint_auth_method: 'none'
}

/** `redirectUrl`: the service's redirect address. */
export function mcpClientDocument(redirectUrl: string): McpClientDocument {
  return {
    client_name: 'Sandlot',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    // Public: a reader of this document could read a secret in it.
    token_endpoint_auth_method: 'none',
  }
}

/** The published document. `publicUrl`: the service's address, without a trailing slash. */
export function publishedMcpClient(
  publicUrl: string,
): McpClientDocument & { client_id: string; client_uri: string } {
  return {
    client_id: `${publicUrl}${MCP_CLIENT_PATH}`,
    client_uri: publicUrl,
    ...mcpClientDocument(`${publicUrl}${MCP_SIGN_IN_PATH}`),
  }
}
