/**
 * The server as a process, a real MCP client on its stdin and stdout, and a local server that plays
 * Duffel.
 */
import { describe, expect, test } from 'vitest'
import { serverContract } from '../../mcp-kit/test/server-contract.ts'
import { startTestServers } from '../../mcp-kit/test/test-servers.ts'
import { failureOf, noticeOf, textOf } from '../../mcp-kit/test/stdio-server.ts'
import { duffelErrors, offer, offerRequest } from './offers.ts'

const TOKEN = 'duffel_test_Zm9yLXRlc3RzLW9ubHktMDEyMzQ1Njc4OQ'
const MAIN = new URL('../src/main.ts', import.meta.url)

const servers = startTestServers({
  main: MAIN,
  tool: 'search-flights',
  env: (url) => ({ DUFFEL_ACCESS_TOKEN: TOKEN, DUFFEL_API_URL: url }),
  first: { FLIGHTS_PER_MINUTE: '1000' },
  usual: () => ({ status: 201, body: offerRequest([offer()]) }),
  secrets: [TOKEN, /Bearer (?!\[hidden\])|a-client-key/],
})

/** In the future, and another one each time: nothing comes from the cache by accident. */
let day = 0
const trip = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  origin: 'LHR',
  destination: 'JFK',
  departure_date: new Date(Date.now() + (30 + day++) * 86_400_000).toISOString().slice(0, 10),
  ...more,
})
const dayAfter = (date: unknown, days: number): string =>
  new Date(Date.parse(String(date)) + days * 86_400_000).toISOString().slice(0, 10)

describe('search-flights', () => {
  test('asks Duffel for an offer request and gives what a person compares', async () => {
    const search = trip()
    const result = await servers.server.call(search)
    expect(result.structuredContent).toEqual({
      flights: [
        {
          id: 'off_00009htYpSCXrwaB9DnUm0',
          airline: 'Example Air',
          price: { amount: '121.50', currency: 'GBP' },
          expires_at: '2026-11-20T10:42:14.545Z',
          ways: [
            {
              from: 'LHR',
              to: 'JFK',
              departs: '2027-03-01T00:00:00',
              arrives: '2027-03-01T00:50:00',
              duration: 'PT8H26M',
              connections: 0,
              segments: [
                {
                  flight: 'XA100',
                  airline: 'Example Air',
                  operated_by: 'Feeder Air',
                  from: 'LHR',
                  to: 'JFK',
                  departs: '2027-03-01T00:00:00',
                  arrives: '2027-03-01T00:50:00',
                  cabin_class: 'economy',
                },
              ],
            },
          ],
        },
      ],
      count: 1,
      status: 'success',
    })
    expect(JSON.parse(textOf(result))).toEqual(result.structuredContent)
    const [request] = servers.service.seen
    expect(request).toMatchObject({
      method: 'POST',
      url: '/air/offer_requests/?return_offers=true&supplier_timeout=8000',
      headers: { authorization: `Bearer ${TOKEN}`, 'duffel-version': 'v2' },
    })
    expect(JSON.parse(request?.body ?? '')).toEqual({
      data: {
        slices: [{ origin: 'LHR', destination: 'JFK', departure_date: search['departure_date'] }],
        passengers: [{ type: 'adult' }],
        max_connections: 2,
      },
    })
  })

  test('a way back, more travellers, a cabin', async () => {
    servers.service.play({ status: 201, body: offerRequest([offer({ back: true, connections: 2 })]) })
    const search = trip({ adults: 2, cabin_class: 'business', max_connections: 1 })
    const result = await servers.server.call({
      ...search,
      return_date: dayAfter(search['departure_date'], 7),
    })
    expect(result.structuredContent).toMatchObject({
      flights: [{ ways: [{ connections: 2 }, { from: 'JFK', to: 'LHR', connections: 0 }] }],
    })
    expect(JSON.parse(servers.service.seen[0]?.body ?? '')).toEqual({
      data: {
        slices: [
          { origin: 'LHR', destination: 'JFK', departure_date: search['departure_date'] },
          { origin: 'JFK', destination: 'LHR', departure_date: dayAfter(search['departure_date'], 7) },
        ],
        passengers: [{ type: 'adult' }, { type: 'adult' }],
        cabin_class: 'business',
        max_connections: 1,
      },
    })
  })

  test('no offer is an answer, not a failure', async () => {
    servers.service.play({ status: 201, body: offerRequest([]) })
    expect((await servers.server.call(trip())).structuredContent).toEqual({
      flights: [],
      count: 0,
      status: 'success',
    })
  })

  test('many offers: the cheapest, and a notice', async () => {
    const offers = Array.from({ length: 60 }, (_, n) => offer({ id: `off_${n}`, amount: `${900 - n}.10` }))
    servers.service.play({ status: 201, body: offerRequest([...offers, { id: 'off_of_another_shape' }]) })
    const result = await servers.server.call(trip())
    const { flights, count, status } = result.structuredContent as {
      flights: { id: string }[]
      count: number
      status: string
    }
    expect({ count, status }).toEqual({ count: 25, status: 'partial' })
    expect(flights.map(({ id }) => id).slice(0, 2)).toEqual(['off_59', 'off_58'])
    expect(noticeOf(result)).toContain('25 cheapest of 60 offers')
    expect(noticeOf(result)).toContain('1 more offers could not be parsed')
  })

  test('the same search again is answered from memory, for another user too', async () => {
    const search = trip()
    await servers.server.call(search, { userId: 'ann' })
    await servers.server.call({ ...search, adults: 1, max_connections: 2 }, { userId: 'bob' })
    expect(servers.service.seen).toHaveLength(1)
    await servers.server.call({ ...search, adults: 2 })
    expect(servers.service.seen).toHaveLength(2)
  })
})

