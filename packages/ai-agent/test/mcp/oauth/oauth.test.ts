import { describe, expect, test } from 'vitest'
import { OAuthAccess } from '../../../src/mcp/oauth/access.ts'
import { memoryRecords } from '../../../src/mcp/oauth/records.ts'
import { batchOf, openMcpBench } from '../mcp-bench.ts'
import { ADA, linkOf } from './bench.ts'
import { startOAuthServer } from './server.ts'

const BOB = 'u_bob'

describe('a server that wants the user to sign in', () => {
  test('offers a way to connect; after that its tools are there, for that user alone', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench({ cal: { url: server.url, auth: { type: 'oauth' } } })
    const before = await bench.tools(ADA)
    expect(before.modelTools().map(({ name }) => name)).toEqual(['connect_cal'])
    const outcome = await batchOf(before).call('connect_cal', {})
    expect(outcome).toMatchObject({
      status: 'failed',
      reason: 'needs_auth',
      data: { server: 'cal', connect: { url: linkOf(outcome) } },
    })
    const link = linkOf(outcome)
    // The address is for the person: a model would only repeat it.
    expect(outcome.forModel).not.toContain('http')
    expect(new URL(link).searchParams.get('code_challenge_method')).toBe('S256')
    const [again] = (await bench.mcp.servers.states(ADA, new AbortController().signal)).map(
      ({ state }) => state,
    )
    expect(again).toBe('needs_auth')

    const answer = server.agree(link)
    expect(await bench.mcp.finishSignIn(BOB, answer)).toHaveProperty('problem')
    expect(await bench.mcp.finishSignIn(ADA, answer)).toEqual({ server: 'cal' })
    expect(await bench.mcp.finishSignIn(ADA, answer)).toHaveProperty('problem')

    const tools = await bench.tools(ADA)
    expect(tools.has('cal::look')).toBe(true)
    expect(await batchOf(tools).call('look', {})).toMatchObject({ status: 'completed' })
    expect((await bench.tools(BOB)).has('cal::look')).toBe(false)
    expect([...bench.secrets.keys()].toSorted()).toEqual([
      'u_ada mcp:cal:client',
      'u_ada mcp:cal:tokens',
      'u_bob mcp:cal:client',
      // Ada's is used up.
      'u_bob mcp:cal:sign-ins',
    ])
    const token = [...server.valid][0] ?? 'no token'
    expect(JSON.stringify(bench.logged)).not.toContain(token)
  })

  test('an expired token is renewed once for all concurrent calls, and they succeed', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench({
      cal: { url: server.url, auth: { type: 'oauth' }, readOnly: ['look'] },
    })
    const link = linkOf(await batchOf(await bench.tools(ADA)).call('connect_cal', {}))
    await bench.mcp.finishSignIn(ADA, server.agree(link))
    const batch = batchOf(await bench.tools(ADA))
    server.valid.clear()
    const calls = Array.from({ length: 10 }, (_, index) => ({ id: `c${index}`, name: 'look', args: {} }))
    const outcomes = await batch.run(calls)
    expect(outcomes.map(({ status }) => status)).toEqual(calls.map(() => 'completed'))
    expect(server.refreshes).toBe(1)
    expect(server.registrations).toBe(1)
  })

  test('after access was revoked the call says so and shows the link', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench({ cal: { url: server.url, auth: { type: 'oauth' } } })
    const link = linkOf(await batchOf(await bench.tools(ADA)).call('connect_cal', {}))
    await bench.mcp.finishSignIn(ADA, server.agree(link))
    const batch = batchOf(await bench.tools(ADA))
    server.valid.clear()
    for (const [name, value] of bench.secrets)
      if (name.endsWith(':tokens'))
        bench.secrets.set(name, value.replace(/"refresh_token":"[^"]+"/, '"refresh_token":"old"'))
    const outcome = await batch.call('look', {})
    expect(outcome).toMatchObject({ status: 'failed', reason: 'needs_auth' })
    expect(linkOf(outcome)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/authorize\?/)
  })

  test('tokens stored without their issuer are not renewed: the user signs in again', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench({ cal: { url: server.url, auth: { type: 'oauth' } } })
    const link = linkOf(await batchOf(await bench.tools(ADA)).call('connect_cal', {}))
    await bench.mcp.finishSignIn(ADA, server.agree(link))
    const batch = batchOf(await bench.tools(ADA))
    server.valid.clear()
    for (const [name, value] of bench.secrets)
      if (name.endsWith(':tokens')) bench.secrets.set(name, value.replace(/"issuer":"[^"]+",/, ''))
    expect(await batch.call('look', {})).toMatchObject({ status: 'failed', reason: 'needs_auth' })
    expect(server.refreshes).toBe(0)
  })

  test('a link that is about to expire is not returned again', async () => {
    await using server = await startOAuthServer()
    let now = 0
    const access = new OAuthAccess({
      url: server.url,
      redirectUrl: async () => 'http://localhost:8002/oauth/mcp',
      documentUrl: undefined,
      own: undefined,
      issuer: undefined,
      scope: undefined,
      records: memoryRecords(),
      fetch,
      now: () => now,
    })
    const first = await access.signInUrl()
    now = 470_000
    expect(await access.signInUrl()).toBe(first)
    now = 490_000
    expect(await access.signInUrl()).not.toBe(first)
  })

  test('a user who refuses the consent sees that', async () => {
    await using server = await startOAuthServer()
    await using bench = openMcpBench({ cal: { url: server.url, auth: { type: 'oauth' } } })
    const link = linkOf(await batchOf(await bench.tools(ADA)).call('connect_cal', {}))
    const state = new URL(link).searchParams.get('state') ?? ''
    const answer = new URLSearchParams({ state, error: 'access_denied', error_description: 'they said no' })
    expect(await bench.mcp.finishSignIn(ADA, answer)).toEqual({
      problem: 'cal was not connected: they said no',
    })
  })
})
