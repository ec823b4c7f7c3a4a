/** Two services on one PostgreSQL, each with a disk of its own: what happens at one holds at the other. */
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { openSessionStore } from '@sandlot/storage/store/open'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startService } from '../../src/server.ts'
import { CLOSE } from '../../src/socket/sockets.ts'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import {
  ANN,
  type Browser,
  type Harness,
  Tab,
  addUser,
  browser,
  cookieOf,
  makeKey,
  setUp,
  startHarness,
  waitFor,
} from '../support/harness.ts'
import { PNG } from '../support/png.ts'
import { ScriptedAgent, refusal } from '../support/scripted-agent.ts'

describeOnPostgres('two services on one PostgreSQL', (postgres) => {
  let folder: string
  let agent: ScriptedAgent
  let harness: Harness
  let other: Awaited<ReturnType<typeof startService>>
  let ann: Browser
  let bob: Browser
  let made = 0

  beforeAll(async () => {
    const url = await postgres.database('both')
    await (await openSessionStore(url)).close()
    await (await openAccounts(url, { secret: 'none', publicUrl: 'http://localhost' })).close()
    folder = await mkdtemp(join(tmpdir(), 'sandlot-fellows-'))
    const socket = join(folder, 'agent.sock')
    agent = await ScriptedAgent.start(url, socket)
    const settings = { sessions: url, accounts: url, agentUrl: `ws+unix://${socket}:/acp` }
    harness = await startHarness(settings, {}, false)
    other = await startService(
      { ...harness.config, dataFolder: join(folder, 'other') },
      { writeLog: (line) => harness.logLines.push(line), agentPauses: { firstMs: 20, longestMs: 50 } },
    )
    const tokens = [harness.service, other].map(({ entryUrl }) => new URL(entryUrl).searchParams.get('token'))
    expect(tokens[0]).toBe(tokens[1])
    expect(tokens[0]).toHaveLength(64)
    ann = await setUp(harness)
    await waitFor(async () => {
      const { needed } = (await (await fetch(`${other.url}/api/setup`)).json()) as { needed: boolean }
      return !needed
    })
    for (const { url: at } of [harness.service, other])
      await waitFor(async () => (await fetch(`${at}/readyz`)).status === 200)
  }, 60_000)
  afterAll(async () => {
    await other?.close()
    await agent?.close()
    await harness?.close()
    await rm(folder, { recursive: true, force: true })
  })
  beforeEach(async () => {
    bob = await addUser(harness, ann, `bob${++made}@example.org`)
  })

  /** The same person, signed in at the other service. */
  const there = async (who: Browser): Promise<Browser> => {
    const email = who === ann ? ANN.email : `bob${made}@example.org`
    const password = who === ann ? ANN.password : 'battery staple'
    return browser(
      other.url,
      cookieOf(await browser(other.url, '').post('/api/sign-in', { email, password })),
    )
  }
  const idOf = async (who: Browser): Promise<string> =>
    ((await (await who.get('/api/me')).json()) as { id: string }).id
  const closeOf = async (tab: Tab): Promise<number | undefined> => {
    await waitFor(() => tab.closed !== undefined)
    return tab.closed?.code
  }

  test('a sign-in, a key and all sign-ins end at both', async () => {
    const tab = await Tab.open(other.url, { cookie: bob.cookie, origin: other.url })
    const key = await makeKey(bob)
    const program = await Tab.open(other.url, { authorization: `Bearer ${key}` })
    const second = await there(bob)
    const kept = await Tab.of(second, other.url)
    expect((await bob.post('/api/sign-out')).status).toBe(204)
    expect(await closeOf(tab)).toBe(CLOSE.signedOut)
    await kept.settle()
    expect([program.closed, kept.closed]).toEqual([undefined, undefined])

    const again = browser(harness.service.url, second.cookie)
    const { keys } = (await (await again.get('/api/keys')).json()) as { keys: { id: string }[] }
    expect((await again.delete(`/api/keys/${keys[0]?.id}`)).status).toBe(204)
    expect(await closeOf(program)).toBe(CLOSE.signedOut)

    // The sign-in that changes the password stays, at whichever service its pages are.
    const third = await Tab.of(await there(bob), other.url)
    const change = { current: 'battery staple', password: 'correct battery' }
    expect((await again.put('/api/password', change)).status).toBe(204)
    expect(await closeOf(third)).toBe(CLOSE.signedOut)
    await kept.settle()
    expect(kept.closed).toBeUndefined()
    await kept.close()
  })

  test('a preview is opened at one, entered at the other, and seen at both until its sign-in ends', async () => {
    agent.ports = () => {
      throw refusal('not_found', 'Nothing listens there.')
    }
    const opened = await fetch(`${harness.service.url}/api/ports/3000/open`, {
      headers: { cookie: bob.cookie },
      redirect: 'manual',
    })
    const { hostname, pathname, search } = new URL(opened.headers.get('location') ?? '')
    const at = async (url: string, path: string, cookie = ''): Promise<IncomingMessage> => {
      const { port } = new URL(url)
      const headers = { host: `${hostname}:${port}`, cookie }
      const sent = httpRequest({ host: '127.0.0.1', port, path, headers }).end()
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      return answer.resume()
    }
    const entered = await at(other.url, pathname + search)
    expect(entered.statusCode).toBe(303)
    expect((await at(harness.service.url, pathname + search)).statusCode).toBe(403)
    const [cookie = ''] = (entered.headers['set-cookie'] ?? []).map((one) => one.split(';', 1)[0] ?? '')
    // Nothing listens, which only those learn who are let in.
    for (const { url } of [harness.service, other]) expect((await at(url, '/', cookie)).statusCode).toBe(502)
    expect((await bob.post('/api/sign-out')).status).toBe(204)
    expect((await at(harness.service.url, '/', cookie)).statusCode).toBe(403)
    await waitFor(async () => (await at(other.url, '/', cookie)).statusCode === 403)
  })

  test('all keys are made at the first start, to be copied; one with others does not start, and says which', async () => {
    expect((await readdir(harness.config.keysFolder)).toSorted()).toEqual([
      'agent-token',
      'alerts',
      'previews',
      'push',
      'service-cookies',
    ])
    const keysFolder = join(folder, 'other-keys')
    await expect(
      startService({ ...harness.config, dataFolder: join(folder, 'third'), keysFolder }),
    ).rejects.toThrow(
      `${join(keysFolder, 'service-cookies')} is not the key that the database has been used with`,
    )
  })

  test('a changed role begins sockets anew, and a removal ends them; one service does the rest', async () => {
    const tab = await Tab.of(await there(bob), other.url)
    const userId = await idOf(bob)
    expect((await ann.patch(`/api/users/${userId}`, { role: 'guest' })).status).toBe(200)
    expect(await closeOf(tab)).toBe(CLOSE.personChanged)
    const next = await Tab.of(await there(bob), other.url)
    const before = agent.received.length
    // Asked for at the one that does not lead.
    expect((await (await there(ann)).delete(`/api/users/${userId}?data=keep`)).status).toBeLessThan(300)
    expect(await closeOf(next)).toBe(CLOSE.signedOut)
    await waitFor(() => agent.received.slice(before).includes(`remove ${userId} keep`))
    expect(agent.received.slice(before).filter((one) => one.startsWith('remove'))).toHaveLength(1)
  })

  test('an image that waits goes with a message to the other service', async () => {
    const response = await fetch(`${harness.service.url}/api/images`, {
      method: 'POST',
      headers: { cookie: bob.cookie, origin: harness.service.url, 'content-type': 'image/png' },
      body: new Uint8Array(PNG),
    })
    const { id } = (await response.json()) as { id: string }
    const tab = await Tab.of(await there(bob), other.url)
    tab.send({ type: 'ai_chat', requestId: 'r_image', text: 'look', images: [id], whenBusy: 'queue' })
    const { sessionId } = await tab.get('ai_chat_done')
    expect(JSON.stringify(tab.eventsOf(sessionId))).toContain('"mimeType":"image/png"')
    await tab.close()
  })

  test('who looks is known at all of them, until their service has been silent for a while', async () => {
    const store = await openAccounts(harness.config.accounts, {
      secret: 'none',
      publicUrl: 'http://localhost',
    })
    const { services } = store
    await services.putPresence('one', ['eve', 'mal'], [])
    await services.putPresence('two', [], ['eve'])
    expect(await services.presenceOf('eve')).toMatchObject({ isLooking: true })
    await services.putPresence('one', ['mal'], ['eve'])
    const eve = await services.presenceOf('eve')
    expect(eve.isLooking).toBe(false)
    expect(Math.abs(eve.lastLooked - Date.now())).toBeLessThan(5_000)
    expect(await services.presenceOf('trent')).toEqual({ isLooking: false, lastLooked: 0 })
    await store.close()
  })

  test('when the service that leads stops, the other one does what may run once', async () => {
    const [userId, theirs] = [await idOf(bob), await there(ann)]
    agent.beforeRemoval = () => Promise.reject(new Error('not now'))
    expect((await theirs.delete(`/api/users/${userId}?data=keep`)).status).toBe(202)
    await waitFor(() => agent.received.includes(`remove ${userId} keep`))
    await harness.service.close()
    agent.beforeRemoval = () => Promise.resolve()
    await waitFor(async () => {
      const { removed } = (await (await theirs.get('/api/users')).json()) as {
        removed: { id: string; done: boolean }[]
      }
      return removed.some(({ id, done }) => id === userId && done)
    })
  })
})
