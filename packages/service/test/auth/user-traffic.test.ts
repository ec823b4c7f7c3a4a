import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { errorBody } from '@sandlot/shared/account/api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import {
  type Browser,
  type Harness,
  Tab,
  addUser,
  makeKey,
  refusedUpgrade,
  setUp,
  startHarness,
  waitFor,
} from '../support/harness.ts'

const MIB = 1024 * 1024
const BURST = 200
/** That wait for their second. */
const WAITING = 50

let harness: Harness
let ann: Browser
let bob: Browser
/** Milliseconds on the clock of the service, and what waits on it. */
let clock: number
let asleep: { ms: number; wake: () => void }[]
/** Waits pass at once, on that clock only. */
let passing: boolean

beforeEach(async () => {
  clock = 0
  asleep = []
  passing = false
  const sleep = (ms: number): Promise<void> =>
    new Promise((wake) => {
      if (passing) clock += ms
      if (passing) wake()
      else asleep.push({ ms, wake })
    })
  harness = await startHarness({}, { clock: { now: () => clock, sleep } })
  ann = await setUp(harness)
  bob = await addUser(harness, ann, 'bob@example.org')
  // The used share is refilled.
  clock += 60_000
})
afterEach(async () => {
  for (const { wake } of asleep) wake()
  await harness.close()
})

/** All of the burst, by a sign-in and a key alike. */
async function useUp(key: string): Promise<void> {
  const byKey = { headers: { authorization: `Bearer ${key}` } }
  const url = `${harness.service.url}/api/keys`
  const answers = await Promise.all(
    Array.from({ length: BURST }, (_, n) => (n % 2 === 0 ? ann.get('/api/keys') : fetch(url, byKey))),
  )
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  expect(asleep).toEqual([])
}

test('beyond 200 at once requests of one user wait for up to a second, then get 429; what the page needs first and others do not', async () => {
  const key = await makeKey(ann)
  clock += 60_000
  await useUp(key)
  const waiting = Array.from({ length: WAITING }, () => ann.get('/api/keys'))
  await waitFor(() => asleep.length === WAITING)
  expect(asleep.every(({ ms }, index) => ms <= 1_000 && ms > (asleep[index - 1]?.ms ?? 0))).toBe(true)

  const refused = await ann.get('/api/keys')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(errorBody.parse(await refused.json())).toMatchObject({ code: 'rate_limited' })
  const headers = { cookie: ann.cookie, origin: harness.service.url }
  const terminal = await refusedUpgrade(harness.service.url, headers, `/api/terminals/${'a'.repeat(32)}`)
  expect(terminal).toMatchObject({ status: 429, body: { code: 'rate_limited' } })

  const first = ['/api/me', '/api/sessions', '/api/approvals', '/api/sessions/none/approvals']
  const answers = await Promise.all(first.map((path) => ann.get(path)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 404])
  const answered = await ann.post('/api/sessions/none/approvals/c1', { optionId: 'allow_once' })
  expect(answered.status).toBe(404)
  expect((await bob.get('/api/keys')).status).toBe(200)
  expect(asleep).toHaveLength(WAITING)

  for (const { wake } of asleep) wake()
  for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200)
  clock += 60_000
  expect((await ann.get('/api/keys')).status).toBe(200)
})

test('frames that read again wait with the requests; an answer to an approval passes them', async () => {
  const tab = await Tab.of(ann, harness.service.url)
  const resume = (n: number) => ({ type: 'ai_chat_resume', sessionId: `s_${n}`, after: 0 })
  const sent = BURST + WAITING + 20
  for (let n = 0; n < sent; n++) tab.send(resume(n))
  const refused = await tab.get('ai_chat_error', ({ code }) => code === 'rate_limited')
  expect(refused.message).toContain('Try again in 1 second')
  // The socket itself was one request.
  expect(refused.sessionId).toBe(`s_${BURST + WAITING - 1}`)
  await waitFor(() => asleep.length > 0)
  tab.send({ type: 'ai_chat_approve', sessionId: 's_mine', toolCallId: 'c1', optionId: 'allow_once' })
  await tab.get('ai_chat_error', ({ sessionId }) => sessionId === 's_mine')
  expect(asleep.length).toBeGreaterThan(0)
  await tab.close()
})

