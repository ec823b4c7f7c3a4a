/** Attacks on a user's access by servers, authorization servers and links. */
import { describe, expect, test } from 'vitest'
import { documentUrlOf } from '../../../src/mcp/oauth/client.ts'
import { startHttpServer } from '../http-server.ts'
import { batchOf, openMcpBench } from '../mcp-bench.ts'
import { ADA, connect, linkOf } from './bench.ts'
import { type OAuthServer, startOAuthServer } from './server.ts'

const BOB = 'u_bob'
const SECRET = 'very-secret-of-ours'
const cal = (url: string, auth: object = {}): Record<string, object> => ({
  cal: { url, auth: { type: 'oauth', ...auth } },
})
const firstLink = async (bench: ReturnType<typeof openMcpBench>): Promise<string> =>
  linkOf(await batchOf(await bench.tools(ADA)).call('connect_cal', {}))
const why = async (bench: ReturnType<typeof openMcpBench>, user = ADA): Promise<string | undefined> =>
  (await bench.mcp.servers.states(user, new AbortController().signal))[0]?.why
const exchanges = ({ tokenRequests }: OAuthServer): number => tokenRequests.length

describe.concurrent('the way back', () => {
  test('works once, also for two concurrent requests; the code is sent once', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench(cal(server.url))
    const answer = server.agree(await firstLink(bench))
    const both = await Promise.all([bench.mcp.finishSignIn(ADA, answer), bench.mcp.finishSignIn(ADA, answer)])
    expect(both.filter((one) => 'server' in one)).toHaveLength(1)
    expect(exchanges(server)).toBe(1)
    expect(await bench.mcp.finishSignIn(ADA, answer)).toHaveProperty('problem')
    expect(exchanges(server)).toBe(1)
  })

  test('with a forged state, or that of another user, is refused', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench(cal(server.url))
    const answer = server.agree(await firstLink(bench))
    const forged = new URLSearchParams(answer)
    forged.set('state', 'x'.repeat(32))
    for (const [user, tried] of [
      [ADA, forged],
      [ADA, new URLSearchParams({ code: answer.get('code') ?? '' })],
      [BOB, answer],
    ] as const)
      expect(await bench.mcp.finishSignIn(user, tried)).toHaveProperty('problem')
    expect(exchanges(server)).toBe(0)
    // Others' tries did not use up Ada's own.
    expect(await bench.mcp.finishSignIn(ADA, answer)).toEqual({ server: 'cal' })
  })

  test('with the code of another sign-in is refused by PKCE, and keeps the user’s access', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench(cal(server.url))
    const batch = await connect(bench, server)
    server.needs = () => 'write'
    const link = linkOf(await batch.call('look', {}))
    const stolen = server.agree(await firstLinkOf(BOB))
    const mixed = new URLSearchParams(server.agree(link))
    mixed.set('code', stolen.get('code') ?? '')
    expect(await bench.mcp.finishSignIn(ADA, mixed)).toHaveProperty('problem')
    server.needs = () => undefined
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed' })

    async function firstLinkOf(user: string): Promise<string> {
      return linkOf(await batchOf(await bench.tools(user)).call('connect_cal', {}))
    }
  })

  test('from another authorization server than the user was sent to is neither used nor shown', async () => {
    await using server = await startOAuthServer()
    server.authoritySays = { authorization_response_iss_parameter_supported: true }
    await using bench = openMcpBench(cal(server.url))
    for (const iss of ['https://evil.example.org', undefined]) {
      const answer = server.agree(await firstLink(bench))
      answer.set('error_description', 'call this number')
      if (iss !== undefined) answer.set('iss', iss)
      const told = await bench.mcp.finishSignIn(ADA, answer)
      expect(told).toEqual({ problem: 'cal did not accept the sign-in. Ask for a new link in the chat.' })
    }
    expect(exchanges(server)).toBe(0)
    const answer = server.agree(await firstLink(bench))
    answer.set('iss', server.origin)
    expect(await bench.mcp.finishSignIn(ADA, answer)).toEqual({ server: 'cal' })
  })

  test('shows the reason of a refusal as one short line', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench(cal(server.url))
    const state = new URL(await firstLink(bench)).searchParams.get('state') ?? ''
    const error_description = `no\u0000\u202E\nway${'!'.repeat(1_000)}`
    const told = await bench.mcp.finishSignIn(
      ADA,
      new URLSearchParams({ state, error: 'x', error_description }),
    )
    expect(told).toMatchObject({
      problem: expect.stringMatching(/^cal was not connected: no {3}way!{0,200}$/),
    })
  })
})

