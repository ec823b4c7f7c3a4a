import { once } from 'node:events'
import { SandlotError } from '@sandlot/shared/base/errors'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import {
  type Browser,
  type Harness,
  addUser,
  browser,
  cookieOf,
  refusedUpgrade,
  waitFor,
} from '../support/harness.ts'
import { useHarness } from '../support/use-harness.ts'

const ID = 'a'.repeat(32)
const PATH = `/api/terminals/${ID}`

const now = useHarness()

/** The agent’s end of the next stream that is opened. */
function nextStream({ agent }: Harness): Promise<WebSocket> {
  return new Promise((resolve) => {
    agent.terminals = (user, ask) => {
      agent.received.push(`terminals ${ask.do} ${user.role} ${ask.do === 'attach' ? ask.from : ''}`.trim())
      agent.streams.set('ticket', resolve)
      return { ticket: 'ticket' }
    }
  })
}

async function opened(user: Browser, { service }: Harness, query = ''): Promise<WebSocket> {
  const headers = { cookie: user.cookie, origin: service.url }
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}${PATH}${query}`, { headers })
  await once(socket, 'open')
  return socket
}

const closing = (socket: WebSocket): Promise<number> => once(socket, 'close').then(([code]) => code as number)

test('bytes and texts pass both ways as they are, and an end with its code', async () => {
  const { harness, ann } = now()
  const next = nextStream(harness)
  const page = await opened(ann, harness, '?from=42')
  const agent = await next
  expect(harness.agent.received.at(-1)).toBe('terminals attach admin 42')

  const toAgent = once(agent, 'message')
  page.send(Buffer.from([0, 255]))
  expect(await toAgent).toEqual([Buffer.from([0, 255]), true])
  const toBrowser = once(page, 'message')
  agent.send('{"type":"ready"}')
  expect(await toBrowser).toEqual([Buffer.from('{"type":"ready"}'), false])

  const closed = closing(page)
  agent.close(4010, 'shown elsewhere')
  expect(await closed).toBe(4010)
})

test('what a slow reader does not take is not read from the agent', async () => {
  const { harness, ann } = now()
  const next = nextStream(harness)
  const page = await opened(ann, harness)
  page.pause()
  const agent = await next
  const piece = Buffer.alloc(256 * 1024)
  let sent = 0
  // Sockets and the relay hold a few megabytes; after that the agent’s own buffer grows.
  while (agent.bufferedAmount < 4 * 1024 * 1024 && sent < 256) {
    agent.send(piece)
    sent++
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(sent).toBeLessThan(256)

  let got = 0
  page.on('message', (data: Buffer) => (got += data.length))
  page.resume()
  await waitFor(() => got === sent * piece.length)
  page.close()
})

test('it ends with the sign-in, with the account and with a changed role', async () => {
  const { harness, ann } = now()
  const bob = await addUser(harness, ann, 'bob@example.org')
  const { id } = (await (await bob.get('/api/me')).json()) as { id: string }
  const first = nextStream(harness)
  const signedOut = closing(await opened(bob, harness))
  const agentEnd = closing(await first)
  await bob.post('/api/sign-out')
  expect(await signedOut).toBe(4401)
  expect(await agentEnd).toBeGreaterThan(0)

  const again = await addUserAgain(harness, 'bob@example.org')
  void nextStream(harness)
  const changed = closing(await opened(again, harness))
  expect((await ann.patch(`/api/users/${id}`, { role: 'guest' })).ok).toBe(true)
  expect(await changed).toBe(4009)

  void nextStream(harness)
  const removed = closing(await opened(again, harness))
  await ann.delete(`/api/users/${id}?data=keep`)
  expect(await removed).toBe(4401)
})

async function addUserAgain({ service }: Harness, email: string): Promise<Browser> {
  const signIn = await browser(service.url, '').post('/api/sign-in', { email, password: 'battery staple' })
  return browser(service.url, cookieOf(signIn))
}

test('a page of elsewhere, a stranger and a key without the scope are refused before it is opened', async () => {
  const { harness, ann } = now()
  const { url } = harness.service
  const made = await ann.post('/api/keys', { name: 'chat', scopes: ['chat', 'read', 'files'] })
  const { key } = (await made.json()) as { key: string }
  const tries = [
    [{ cookie: ann.cookie, origin: 'https://elsewhere.example' }, 403],
    [{ origin: url }, 401],
    [{ authorization: `Bearer ${key}` }, 403],
  ] as const
  for (const [headers, status] of tries)
    expect((await refusedUpgrade(url, headers, PATH)).status).toBe(status)
  expect(harness.agent.received.filter((line) => line.startsWith('terminals'))).toEqual([])
  expect((await fetch(`${url}/api/terminals`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(
    403,
  )
})

test('what the agent refuses, an id that is none and a ticket that is used up are errors of the upgrade', async () => {
  const { harness, ann } = now()
  const { url } = harness.service
  const headers = { cookie: ann.cookie, origin: url }
  const codeOf = async (path: string): Promise<unknown> =>
    ((await refusedUpgrade(url, headers, path)).body as { code: string }).code

  harness.agent.terminals = () => ({ ticket: 'gone' })
  expect(await codeOf(PATH)).toBe('agent_unavailable')
  expect(await codeOf('/api/terminals/none')).toBe('bad_request')
  expect(await codeOf('/api/other')).toBe('not_found')
})

test('terminals are listed, opened and closed over HTTP', async () => {
  const { harness, ann } = now()
  const terminal = { id: ID, startedAt: 1, watched: false }
  harness.agent.terminals = (_user, ask) => {
    if (ask.do === 'list') return { terminals: [terminal] }
    if (ask.do === 'open') return terminal
    if (ask.do === 'close') return {}
    throw new SandlotError('internal', 'not asked for')
  }
  expect(await (await ann.get('/api/terminals')).json()).toEqual({ terminals: [terminal] })
  const made = await ann.post('/api/terminals', { columns: 80, rows: 24 })
  expect([made.status, await made.json()]).toEqual([201, terminal])
  expect((await ann.post('/api/terminals', { columns: 0, rows: 24 })).status).toBe(400)
  expect((await ann.delete(`/api/terminals/${ID}`)).status).toBe(204)
  expect((await ann.get(PATH)).status).toBe(400)
})
