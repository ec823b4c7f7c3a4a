/** Previews over a real service, with a program on this machine in place of one in a sandbox. */
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Caller } from '../../src/auth/caller.ts'
import { Previews } from '../../src/previews/previews.ts'
import { previewPlaces } from '../../src/previews/places.ts'
import { Sockets } from '../../src/socket/sockets.ts'
import { ANN, type Browser, addUser, browser, cookieOf, makeKey, waitFor } from '../support/harness.ts'
import {
  entranceOf as findEntrance,
  joinToProgram,
  openPreview,
  requestAt,
} from '../support/preview-browser.ts'
import { useHarness } from '../support/use-harness.ts'

const now = useHarness()

/** The program that listens in the sandbox. */
let program: Server
let port: number
/** Its requests, newest last. */
let asked: IncomingMessage[] = []
let answer: (request: IncomingMessage, response: ServerResponse) => void
let connections = 0

beforeEach(async () => {
  asked = []
  connections = 0
  answer = (request, response) => response.end(`hello from ${request.url}`)
  program = createServer((request, response) => {
    asked.push(request)
    answer(request, response)
  })
  program.on('connection', () => connections++)
  const sockets = new WebSocketServer({ server: program })
  sockets.on('connection', (socket) =>
    socket.on('message', (data: Buffer, binary) => socket.send(data, { binary })),
  )
  await once(program.listen(0, '127.0.0.1'), 'listening')
  port = (program.address() as AddressInfo).port
  joinToProgram(now().harness, port)
  return async () => {
    for (const socket of sockets.clients) socket.terminate()
    program.closeAllConnections()
    await new Promise((resolve) => program.close(resolve))
  }
})

const at = (host: string, path: string, asked?: Parameters<typeof requestAt>[3]) =>
  requestAt(now().harness, host, path, asked)
const entranceOf = (user: Browser, of = port) => findEntrance(now().harness, user, of)
const opened = (user: Browser, of = port) => openPreview(now().harness, user, of)
const words = (page: { body: string }): string => /<p>(.*)<\/p>/.exec(page.body)?.[1] ?? page.body