describe.concurrent('a server’s metadata about its sign-in', () => {
  test('tokens for another resource are not requested: the server could use them there', async () => {
    await using server = await startOAuthServer()
    server.resourceSays = { resource: 'https://bank.example.org/mcp' }
    await using bench = openMcpBench(cal(server.url))
    expect((await bench.tools(ADA)).listTools()).toEqual([])
    expect(await why(bench)).toContain('wants tokens for https://bank.example.org/mcp')
    expect(server.registrations).toBe(0)
  })

  test('a token is requested for this server alone, and is not sent to another server of the same name', async () => {
    await using server = await startOAuthServer()
    await using other = await startHttpServer()
    await using bench = openMcpBench(cal(server.url))
    await connect(bench, server)
    expect(server.tokenRequests[0]?.form.get('resource')).toBe(server.url)
    await using moved = openMcpBench(cal(other.url), {
      secrets: {
        get: async (user, name) => bench.secrets.get(`${user} ${name}`),
        set: async () => undefined,
      },
    })
    await moved.tools(ADA)
    expect(other.seen.length).toBeGreaterThan(0)
    expect(other.seen.map(({ headers }) => headers.authorization)).toEqual(other.seen.map(() => undefined))
  })

  test('a client secret is sent to the configured issuer or the server’s own host only, whatever the server says', async () => {
    await using server = await startOAuthServer()
    await using evil = await startOAuthServer()
    const far = evil.origin.replace('127.0.0.1', 'localhost')
    evil.authoritySays = {
      issuer: far,
      token_endpoint: `${far}/token`,
      authorization_endpoint: `${far}/authorize`,
    }
    server.resourceSays = { authorization_servers: [far] }
    const own = { clientId: 'ours', clientSecret: SECRET }
    await using bench = openMcpBench(cal(server.url, own))
    await bench.tools(ADA)
    expect(await why(bench)).toContain(
      `sign-in is at ${far}, and a client secret goes to another host only when`,
    )
    await using pinned = openMcpBench(cal(server.url, { ...own, issuer: server.origin }))
    await pinned.tools(ADA)
    expect(await why(pinned)).toContain(`sign-in is at ${far}, but its auth.issuer says ${server.origin}`)
    // The operator says that it is right.
    evil.clients.set('ours', SECRET)
    await using allowed = openMcpBench(cal(server.url, { ...own, issuer: far }))
    const answer = evil.agree(linkOf(await batchOf(await allowed.tools(ADA)).call('connect_cal', {})))
    expect(exchanges(evil)).toBe(0)
    expect(await allowed.mcp.finishSignIn(ADA, answer)).toEqual({ server: 'cal' })
    expect(evil.tokenRequests[0]?.authorization).toMatch(/^Basic /)
    for (const one of [bench, pinned, allowed]) expect(JSON.stringify(one.logged)).not.toContain(SECRET)
  })

  test('metadata of March 2025 with the issuer of another authority gets none of that authority’s credentials', async () => {
    await using server = await startOAuthServer()
    server.resourceSays = { resource: undefined }
    server.authoritySays = { issuer: 'http://localhost:9' }
    await using bench = openMcpBench(
      cal(server.url, { clientId: 'ours', clientSecret: SECRET, issuer: 'http://localhost:9' }),
    )
    await bench.tools(ADA)
    expect(await why(bench)).toBeDefined()
    expect(exchanges(server)).toBe(0)
  })

  test('a sign-in without PKCE is not used', async () => {
    await using server = await startOAuthServer()
    server.authoritySays = { code_challenge_methods_supported: undefined }
    await using bench = openMcpBench(cal(server.url))
    await bench.tools(ADA)
    expect(await why(bench)).toContain('does not say that it protects codes (PKCE)')
  })

  test('a token endpoint that redirects elsewhere is not followed there', async () => {
    await using server = await startOAuthServer()
    await using elsewhere = await startHttpServer()
    await using bench = openMcpBench(cal(server.url))
    const answer = server.agree(await firstLink(bench))
    const { intercept } = server
    server.intercept = (request, response, message, body) => {
      if (request.url !== '/token') return intercept(request, response, message, body)
      response.writeHead(307, { location: `${elsewhere.origin}/token` }).end()
      return true
    }
    expect(await bench.mcp.finishSignIn(ADA, answer)).toHaveProperty('problem')
    expect(elsewhere.seen).toEqual([])
  })

  test('an authority that is down when a token expires does not end the access', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench(cal(server.url))
    const batch = await connect(bench, server)
    server.valid.clear()
    const { intercept } = server
    server.intercept = (request, response, message, body) => {
      if (request.url !== '/token') return intercept(request, response, message, body)
      response.writeHead(503).end('<html>later</html>')
      return true
    }
    expect(await batch.call('look', {})).toMatchObject({
      reason: 'unavailable',
      forModel: expect.stringContaining('did not renew the access'),
    })
    server.intercept = intercept
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed' })
  })

  test('when registration is needed and impossible, the operator sees what to do', async () => {
    await using server = await startOAuthServer()
    server.authoritySays = { registration_endpoint: undefined }
    await using bench = openMcpBench(cal(server.url))
    await bench.tools(ADA)
    expect(await why(bench)).toMatch(
      /register this Sandlot there \(redirect address http:\S+\) and set auth.clientId/,
    )
  })
})