describe('what is not searched', () => {
  test.each([
    ['a code that is none', { origin: 'London' }],
    ['small letters', { destination: 'jfk' }],
    ['another form of date', { departure_date: '01/03/2027' }],
    ['no traveller', { adults: 0 }],
    ['a cabin that there is not', { cabin_class: 'luxury' }],
    ['too many connections', { max_connections: 3 }],
    ['an unknown argument', { budget: 100 }],
  ])('%s', async (_, wrong) => {
    const result = await servers.server.call(trip(wrong))
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain(Object.keys(wrong)[0])
    expect(servers.service.seen).toEqual([])
  })

  test.each([
    ['a day that is not in the calendar', { departure_date: '2027-02-30' }, 'is not in the calendar'],
    ['a day that is over', { departure_date: '2020-01-01' }, 'is over; today is'],
    ['no way at all', { destination: 'LHR' }, 'origin and destination are both LHR'],
    ['a way back before the way there', { return_date: '2020-01-01' }, 'is before departure_date'],
    ['a way back on a day that is none', { return_date: '2027-13-01' }, 'is not in the calendar'],
  ])('%s', async (_, wrong, words) => {
    const result = await servers.server.call(trip(wrong))
    expect(failureOf(result)).toEqual({ code: 'invalid_arguments' })
    expect(textOf(result)).toContain(words)
    expect(servers.service.seen).toEqual([])
  })

  test('every problem is told at once', async () => {
    const result = await servers.server.call({
      origin: 'LHR',
      destination: 'LHR',
      departure_date: '2020-01-01',
      return_date: '2019-01-01',
    })
    expect(textOf(result)).toMatch(/both LHR.*is over.*is before/)
  })
})

describe('what Duffel may answer', () => {
  test.each([
    [
      '401',
      { status: 401, body: duffelErrors(401, 'access_token_not_found', `The token ${TOKEN} is not known`) },
      'needs_auth',
      'Set DUFFEL_ACCESS_TOKEN',
    ],
    [
      '403',
      { status: 403, body: duffelErrors(403, 'insufficient_permissions', 'Not with this token') },
      'forbidden',
      'Not with this token',
    ],
    ['404', { status: 404, body: duffelErrors(404, 'not_found', 'Nothing') }, 'not_found', '(404)'],
    [
      '422',
      { status: 422, body: duffelErrors(422, 'invalid', `Field 'origin' is unknown; Bearer ${TOKEN}`) },
      'refused',
      "Field 'origin' is unknown",
    ],
    [
      '500',
      { status: 500, body: duffelErrors(500, 'internal_server_error', 'Oops') },
      'unavailable',
      '(500)',
    ],
    ['502 of a proxy', { status: 502, body: `<html>bad gateway ${TOKEN}</html>` }, 'unavailable', '(502)'],
    [
      'HTML with a good status',
      { status: 200, body: `<html>${TOKEN}</html>` },
      'bad_answer',
      'Couldn’t parse',
    ],
    [
      'half a JSON',
      {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: `{"data": {"offers": ["${TOKEN}`,
      },
      'bad_answer',
      'Couldn’t parse',
    ],
    [
      'JSON of another shape',
      { status: 200, body: { data: { flights: [] } } },
      'bad_answer',
      'unexpected format',
    ],
    [
      'offers of another shape',
      { status: 200, body: offerRequest([{ id: 1 }]) },
      'bad_answer',
      'unexpected format',
    ],
  ] as const)('%s', async (_, answer, code, words) => {
    servers.service.play(answer)
    const result = await servers.server.call(trip())
    expect(failureOf(result)).toEqual({ code })
    expect(textOf(result)).toContain(words)
    expect(textOf(result)).not.toContain(TOKEN)
  })

  test.each([
    ['seconds', 'retry-after', () => '3600'],
    ['a date', 'ratelimit-reset', () => new Date(Date.now() + 3_600_000).toUTCString()],
  ])('429 with %s to wait', async (_, header, value) => {
    const headers = { [header]: value() }
    servers.service.play({ status: 429, headers, body: duffelErrors(429, 'rate_limit_exceeded', 'Too many') })
    const failure = failureOf(await servers.server.call(trip())) as {
      code: string
      retryAfterSeconds: number
    }
    expect(failure.code).toBe('rate_limited')
    // Seconds pass between the two; a misread date would be off by hours.
    expect(failure.retryAfterSeconds).toBeGreaterThan(3_000)
    expect(failure.retryAfterSeconds).toBeLessThanOrEqual(3_600)
  })

  test('a failure is not remembered', async () => {
    const search = trip()
    servers.service.play({ status: 500, body: {} }, { status: 201, body: offerRequest([offer()]) })
    expect((await servers.server.call(search)).isError).toBe(true)
    expect((await servers.server.call(search)).structuredContent).toMatchObject({ count: 1 })
  })

  test('nobody there', async () => {
    const alone = await servers.start({ DUFFEL_API_URL: 'http://127.0.0.1:9' })
    expect(failureOf(await alone.call(trip()))).toEqual({ code: 'unavailable' })
  })
})

serverContract(servers, {
  main: MAIN,
  fresh: () => trip(),
  timeoutMs: 'FLIGHTS_TIMEOUT_MS',
  perMinute: 'FLIGHTS_PER_MINUTE',
  poor: { DUFFEL_ACCESS_TOKEN: '' },
  missing: 'Set DUFFEL_ACCESS_TOKEN',
  wrong: {
    env: { DUFFEL_ACCESS_TOKEN: TOKEN, FLIGHTS_PER_MINUTE: 'many-a-time' },
    says: 'FLIGHTS_PER_MINUTE',
    hides: TOKEN,
  },
  unspoken: /LHR|Example Air|off_/,
})