describe('a preview', () => {
  test('is an origin of its own, the same each time, where the program is asked as at home', async () => {
    const { ann } = now()
    const { host, cookie } = await opened(ann)
    expect(host).toMatch(/^[a-z2-7]{26}\.localhost:\d+$/)
    expect((await entranceOf(ann)).host).toBe(host)
    const sent = { cookie: `a=1; ${cookie}; sandlot.session_token=x; b=2`, origin: `http://${host}` }
    const page = await at(host, '/page?x=1', { method: 'POST', headers: sent, body: 'the form' })
    expect(page).toMatchObject({ status: 200, body: 'hello from /page?x=1' })
    const inside = asked.at(-1)
    expect(inside?.headers).toMatchObject({
      host: `localhost:${port}`,
      origin: `http://localhost:${port}`,
      cookie: 'a=1; b=2',
      'x-forwarded-host': host,
      'x-forwarded-proto': 'http',
    })
    expect(JSON.stringify(inside?.rawHeaders)).not.toMatch(/sandlot/)
  })

  test('passes bodies of any size as they come, both ways, and answers that have no end', async () => {
    const { host, cookie } = await opened(now().ann)
    answer = (request, response) => void request.pipe(response)
    const large = 'x'.repeat(3_000_000)
    expect((await at(host, '/', { method: 'PUT', headers: { cookie }, body: large })).body).toBe(large)
    answer = (_request, response) =>
      void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    const own = new URL(now().harness.service.url)
    const sent = httpRequest({
      host: own.hostname,
      port: own.port,
      path: '/events',
      headers: { host, cookie },
    }).end()
    const [stream] = (await once(sent, 'response')) as [IncomingMessage]
    expect(String((await once(stream, 'data'))[0])).toBe('data: 1\n\n')
    const left = once(asked.at(-1)?.socket ?? stream, 'close')
    sent.destroy()
    await left
  })

  test('uses a connection again', async () => {
    const { host, cookie } = await opened(now().ann)
    for (let n = 0; n < 5; n++) await at(host, `/${n}`, { headers: { cookie } })
    expect([asked.length, connections]).toEqual([5, 1])
  })

  test('sets no cookie but for its own host, and nothing that reaches beyond it', async () => {
    const { host, cookie } = await opened(now().ann)
    answer = (_request, response) =>
      void response
        .writeHead(
          302,
          [
            ['Set-Cookie', 'a=1; Domain=localhost; Path=/'],
            ['Set-Cookie', 'sandlot.session_token=evil; Domain=localhost'],
            ['Set-Cookie', '__Secure-sandlot.session_token=evil'],
            ['Set-Cookie', 'sandlot_preview=evil'],
            ['Clear-Site-Data', '"*"'],
            ['Strict-Transport-Security', 'max-age=1; includeSubDomains'],
            ['Keep-Alive', 'timeout=99'],
            ['Connection', 'keep-alive, X-Hop'],
            ['X-Hop', 'here'],
            ['Location', now().harness.service.url],
          ].flat(),
        )
        .end()
    const { status, headers } = await at(host, '/', { headers: { cookie } })
    expect(headers['set-cookie']).toEqual(['a=1; Path=/'])
    for (const name of ['clear-site-data', 'strict-transport-security', 'x-hop'])
      expect(headers[name]).toBeUndefined()
    // A redirect to us is one as from any site: it is passed on, and brings nothing along.
    expect([status, headers.location]).toEqual([302, now().harness.service.url])
    answer = (_request, response) =>
      void response.writeHead(302, { location: `http://localhost:${port}/in?a` }).end()
    expect((await at(host, '/', { headers: { cookie } })).headers.location).toBe(`http://${host}/in?a`)
  })

  test('joins WebSockets, of its own pages only', async () => {
    const { host, cookie } = await opened(now().ann)
    const url = now().harness.service.url.replace('http', 'ws')
    const open = (headers: Record<string, string>, path = '/live') =>
      new WebSocket(`${url}${path}`, { headers: { host, cookie, ...headers } })
    const socket = open({ origin: `http://${host}` })
    await once(socket, 'open')
    for (const size of [5, 200_000]) {
      const echoed = once(socket, 'message')
      socket.send(Buffer.alloc(size, 7))
      expect(((await echoed)[0] as Buffer).length).toBe(size)
    }
    expect(asked).toEqual([])
    socket.close()
    await once(socket, 'close')
    const refused = async (tried: WebSocket): Promise<string> => String((await once(tried, 'error'))[0])
    expect(await refused(open({ origin: `http://other.localhost` }))).toContain('403')
    expect(await refused(open({ cookie: '' }))).toContain('403')
    // Nor does a page of it get into our own.
    const api = new WebSocket(`${url}/ws`, {
      headers: { cookie: now().ann.cookie, origin: `http://${host}` },
    })
    expect(await refused(api)).toContain('403')
  })

  test('says where nothing listens, and what is no web server', async () => {
    const { host, cookie } = await opened(now().ann, 9)
    const page = await at(host, '/', { headers: { cookie } })
    expect([page.status, words(page)]).toEqual([502, 'Nothing listens on port 9 of the sandbox.'])
    const own = await opened(now().ann)
    answer = (request) => void request.socket.end('SSH-2.0-none\r\n')
    const odd = await at(own.host, '/', { headers: { cookie: own.cookie } })
    expect([odd.status, words(odd)]).toEqual([
      502,
      'The program in the sandbox did not answer as a web server does.',
    ])
  })
})

