/**
 * Our own servers as an operator names them in the configuration: programs beside the agent, which ask local servers that
 * play Duffel and Google; called by the model, in prompts of two users.
 */
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { offer, offerRequest } from '../../../../mcp/flights-mcp/test/offers.ts'
import { type PlayingServer, playingServer } from '../../../../mcp/mcp-kit/test/playing-server.ts'
import { AgentBench, ask, outcomes } from '../support/agent-fixture.ts'
import { type Scripted, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { batchOf, openMcpBench } from './mcp-bench.ts'

const DUFFEL_TOKEN = 'duffel_test_b25seS1mb3ItdGVzdHM'
const CLIENT_SECRET = 'a-client-secret-for-tests-only'
const refreshToken = (user: string): string => `1//0g-refresh-token-of-${user}`
const accessToken = (user: string): string => `ya29.access-token-of-${user}`
const ADA = 'u_ada'
const BOB = 'u_bob'

const event = {
  kind: 'calendar#event',
  id: 'e1',
  status: 'confirmed',
  summary: 'Stand-up',
  start: { dateTime: '2027-03-01T09:00:00+01:00' },
  end: { dateTime: '2027-03-01T09:15:00+01:00' },
}

let duffel: PlayingServer
let google: PlayingServer

beforeEach(async () => {
  duffel = await playingServer()
  google = await playingServer()
  duffel.play({ status: 201, body: offerRequest([offer()]) })
})

afterEach(async () => {
  await duffel.close()
  await google.close()
})

/**
 * A configuration file, on the sources in place of the build. One search a minute: each user's
 * shows.
 */
function configuration(): Record<string, object> {
  const program = (name: string): object => ({
    command: process.execPath,
    args: [
      '--conditions=sandlot-source',
      fileURLToPath(new URL(`../../../../mcp/${name}/src/main.ts`, import.meta.url)),
    ],
  })
  return {
    'flights-mcp': {
      ...program('flights-mcp'),
      env: {
        DUFFEL_ACCESS_TOKEN: '${MCP_DUFFEL_TOKEN}',
        DUFFEL_API_URL: duffel.url,
        FLIGHTS_PER_MINUTE: '1',
      },
      readOnly: ['search-flights'],
    },
    'google-calendar-mcp': {
      ...program('google-calendar-mcp'),
      env: {
        GOOGLE_REFRESH_TOKEN: '${secret:GOOGLE_REFRESH_TOKEN}',
        GOOGLE_CLIENT_ID: 'a-client',
        GOOGLE_CLIENT_SECRET: '${MCP_GOOGLE_CLIENT_SECRET}',
        GOOGLE_CALENDAR_API_URL: google.url,
        GOOGLE_TOKEN_URL: `${google.url}/token`,
      },
      readOnly: ['list-events'],
    },
  }
}

const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
const search = (id: string, days: number) => ({
  id,
  name: 'search_flights',
  args: { origin: 'LHR', destination: 'JFK', departure_date: inDays(days) },
})
const list = (id: string) => ({ id, name: 'list_events', args: { maxResults: 5 } })

test('search_flights and list_events: outcomes, each user by themselves, and no secret anywhere', async () => {
  await using mcp = openMcpBench(configuration(), {
    env: { MCP_DUFFEL_TOKEN: DUFFEL_TOKEN, MCP_GOOGLE_CLIENT_SECRET: CLIENT_SECRET },
  })
  const script: Scripted[] = [
    toolCalls([search('a1', 30), list('a2')]),
    toolCalls([search('a3', 31)]),
    textAnswer('For Ada.'),
    toolCalls([search('b1', 32), list('b2')]),
    textAnswer('For Bob.'),
  ]
  await using bench = await AgentBench.start(script)
  const core = await bench.core({
    parts: { tools: (userId, signal) => mcp.mcp.servers.toolsOf(userId, signal) },
  })
  const sessionOf = async (user: string) => {
    mcp.secrets.set(`${user} GOOGLE_REFRESH_TOKEN`, refreshToken(user))
    google.play(
      { body: { access_token: accessToken(user), expires_in: 3_599, token_type: 'Bearer' } },
      { body: { kind: 'calendar#events', items: [{ ...event, summary: `Stand-up of ${user}` }] } },
    )
    const session = await core.manager.create({ userId: user, cwd: '/workspace', mode: 'yolo' })
    await ask(session, 'go')
    return session
  }
  const ada = await sessionOf(ADA)
  const bob = await sessionOf(BOB)

  // The limit of Ada's searches is hers: the server knows for whom it is asked.
  expect(outcomes(ada.log)).toEqual({ a1: ['completed'], a2: ['completed'], a3: ['failed rate_limited'] })
  expect(outcomes(bob.log)).toEqual({ b1: ['completed'], b2: ['completed'] })
  const results = bench.provider.requests.flatMap(({ body }) =>
    body.messages.filter(({ role }) => role === 'tool'),
  )
  const of = (id: string): unknown => {
    const found = results.find((message) => message['tool_call_id'] === id)
    return JSON.parse(String(found?.content))
  }
  expect(of('a1')).toMatchObject({ flights: [{ airline: 'Example Air' }], count: 1, status: 'success' })
  expect(of('a2')).toMatchObject({ events: [{ summary: 'Stand-up of u_ada' }], count: 1, status: 'success' })
  expect(of('b2')).toMatchObject({ events: [{ summary: 'Stand-up of u_bob' }], count: 1, status: 'success' })
  expect(duffel.seen.map(({ headers }) => headers.authorization)).toEqual([
    `Bearer ${DUFFEL_TOKEN}`,
    `Bearer ${DUFFEL_TOKEN}`,
  ])
  // Each user's own permission went to Google.
  expect(
    google.seen.map(
      ({ body, headers }) => headers.authorization ?? new URLSearchParams(body).get('refresh_token'),
    ),
  ).toEqual([
    refreshToken(ADA),
    `Bearer ${accessToken(ADA)}`,
    refreshToken(BOB),
    `Bearer ${accessToken(BOB)}`,
  ])

  const said = JSON.stringify([
    mcp.logged,
    core.warnings,
    ada.log,
    bob.log,
    bench.provider.requests.map(({ raw }) => raw),
  ])
  // Servers' output is in the agent's log.
  expect(said).toContain('lookup ended')
  for (const secret of [DUFFEL_TOKEN, CLIENT_SECRET, refreshToken(''), accessToken('')])
    expect(said).not.toContain(secret)
})

test('a user without the secret sees which one is missing', async () => {
  await using mcp = openMcpBench(configuration(), {
    env: { MCP_DUFFEL_TOKEN: DUFFEL_TOKEN, MCP_GOOGLE_CLIENT_SECRET: CLIENT_SECRET },
  })
  const outcome = await batchOf(await mcp.tools(ADA)).call('list_events', {})
  expect(outcome).toMatchObject({
    status: 'failed',
    reason: 'needs_auth',
    forModel: expect.stringContaining('GOOGLE_REFRESH_TOKEN'),
  })
  expect(google.seen).toEqual([])
})
