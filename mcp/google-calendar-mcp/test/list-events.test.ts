/**
 * The server as a process, a real MCP client on its stdin and stdout, and a local server that plays
 * Google.
 */
import { describe, expect, test } from 'vitest'
import { serverContract } from '../../mcp-kit/test/server-contract.ts'
import { startTestServers } from '../../mcp-kit/test/test-servers.ts'
import { failureOf, noticeOf, textOf } from '../../mcp-kit/test/stdio-server.ts'

const ACCESS = 'ya29.access-token-for-tests-only'
const REFRESH = '1//0g-refresh-token-for-tests-only'
const CLIENT_SECRET = 'a-client-secret-for-tests-only'
const MAIN = new URL('../src/main.ts', import.meta.url)

const servers = startTestServers({
  main: MAIN,
  tool: 'list-events',
  env: (url) => ({
    GOOGLE_ACCESS_TOKEN: ACCESS,
    GOOGLE_CALENDAR_API_URL: url,
    GOOGLE_TOKEN_URL: `${url}/token`,
  }),
  first: { CALENDAR_PER_MINUTE: '1000' },
  usual: () => ({ body: page([event()]) }),
  secrets: [ACCESS, REFRESH, CLIENT_SECRET, 'ya29.'],
})

/** An event as documented by Google, with fields that we do not read. */
function event(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    kind: 'calendar#event',
    etag: '"3426500000000000"',
    id: 'e1',
    status: 'confirmed',
    htmlLink: 'https://www.google.com/calendar/event?eid=abc',
    created: '2026-11-01T10:00:00.000Z',
    summary: 'Stand-up',
    creator: { email: 'ann@example.org', self: true },
    organizer: { email: 'ann@example.org', self: true },
    start: { dateTime: '2027-03-01T09:00:00+01:00', timeZone: 'Europe/Berlin' },
    end: { dateTime: '2027-03-01T09:15:00+01:00', timeZone: 'Europe/Berlin' },
    attendees: [{ email: 'bob@example.org', responseStatus: 'accepted', optional: true }],
    reminders: { useDefault: true },
    ...fields,
  }
}

function page(items: unknown[], nextPageToken?: string): object {
  return {
    kind: 'calendar#events',
    etag: '"p33g"',
    summary: 'ann@example.org',
    timeZone: 'Europe/Berlin',
    accessRole: 'owner',
    defaultReminders: [],
    items,
    ...(nextPageToken === undefined ? { nextSyncToken: 'sync' } : { nextPageToken }),
  }
}

const googleError = (code: number, reason: string, message: string): object => ({
  error: { code, message, errors: [{ domain: 'global', reason, message }] },
})

const query = (url = ''): Record<string, string> => Object.fromEntries(new URL(url, 'http://x').searchParams)

/** Another calendar each time: nothing comes from the cache by accident. */
let calendars = 0
const fresh = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  calendarId: `team-${calendars++}@example.org`,
  ...more,
})