describe.concurrent('the client document', () => {
  const documentUrl = 'https://sandlot.example.org/oauth/mcp/client.json'

  test('is the client id where it can be fetched; then there is no registration', async () => {
    await using server = await startOAuthServer()
    server.authoritySays = { client_id_metadata_document_supported: true }
    await using bench = openMcpBench(cal(server.url), { documentUrl })
    expect(new URL(await firstLink(bench)).searchParams.get('client_id')).toBe(documentUrl)
    expect(server.registrations).toBe(0)
    await using without = openMcpBench(cal(server.url, { clientDocument: false }), { documentUrl })
    await firstLink(without)
    expect(server.registrations).toBe(1)
  })

  test('is published at a public https address only', () => {
    expect(documentUrlOf('https://sandlot.example.org')).toBe(documentUrl)
    for (const url of ['http://sandlot.example.org', 'https://localhost:8002', 'https://10.0.0.7'])
      expect(documentUrlOf(url)).toBeUndefined()
  })
})

describe.concurrent('a server to which the deployment itself signs in', () => {
  const machine = (url: string, more: object = {}): Record<string, object> => ({
    cal: { url, auth: { type: 'client-credentials', clientId: 'ours', clientSecret: SECRET, ...more } },
  })

  test('is shared: one token for all users, renewed when it expires, widened when a call needs it', async () => {
    await using server = await startOAuthServer()
    server.clients.set('ours', SECRET)
    await using bench = openMcpBench(machine(server.url))
    const batch = batchOf(await bench.tools(ADA))
    expect((await bench.tools(BOB)).has('cal::look')).toBe(true)
    expect(exchanges(server)).toBe(1)
    server.needs = () => 'write'
    expect(await batch.call('look', {})).toMatchObject({ status: 'completed' })
    expect(server.tokenRequests.map(({ form }) => form.get('scope'))).toEqual(['read', 'read write'])
    expect(JSON.stringify(bench.logged)).not.toContain(SECRET)
  })

  test('two concurrent calls that need different scopes both get them', async () => {
    await using server = await startOAuthServer()
    server.clients.set('ours', SECRET)
    const servers = machine(server.url)
    await using bench = openMcpBench({ cal: { ...servers['cal'], readOnly: ['look', 'other'] } })
    const batch = batchOf(await bench.tools(ADA))
    server.needs = (tool) => `to-${tool}`
    const outcomes = await batch.run(['look', 'other'].map((name) => ({ id: name, name, args: {} })))
    expect(outcomes.map(({ status }) => status)).toEqual(['completed', 'completed'])
    expect(server.tokenRequests.map(({ form }) => form.get('scope')?.split(' ').length)).toEqual([1, 2, 3])
  })

  test('that refuses the client says so, and a call that needs a refused scope gets a reason', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench(machine(server.url))
    await bench.tools()
    expect(await why(bench)).toContain('its sign-in gives no token to ours (invalid_client')
    // Or it would be tried again by itself, with the client that is known from here on.
    await bench.close()
    server.clients.set('ours', SECRET)
    server.grants = () => 'read'
    await using known = openMcpBench(machine(server.url))
    const batch = batchOf(await known.tools())
    server.needs = () => 'write'
    const before = exchanges(server)
    expect(await batch.call('look', {})).toMatchObject({
      reason: 'unavailable',
      forModel: expect.stringContaining('it wants write, which this Sandlot is not allowed there'),
    })
    expect(exchanges(server)).toBe(before + 1)
  })
})
