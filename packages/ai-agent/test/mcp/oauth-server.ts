/** Guards an MCP server over HTTP the way the specification says: metadata, registration, PKCE, refresh with rotation. */
import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type HttpServer, startHttpServer } from './http-server.ts'

export interface OAuthServer extends HttpServer {
  /** Tokens that are good now. */
  valid: Set<string>
  refreshes: number
  registrations: number
  /** What somebody who opens the link and agrees is sent back with. */
  agree(link: string): URLSearchParams
}

export async function startOAuthServer(): Promise<OAuthServer> {
  const http = await startHttpServer()
  const clients = new Set<string>()
  const codes = new Map<string, { challenge: string; redirect: string; client: string }>()
  const refreshTokens = new Set<string>()
  const server: OAuthServer = Object.assign(http, {
    valid: new Set<string>(),
    refreshes: 0,
    registrations: 0,
    agree,
  })
  http.intercept = guard
  return server

  function guard(
    request: IncomingMessage,
    response: ServerResponse,
    _message: unknown,
    body: string,
  ): boolean {
    const { pathname } = new URL(request.url ?? '', http.origin)
    const send = (status: number, body: object): true => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      return true
    }
    if (pathname === '/.well-known/oauth-protected-resource/mcp')
      return send(200, {
        resource: http.url,
        authorization_servers: [http.origin],
        scopes_supported: ['read'],
      })
    if (pathname === '/.well-known/oauth-authorization-server')
      return send(200, {
        issuer: http.origin,
        authorization_endpoint: `${http.origin}/authorize`,
        token_endpoint: `${http.origin}/token`,
        registration_endpoint: `${http.origin}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
      })
    if (pathname === '/register') {
      const client_id = randomUUID()
      clients.add(client_id)
      server.registrations++
      return send(201, { client_id, redirect_uris: ['http://localhost:8002/oauth/mcp'] })
    }
    if (pathname === '/token') return token(new URLSearchParams(body), send)
    if (pathname !== '/mcp') return send(404, {})
    const bearer = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    if (server.valid.has(bearer)) return false
    const where = `${http.origin}/.well-known/oauth-protected-resource/mcp`
    response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${where}"` }).end()
    return true
  }

  function token(form: URLSearchParams, send: (status: number, body: object) => true): true {
    const issue = (): true => {
      const access_token = randomUUID()
      const refresh_token = randomUUID()
      server.valid.add(access_token)
      refreshTokens.add(refresh_token)
      return send(200, { access_token, refresh_token, token_type: 'Bearer', expires_in: 3_600 })
    }
    if (form.get('grant_type') === 'refresh_token') {
      server.refreshes++
      // Rotation: a second use of the same one is refused.
      return refreshTokens.delete(form.get('refresh_token') ?? '')
        ? issue()
        : send(400, { error: 'invalid_grant' })
    }
    const code = codes.get(form.get('code') ?? '')
    const verified = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const good = code?.challenge === verified && code.redirect === form.get('redirect_uri')
    return good ? issue() : send(400, { error: 'invalid_grant' })
  }

  function agree(link: string): URLSearchParams {
    const asked = new URL(link).searchParams
    if (!clients.has(asked.get('client_id') ?? '')) throw new Error('nobody knows this client')
    const code = randomUUID()
    codes.set(code, {
      challenge: asked.get('code_challenge') ?? '',
      redirect: asked.get('redirect_uri') ?? '',
      client: asked.get('client_id') ?? '',
    })
    return new URLSearchParams({ code, state: asked.get('state') ?? '' })
  }
}
