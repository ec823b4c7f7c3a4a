/**
 * How this Sandlot describes itself to those who let people in to MCP servers. The service
 * publishes it, ai-agent names that address, or sends the same when it registers; so both have to
 * say the same.
 */

/** On the service: where people are sent back to. */
export const MCP_SIGN_IN_PATH = '/oauth/mcp'
/**
 * On the service: where the description is, without a sign-in. Its address is our name there
 * (`client_id`).
 */
export const MCP_CLIENT_PATH = '/oauth/mcp/client.json'

interface McpClientDocument {
  client_name: string
  redirect_uris: string[]
  grant_types: string[]
  response_types: string[]
  token_endpoint_auth_method: 'none'
}

/** `redirectUrl`: where people are sent back to. */
export function mcpClientDocument(redirectUrl: string): McpClientDocument {
  return {
    client_name: 'Sandlot',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    // It is public: a reader of this could read a secret beside it.
    token_endpoint_auth_method: 'none',
  }
}

/** As it is published. `publicUrl`: the service's address, without a slash at the end. */
export function publishedMcpClient(
  publicUrl: string,
): McpClientDocument & { client_id: string; client_uri: string } {
  return {
    client_id: `${publicUrl}${MCP_CLIENT_PATH}`,
    client_uri: publicUrl,
    ...mcpClientDocument(`${publicUrl}${MCP_SIGN_IN_PATH}`),
  }
}