test('sockets that wait are counted when they open', async () => {
  const { url } = harness.service
  const open = async (count: number): Promise<number> => {
    const headers = { cookie: ann.cookie, origin: url }
    const all = Array.from({ length: count }, () => refusedUpgrade(url, headers))
    return (await Promise.allSettled(all)).filter(({ status }) => status === 'rejected').length
  }
  const MOST = 50
  expect(await open(10)).toBe(10)
  // All that does not wait, also of what passes other requests.
  await Promise.all(Array.from({ length: BURST + 100 - 10 }, () => ann.get('/api/me')))
  const opened = open(WAITING)
  await waitFor(() => asleep.length === WAITING)
  for (const { wake } of asleep) wake()
  expect(await opened).toBe(MOST - 10)
})

test('beyond 200 refusals each takes its time, whatever the frames are, and each frame is answered', async () => {
  const tab = await Tab.of(ann, harness.service.url)
  const frames = [
    '{oops',
    '{}',
    Buffer.from('binary'),
    '{"type":"ai_chat_resume","sessionId":"s_1","after":-1}',
  ]
  const sent = 2_000
  for (let n = 0; n < sent; n++) tab.socket.send(frames[n % frames.length] ?? '')
  const errors = () => tab.frames.filter(({ type }) => type === 'ai_chat_error')
  // The socket itself was one request; so many frames are on their way at once.
  await waitFor(() => asleep.length === 64 && errors().length === BURST - 1 + BURST)
  passing = true
  for (const { wake } of asleep) wake()
  await waitFor(() => errors().length === sent)
  await tab.close()
})

test('uploads and downloads go on at 20 MiB a second beyond as many at once; a further stream waits for them', async () => {
  passing = true
  const body = randomBytes(24 * MIB)
  const headers = { cookie: ann.cookie, origin: harness.service.url }
  const url = `${harness.service.url}/api/files/content?path=large.bin`
  const began = clock
  expect((await fetch(url, { method: 'PUT', headers, body })).status).toBe(204)
  expect(clock - began).toBeCloseTo(1_000, 3)
  const got = Buffer.from(await (await fetch(url, { headers })).arrayBuffer())
  expect(got.equals(body)).toBe(true)
  expect(clock - began).toBeCloseTo(2_200, 3)

  // Acts as if two seconds of traffic were under way.
  clock -= 2_000
  const further = await fetch(url, { headers })
  expect([further.status, further.headers.get('retry-after')]).toEqual([429, '1'])
  expect((await ann.get('/api/keys')).status).toBe(200)
})

test.each(['json', 'markdown'])('an export as %s is a stream as well', async (format) => {
  const { url } = harness.service
  const tab = await Tab.of(ann, url)
  tab.send({ type: 'ai_chat', requestId: 'r1', text: 'hello' })
  const { sessionId } = await tab.get('ai_chat_accepted')
  await tab.get('ai_chat_done')
  await tab.close()
  passing = true
  const headers = { cookie: ann.cookie, origin: url }
  const body = randomBytes(4 * MIB)
  await fetch(`${url}/api/files/content?path=large.bin`, { method: 'PUT', headers, body })
  const began = clock
  const answer = await fetch(`${url}/api/sessions/${sessionId}/export?format=${format}`, { headers })
  const { length } = Buffer.from(await answer.arrayBuffer())
  expect(length).toBeGreaterThan(0)
  expect(clock - began).toBeCloseTo((length / (20 * MIB)) * 1_000, 6)
})

test('the bytes of a terminal are the user’s too: beyond them neither end is read', async () => {
  const stream = Promise.withResolvers<WebSocket>()
  harness.agent.terminals = () => {
    harness.agent.streams.set('ticket', stream.resolve)
    return { ticket: 'ticket' }
  }
  const headers = { cookie: ann.cookie, origin: harness.service.url }
  const url = `${harness.service.url.replace('http', 'ws')}/api/terminals/${'a'.repeat(32)}`
  const page = new WebSocket(url, { headers })
  let got = 0
  page.on('message', (data: Buffer) => (got += data.length))
  await once(page, 'open')
  const agent = await stream.promise
  // The last of it waits a little, on a clock that stands still.
  const piece = Buffer.alloc(MIB / 2)
  const pieces = 10
  for (let sent = 0; sent < pieces; sent++) agent.send(piece)
  await waitFor(() => got === pieces * piece.length)

  clock -= 3_600_000
  let sent = 0
  while (agent.bufferedAmount < 4 * MIB && sent < 256) {
    agent.send(piece)
    sent++
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(sent).toBeLessThan(256)
  expect(got).toBeLessThan((pieces + sent) * piece.length)
  page.terminate()
})