describe('list-events', () => {
  test('without arguments: 25 events of the primary calendar', async () => {
    const result = await servers.server.call({})
    expect(result.structuredContent).toEqual({
      events: [
        {
          id: 'e1',
          status: 'confirmed',
          summary: 'Stand-up',
          htmlLink: 'https://www.google.com/calendar/event?eid=abc',
          organizer: { email: 'ann@example.org' },
          start: { dateTime: '2027-03-01T09:00:00+01:00', timeZone: 'Europe/Berlin' },
          end: { dateTime: '2027-03-01T09:15:00+01:00', timeZone: 'Europe/Berlin' },
          attendees: [{ email: 'bob@example.org', responseStatus: 'accepted' }],
        },
      ],
      count: 1,
      status: 'success',
    })
    expect(JSON.parse(textOf(result))).toEqual(result.structuredContent)
    const [request] = servers.service.seen
    expect(request?.url).toMatch(/^\/calendar\/v3\/calendars\/primary\/events\?/)
    expect(query(request?.url)).toEqual({ maxResults: '25', singleEvents: 'false' })
    expect(request?.headers.authorization).toBe(`Bearer ${ACCESS}`)
  })

  test('times go out in UTC, occurrences in order, the calendar’s id as one part of the path', async () => {
    await servers.server.call({
      calendarId: 'a/b#c@group.calendar.google.com',
      timeMin: '2027-03-01T09:00:00+01:00',
      timeMax: '2027-03-08',
      maxResults: 2500,
      singleEvents: true,
    })
    const [request] = servers.service.seen
    expect(request?.url).toContain('/calendars/a%2Fb%23c%40group.calendar.google.com/events?')
    expect(query(request?.url)).toEqual({
      timeMin: '2027-03-01T08:00:00.000Z',
      timeMax: '2027-03-08T00:00:00.000Z',
      maxResults: '2500',
      singleEvents: 'true',
      orderBy: 'startTime',
    })
  })

  test('an event with nothing but an id, a whole day, a long text, many guests, nulls', async () => {
    const guests = Array.from({ length: 80 }, (_, n) => ({ email: `g${n}@example.org` }))
    servers.service.play({
      body: page([
        { id: 'bare', kind: 'calendar#event' },
        event({ id: 'day', start: { date: '2027-03-01' }, end: { date: '2027-03-02' }, location: null }),
        event({ id: 'long', description: 'x'.repeat(5_000), attendees: guests }),
      ]),
    })
    const { events } = (await servers.server.call(fresh())).structuredContent as {
      events: Record<string, unknown>[]
    }
    expect(events[0]).toEqual({ id: 'bare' })
    expect(events[1]).toMatchObject({ start: { date: '2027-03-01' } })
    expect(events[1]).not.toHaveProperty('location')
    expect(events[2]).toMatchObject({ description: `${'x'.repeat(999)}…` })
    expect(events[2]?.['attendees']).toHaveLength(30)
  })

  test('no event is an answer, not a failure', async () => {
    servers.service.play({ body: page([]) })
    expect((await servers.server.call(fresh())).structuredContent).toEqual({
      events: [],
      count: 0,
      status: 'success',
    })
  })

  test('pages are taken until there are enough; empty ones do not end it', async () => {
    const items = (from: number, to: number): unknown[] =>
      Array.from({ length: to - from }, (_, n) => event({ id: `e${from + n}` }))
    servers.service.play(
      { body: page(items(0, 3), 'A') },
      { body: page([], 'B') },
      { body: page(items(3, 9), 'C') },
    )
    const result = await servers.server.call(fresh({ maxResults: 5, singleEvents: true }))
    const found = result.structuredContent as { events: { id: string }[]; count: number; status: string }
    expect(found.events.map(({ id }) => id)).toEqual(['e0', 'e1', 'e2', 'e3', 'e4'])
    expect({ count: found.count, status: found.status }).toEqual({ count: 5, status: 'partial' })
    expect(noticeOf(result)).toContain('continue with timeMin 2027-03-01T09:00:00+01:00')
    expect(
      servers.service.seen
        .map(({ url }) => query(url))
        .map(({ pageToken, maxResults }) => ({ pageToken, maxResults })),
    ).toEqual([
      { pageToken: undefined, maxResults: '5' },
      { pageToken: 'A', maxResults: '2' },
      { pageToken: 'B', maxResults: '2' },
    ])
  })

  test('exactly enough, and no more behind them, is a success', async () => {
    servers.service.play({ body: page([event(), event({ id: 'e2' })]) })
    expect((await servers.server.call(fresh({ maxResults: 2 }))).structuredContent).toMatchObject({
      count: 2,
      status: 'success',
    })
  })

  test('pages that go round in a circle end in words', async () => {
    servers.service.play({ body: page([], 'A') })
    const result = await servers.server.call(fresh())
    expect(failureOf(result)).toEqual({ code: 'bad_answer' })
    expect(servers.service.seen).toHaveLength(2)
  })

  test('the same question again is answered from memory, but never to another user', async () => {
    const question = fresh()
    await servers.server.call(question, { userId: 'ann' })
    await servers.server.call({ ...question, maxResults: 25 }, { userId: 'ann' })
    expect(servers.service.seen).toHaveLength(1)
    await servers.server.call(question, { userId: 'bob' })
    expect(servers.service.seen).toHaveLength(2)
  })
})

describe('what is not listed', () => {
  test.each([
    ['too many', { maxResults: 2501 }],
    ['none', { maxResults: 0 }],
    ['half an event', { maxResults: 1.5 }],
    ['a word for a flag', { singleEvents: 'yes' }],
    ['no calendar', { calendarId: '' }],
    ['an unknown argument', { q: 'lunch' }],
  ])('%s', async (_, wrong) => {
    const result = await servers.server.call(fresh(wrong))
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain(Object.keys(wrong)[0])
    expect(servers.service.seen).toEqual([])
  })

  test.each([
    [
      'a day that is not in the calendar',
      { timeMin: '2027-02-30T00:00:00Z' },
      'timeMin 2027-02-30T00:00:00Z is not',
    ],
    ['words', { timeMax: 'next week' }, 'timeMax next week is not a time'],
    [
      'the end before the beginning',
      { timeMin: '2027-03-02', timeMax: '2027-03-01' },
      'timeMax must be after timeMin',
    ],
    [
      'the same moment in two zones',
      { timeMin: '2027-03-01T09:00:00+01:00', timeMax: '2027-03-01T08:00:00Z' },
      'timeMax must be after',
    ],
    [
      'both',
      { timeMin: 'soon', timeMax: 'later' },
      'timeMin soon is not a time in ISO 8601, or not in the calendar; timeMax later',
    ],
  ])('%s', async (_, wrong, words) => {
    const result = await servers.server.call(fresh(wrong))
    expect(failureOf(result)).toEqual({ code: 'invalid_arguments' })
    expect(textOf(result)).toContain(words)
    expect(servers.service.seen).toEqual([])
  })
})

