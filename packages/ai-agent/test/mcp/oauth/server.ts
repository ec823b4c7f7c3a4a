/** Guards an MCP server over HTTP the way the specification says: metadata, registration, PKCE, scopes, refresh with rotation. */
import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type HttpServer, type Rpc, startHttpServer } from '../http-server.ts'

export interface TokenRequest {
  authorization: string | undefined
  form: URLSearchParams
}

export interface OAuthServer extends HttpServer {
  /** Tokens that are good now. */
  valid: Set<string>
  refreshes: number
  registrations: number
  /** Every request for a token, good or not. */
  tokenRequests: TokenRequest[]
  /** Requirements of a tool besides a token; undefined: none. */
  needs: (tool: string) => string | undefined
  /** The granted part of the requested scope. */
  grants: (scope: string) => string
  /** Laid over what it says about itself as a resource, and as an authorization server. */
  resourceSays: Record<string, unknown>
  authoritySays: Record<string, unknown>
  /** Clients that sign in by themselves: id → secret. */
  clients: Map<string, string>
  /** The answer after a user opens the link and agrees. */
  agree(link: string): URLSearchParams
}

export async function startOAuthServer(): Promise<OAuthServer> {
  const http = await startHttpServer()
  const registered = new Set<string>()
  const codes = new Map<string, { challenge: string; redirect: string; client: string; scope: string }>()
  const refreshTokens = new Map<string, string>()
  const scopes = new Map<string, string>()
  const server: OAuthServer = Object.assign(http, {
    valid: new Set<string>(),
    refreshes: 0,
    registrations: 0,
    tokenRequests: [],
    needs: () => undefined,
    grants: (scope: string) => scope,
    resourceSays: {},
    authoritySays: {},
    clients: new Map<string, string>(),
    agree,
  })
  http.intercept = guard
  return server

  function guard(
    request: IncomingMessage,
    response: ServerResponse,
    message: Rpc | undefined,
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
        ...server.resourceSays,
      })
    if (pathname === '/.well-known/oauth-authorization-server')
      return send(200, {
        issuer: http.origin,
        authorization_endpoint: `${http.origin}/authorize`,
        token_endpoint: `${http.origin}/token`,
        registration_endpoint: `${http.origin}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
        ...server.authoritySays,
      })
    if (pathname === '/register') {
      const client_id = randomUUID()
      registered.add(client_id)
      server.registrations++
      return send(201, { client_id, redirect_uris: ['http://localhost:8002/oauth/mcp'] })
    }
    if (pathname === '/authorize') {
      // Somebody at a browser, who agrees at once.
      const link = `${http.origin}${request.url ?? ''}`
      const back = new URL(new URL(link).searchParams.get('redirect_uri') ?? '')
      back.search = agree(link).toString()
      response.writeHead(302, { location: back.href }).end()
      return true
    }
    if (pathname === '/token') {
      const { authorization } = request.headers
      const form = new URLSearchParams(body)
      server.tokenRequests.push({ authorization, form })
      return token(form, authorization, send)
    }
    if (pathname !== '/mcp') return send(404, {})
    const bearer = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const where = `resource_metadata="${http.origin}/.well-known/oauth-protected-resource/mcp"`
    if (!server.valid.has(bearer)) {
      response.writeHead(401, { 'www-authenticate': `Bearer ${where}` }).end()
      return true
    }
    const needed = message?.method === 'tools/call' ? server.needs(message.params?.name ?? '') : undefined
    if (needed === undefined || scopes.get(bearer)?.split(' ').includes(needed)) return false
    const challenge = `Bearer error="insufficient_scope", scope="${needed}", ${where}`
    response.writeHead(403, { 'www-authenticate': challenge }).end()
    return true
  }

  function token(
    form: URLSearchParams,
    authorization: string | undefined,
    send: (status: number, body: object) => true,
  ): true {
    const issue = (scope: string): true => {
      const access_token = randomUUID()
      const refresh_token = randomUUID()
      const given = server.grants(scope)
      server.valid.add(access_token)
      scopes.set(access_token, given)
      refreshTokens.set(refresh_token, scope)
      const expires_in = 3_600
      return send(200, { access_token, refresh_token, token_type: 'Bearer', expires_in, scope: given })
    }
    switch (form.get('grant_type')) {
      case 'refresh_token': {
        server.refreshes++
        // Rotation: a second use of the same one is refused.
        const old = form.get('refresh_token') ?? ''
        const scope = refreshTokens.get(old)
        refreshTokens.delete(old)
        return scope === undefined ? send(400, { error: 'invalid_grant' }) : issue(scope)
      }
      case 'client_credentials': {
        const known = [...server.clients].some(
          ([id, secret]) => authorization === `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
        )
        return known ? issue(form.get('scope') ?? '') : send(401, { error: 'invalid_client' })
      }
      default: {
        const code = codes.get(form.get('code') ?? '')
        codes.delete(form.get('code') ?? '')
        const verified = createHash('sha256')
          .update(form.get('code_verifier') ?? '')
          .digest('base64url')
        const good = code?.challenge === verified && code.redirect === form.get('redirect_uri')
        return good ? issue(code.scope) : send(400, { error: 'invalid_grant' })
      }
    }
  }

  function agree(link: string): URLSearchParams {
    const asked = new URL(link).searchParams
    const client = asked.get('client_id') ?? ''
    if (!registered.has(client) && !server.clients.has(client) && !client.startsWith('https://'))
      throw new Error('nobody knows this client')
    const code = randomUUID()
    codes.set(code, {
      challenge: asked.get('code_challenge') ?? '',
      redirect: asked.get('redirect_uri') ?? '',
      client,
      scope: asked.get('scope') ?? '',
    })
    return new URLSearchParams({ code, state: asked.get('state') ?? '' })
  }
}