describe('a preview lets in', () => {
  test('by a ticket once, for its own host, and for nothing of ours', async () => {
    const { ann } = now()
    const { host, pathname, search } = await entranceOf(ann)
    const other = await entranceOf(ann, port + 1)
    expect((await at(other.host, pathname + search)).status).toBe(403)
    expect((await at(host, pathname + search)).status).toBe(303)
    expect(words(await at(host, pathname + search))).toMatch(/^This preview has ended/)
    for (const path of ['/', '/api/me', '/healthz', '/ws', '/assets/x'])
      expect((await at(host, path, { headers: { cookie: ann.cookie } })).status, path).toBe(403)
    expect((await at('x.localhost', '/api/me', { headers: { cookie: ann.cookie } })).status).toBe(403)
    expect(asked).toEqual([])
  })

  test('nobody else: not another person, another preview, another site, or a guest', async () => {
    const { harness, ann } = now()
    const bob = await addUser(harness, ann, 'bob@example.org')
    const [mine, theirs, other] = [await opened(ann), await opened(bob), await opened(ann, port + 1)]
    expect(theirs.host).not.toBe(mine.host)
    expect((await at(mine.host, '/', { headers: { cookie: theirs.cookie } })).status).toBe(403)
    expect((await at(mine.host, '/', { headers: { cookie: other.cookie } })).status).toBe(403)
    const from = (site: string, mode: string, method = 'GET') =>
      at(mine.host, '/', {
        method,
        headers: { cookie: mine.cookie, 'sec-fetch-site': site, 'sec-fetch-mode': mode },
      })
    expect((await from('same-site', 'cors')).status).toBe(403)
    expect((await from('cross-site', 'navigate', 'POST')).status).toBe(403)
    expect((await from('cross-site', 'navigate')).status).toBe(200)
    const lured = { cookie: ann.cookie, 'sec-fetch-site': 'cross-site' }
    expect((await ann.get(`/api/ports/${port}/open`, lured)).status).toBe(403)
    const { id } = (await (await bob.get('/api/me')).json()) as { id: string }
    await ann.patch(`/api/users/${id}`, { role: 'guest' })
    expect((await bob.get(`/api/ports/${port}/open`)).status).toBe(403)
    expect((await at(theirs.host, '/', { headers: { cookie: theirs.cookie } })).status).toBe(403)
  })

  test('until the sign-in ends, and what is open ends with it', async () => {
    const { harness, ann } = now()
    const { host, cookie } = await opened(ann)
    const socket = new WebSocket(harness.service.url.replace('http', 'ws'), { headers: { host, cookie } })
    await once(socket, 'open')
    const closed = once(socket, 'close')
    await ann.post('/api/sign-out')
    await closed
    expect((await at(host, '/', { headers: { cookie } })).status).toBe(403)
  })

  test('after a restart of the service, and no cookie that is not its own', async () => {
    const { harness, ann } = now()
    const { host, cookie } = await opened(ann)
    await harness.restart()
    const show = (value: string) => at(host, '/', { headers: { cookie: value } })
    await waitFor(async () => (await show(cookie)).status === 200)
    const [name = '', value = ''] = cookie.split('=')
    const changed = value.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
    for (const other of [changed, value.slice(1), 'x', '']) {
      const answer = await show(`${name}=${other}`)
      expect([answer.status, words(answer)]).toEqual([403, expect.stringMatching(/^This preview has ended/)])
    }
  })

  test('until a key ends, and not by a key without its scope', async () => {
    const { ann } = now()
    const key = await makeKey(ann)
    const url = new URL(now().harness.service.url)
    const given = await at(`localhost:${url.port}`, `/api/ports/${port}/open`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const { host, pathname, search } = new URL(given.headers.location ?? '')
    const [set = ''] = (await at(host, pathname + search)).headers['set-cookie'] ?? []
    const cookie = set.split(';')[0] ?? ''
    expect((await at(host, '/', { headers: { cookie } })).status).toBe(200)
    const { keys } = (await (await ann.get('/api/keys')).json()) as { keys: { id: string }[] }
    await ann.delete(`/api/keys/${keys[0]?.id}`)
    expect((await at(host, '/', { headers: { cookie } })).status).toBe(403)
  })

  test('until the password changes, and then by another ticket', async () => {
    const { harness, ann } = now()
    const { host, cookie } = await opened(ann)
    expect((await at(host, '/', { headers: { cookie } })).status).toBe(200)
    const change = { current: ANN.password, password: 'battery staple' }
    const again = browser(harness.service.url, cookieOf(await ann.put('/api/password', change)))
    expect((await at(host, '/', { headers: { cookie } })).status).toBe(403)
    const next = await opened(again)
    expect((await at(host, '/', { headers: { cookie: next.cookie } })).status).toBe(200)
  })

  test('at most 32 connections of a person', async () => {
    const { harness, ann } = now()
    const { host, cookie } = await opened(ann)
    const open = () => new WebSocket(harness.service.url.replace('http', 'ws'), { headers: { host, cookie } })
    const sockets = Array.from({ length: 32 }, open)
    await Promise.all(sockets.map((socket) => once(socket, 'open')))
    expect(String((await once(open(), 'error'))[0])).toContain('429')
    sockets[0]?.terminate()
    await waitFor(async () => {
      const tried = open()
      const [event] = await Promise.race([once(tried, 'open').then(() => ['open']), once(tried, 'error')])
      return event === 'open'
    })
  })
})

test('tickets expire', async () => {
  const { config } = now().harness
  await now().harness.service.close()
  const accounts = await openAccounts(config.accounts, { secret: 'x'.repeat(32), publicUrl: 'http://x' })
  const sockets = new Sockets(() => undefined)
  const previews = new Previews({ secret: 'secret', sockets, accounts, ticketMs: 5 })
  const caller = { account: { id: 'u' }, via: 'sign-in', signInId: 's', from: {} } as Caller
  const ticket = await previews.offer(caller, 80)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await previews.enter(previews.idOf('u', 80), ticket)).toBeUndefined()
  await accounts.close()
})