describe('what Google may answer', () => {
  test.each([
    [
      '401',
      { status: 401, body: googleError(401, 'authError', `Invalid Credentials ${ACCESS}`) },
      'needs_auth',
      'GOOGLE_ACCESS_TOKEN',
    ],
    ['403', { status: 403, body: googleError(403, 'forbidden', 'Not yours') }, 'forbidden', 'Not yours'],
    [
      '403 that means 429',
      { status: 403, body: googleError(403, 'rateLimitExceeded', 'Rate Limit Exceeded') },
      'rate_limited',
      'too many requests',
    ],
    [
      '403 of the user’s share',
      { status: 403, body: googleError(403, 'userRateLimitExceeded', 'User Rate Limit Exceeded') },
      'rate_limited',
      'too many requests',
    ],
    [
      '404',
      { status: 404, body: googleError(404, 'notFound', 'Not Found') },
      'not_found',
      'no such calendar',
    ],
    [
      '400',
      { status: 400, body: googleError(400, 'timeRangeEmpty', `The range is empty. Bearer ${ACCESS}`) },
      'refused',
      'The range is empty',
    ],
    ['410', { status: 410, body: googleError(410, 'updatedMinTooLongAgo', 'Gone') }, 'refused', '(410)'],
    ['500', { status: 500, body: googleError(500, 'backendError', 'Backend Error') }, 'unavailable', '(500)'],
    ['502 of a proxy', { status: 502, body: `<html>bad gateway ${ACCESS}</html>` }, 'unavailable', '(502)'],
    [
      'HTML with a good status',
      { status: 200, body: `<html>${ACCESS}</html>` },
      'bad_answer',
      'unexpected format',
    ],
    [
      'half a JSON',
      { status: 200, headers: { 'content-type': 'application/json' }, body: '{"kind": "calendar#ev' },
      'bad_answer',
      'unexpected format',
    ],
    [
      'JSON of another kind',
      { status: 200, body: { kind: 'calendar#event', id: 'x' } },
      'bad_answer',
      'unexpected format',
    ],
    [
      'an event without id',
      { status: 200, body: page([{ summary: 'x' }]) },
      'bad_answer',
      'unexpected format',
    ],
  ] as const)('%s', async (_, answer, code, words) => {
    servers.service.play(answer)
    const result = await servers.server.call(fresh())
    expect(failureOf(result)).toEqual({ code })
    expect(textOf(result)).toContain(words)
    // The library would try some of these again.
    expect(servers.service.seen).toHaveLength(1)
  })

  test('429 with a time to wait', async () => {
    servers.service.play({
      status: 429,
      headers: { 'retry-after': '30' },
      body: googleError(429, 'rateLimitExceeded', 'x'),
    })
    expect(failureOf(await servers.server.call(fresh()))).toEqual({
      code: 'rate_limited',
      retryAfterSeconds: 30,
    })
  })
})

describe('the process', () => {
  const refreshing = {
    GOOGLE_ACCESS_TOKEN: '',
    GOOGLE_REFRESH_TOKEN: REFRESH,
    GOOGLE_CLIENT_ID: 'client-1',
    GOOGLE_CLIENT_SECRET: CLIENT_SECRET,
  }

  test('with a refresh token it gets a token first, and uses it as long as it lasts', async () => {
    const own = await servers.start(refreshing)
    servers.service.play(
      { body: { access_token: 'ya29.new-token-for-tests', expires_in: 3600, token_type: 'Bearer' } },
      { body: page([event()]) },
    )
    await own.call(fresh())
    await own.call(fresh())
    expect(servers.service.seen.map(({ url }) => url.split('?')[0]?.split('/')[1])).toEqual([
      'token',
      'calendar',
      'calendar',
    ])
    expect(Object.fromEntries(new URLSearchParams(servers.service.seen[0]?.body))).toEqual({
      refresh_token: REFRESH,
      client_id: 'client-1',
      client_secret: CLIENT_SECRET,
      grant_type: 'refresh_token',
    })
    expect(servers.service.seen[1]?.headers.authorization).toBe('Bearer ya29.new-token-for-tests')
  })

  test('a permission that was taken back needs a new one', async () => {
    const own = await servers.start(refreshing)
    servers.service.play({
      status: 400,
      body: { error: 'invalid_grant', error_description: 'Token has been revoked.' },
    })
    const result = await own.call(fresh())
    expect(failureOf(result)).toEqual({ code: 'needs_auth' })
    expect(textOf(result)).toContain('the permission was revoked')
  })
})

serverContract(servers, {
  main: MAIN,
  fresh: () => fresh(),
  timeoutMs: 'CALENDAR_TIMEOUT_MS',
  perMinute: 'CALENDAR_PER_MINUTE',
  poor: { GOOGLE_ACCESS_TOKEN: '' },
  missing: 'Google Calendar is not connected yet',
  // Without the client that it was made for.
  wrong: { env: { GOOGLE_REFRESH_TOKEN: REFRESH }, says: 'GOOGLE_CLIENT_ID', hides: REFRESH },
  unspoken: /example\.org|Stand-up|2027-03/,
})