test('a browser stays for 12 hours after its last visit, by a cookie that is made anew each hour', async () => {
  const { harness, ann } = now()
  const { host, cookie } = await opened(ann)
  const hour = 3_600_000
  const start = Date.now()
  /** At that hour: the status, and the cookie that follows. */
  const visit = async (hours: number, by: string): Promise<[number, string | undefined]> => {
    vi.setSystemTime(start + hours * hour)
    const { status, headers } = await at(host, '/', { headers: { cookie: by } })
    return [status, headers['set-cookie']?.[0]?.split(';')[0]]
  }
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    expect(await visit(0.9, cookie)).toEqual([200, undefined])
    const [status, next = ''] = await visit(12.8, cookie)
    expect([status, next]).toEqual([200, expect.not.stringMatching(`^${cookie}$`)])
    await harness.restart()
    expect((await visit(24, next))[0]).toBe(200)
    expect((await visit(26, cookie))[0]).toBe(403)
    expect((await visit(26, next))[0]).toBe(403)
  } finally {
    vi.useRealTimers()
  }
})

test.each([
  ['locally', {}, 'localhost:8002', 'http://x.localhost:8002'],
  ['locally by number', {}, '127.0.0.1:8002', 'http://x.localhost:8002'],
  ['from another machine', {}, '192.168.1.5:8002', undefined],
  ['at a public address', { publicUrl: 'https://chat.example.org' }, 'chat.example.org', undefined],
  [
    'with a host of their own',
    { publicUrl: 'https://chat.example.org', previewHost: 'p.example.org' },
    'chat.example.org',
    'https://x.p.example.org',
  ],
  [
    'with its port',
    { publicUrl: 'https://chat.example.org:444', previewHost: 'p.example.org' },
    'chat.example.org:444',
    'https://x.p.example.org:444',
  ],
])('previews are seen %s', (_, config, host, origin) => {
  const places = previewPlaces({ publicUrl: undefined, previewHost: undefined, ...config })
  expect(places.originOf('x', host)).toBe(origin)
})

test('hosts of previews are never ours, whatever stands before them', () => {
  const places = previewPlaces({ publicUrl: 'https://chat.example.org', previewHost: 'p.example.org' })
  const id = 'a'.repeat(26)
  expect(places.idOf(`${id}.p.example.org`)).toBe(id)
  expect(places.idOf(`${id.toUpperCase()}.P.example.org.:443`)).toBe(id)
  for (const host of ['x.p.example.org', `${id}.${id}.p.example.org`, '.p.example.org'])
    expect(places.idOf(host)).toBeFalsy()
  expect(places.idOf('x.p.example.org')).toBe(null)
  for (const host of ['chat.example.org', 'p.example.org', 'localhost', undefined, '%%'])
    expect(places.idOf(host)).toBeUndefined()
})
