import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { errorBody, userList } from '@sandlot/shared/account/api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULT_RATES } from '../../src/auth/limits.ts'
import {
  ANN,
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
import { refusal } from '../support/scripted-agent.ts'
import type { Browser, Harness } from '../support/harness.ts'

let harness: Harness
let url: string
let ann: Browser

beforeEach(async () => {
  harness = await startHarness()
  url = harness.service.url
  ann = await setUp(harness)
})

afterEach(() => harness.close())

const codeOf = async (response: Response) => errorBody.parse(await response.json()).code
const signIn = async (password: string): Promise<Browser> => {
  const { email } = ANN
  return browser(url, cookieOf(await browser(url, '').post('/api/sign-in', { email, password })))
}

/** A request that was let in, all but the last byte of its body sent. `end` sends that, and answers the status. */
async function held(by: Browser, path: string, body: Buffer, type = 'application/json') {
  const headers = { cookie: by.cookie, origin: url, 'content-type': type, 'content-length': body.length }
  const open = request(`${url}${path}`, { method: 'POST', headers: { ...headers, expect: '100-continue' } })
  open.flushHeaders()
  await once(open, 'continue')
  open.write(body.subarray(0, -1))
  // A later request has been answered, so it was processed.
  await by.get('/api/me')
  return async function end(): Promise<number | undefined> {
    open.end(body.subarray(-1))
    const [answer] = (await once(open, 'response')) as [IncomingMessage]
    answer.resume()
    return answer.statusCode
  }
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

test('one changes one’s own name, which holds at once; an API key does not', async () => {
  const tab = await Tab.of(ann, url)
  const key = { authorization: `Bearer ${await makeKey(ann)}`, 'content-type': 'application/json' }
  const byKey = { method: 'PUT', headers: key, body: JSON.stringify({ name: 'Nobody' }) }
  expect(await codeOf(await fetch(`${url}/api/account/name`, byKey))).toBe('forbidden')
  expect(await codeOf(await ann.put('/api/account/name', { name: '  ' }))).toBe('bad_request')
  expect((await ann.put('/api/account/name', { name: 'Ann Other' })).status).toBe(204)
  expect(await (await ann.get('/api/me')).json()).toMatchObject({ name: 'Ann Other' })
  await waitFor(() => tab.closed !== undefined)
})

describe('another password', () => {
  const change = { current: ANN.password, password: 'battery staple' }

  test('ends every other sign-in with its sockets; the requesting page continues, and can still sign out', async () => {
    const elsewhere = await signIn(ANN.password)
    const byKey = await Tab.open(url, { authorization: `Bearer ${await makeKey(ann)}` })
    const [here, there] = [await Tab.of(ann, url), await Tab.of(elsewhere, url)]
    const answer = await ann.put('/api/password', change)
    expect(answer.status).toBe(204)
    await waitFor(() => there.closed !== undefined)
    expect(there.closed?.code).toBe(4401)
    for (const old of [ann, elsewhere]) expect((await old.get('/api/me')).status).toBe(401)
    const again = browser(url, cookieOf(answer))
    expect((await again.get('/api/me')).status).toBe(200)
    for (const tab of [here, byKey]) {
      await tab.settle()
      expect(tab.closed).toBeUndefined()
    }
    await again.post('/api/sign-out')
    await waitFor(() => here.closed !== undefined)
    expect(here.closed?.code).toBe(4401)
    expect(harness.logLines.join('\n')).not.toContain(change.password)
    await byKey.close()
  })

  test('ends what another sign-in has begun to send', async () => {
    const elsewhere = await signIn(ANN.password)
    const end = await held(elsewhere, '/api/keys', json({ name: 'for later' }))
    const again = browser(url, cookieOf(await ann.put('/api/password', change)))
    expect(await end()).toBe(401)
    expect(await (await again.get('/api/keys')).json()).toEqual({ keys: [] })
  })

  test('needs the current one, which cannot be guessed from a sign-in, and is nothing for a key', async () => {
    await harness.restart({ rates: { ...DEFAULT_RATES, signInPair: { points: 2, seconds: 600 } } })
    url = harness.service.url
    const page = await signIn(ANN.password)
    const key = { authorization: `Bearer ${await makeKey(page)}` }
    const byKey = await fetch(`${url}/api/password`, {
      method: 'PUT',
      headers: { ...key, 'content-type': 'application/json' },
      body: JSON.stringify(change),
    })
    expect(await codeOf(byKey)).toBe('forbidden')
    expect(await codeOf(await page.put('/api/password', { ...change, password: 'short' }))).toBe(
      'bad_request',
    )
    const guess = { ...change, current: 'a guess' }
    expect(await codeOf(await page.put('/api/password', guess))).toBe('forbidden')
    expect(await codeOf(await page.put('/api/password', guess))).toBe('forbidden')
    expect(await codeOf(await page.put('/api/password', change))).toBe('rate_limited')
    expect((await page.get('/api/me')).status).toBe(200)
  })
})

describe('a person is removed', () => {
  let bob: Browser
  let bobsId: string

  beforeEach(async () => {
    bob = await addUser(harness, ann, 'bob@example.org')
    bobsId = ((await (await bob.get('/api/me')).json()) as { id: string }).id
  })

  const people = async (by = ann) => userList.parse(await (await by.get('/api/users')).json())
  const remove = (by: Browser, id: string, data = 'keep') => by.delete(`/api/users/${id}?data=${data}`)
  const asked = () => harness.agent.received.filter((line) => line.startsWith('remove '))

  test('everything of theirs ends at once; the agent and the disk follow', async () => {
    const key = await makeKey(bob)
    const tabs = [await Tab.of(bob, url), await Tab.open(url, { authorization: `Bearer ${key}` })]
    const mine = await Tab.of(ann, url)
    await fetch(`${url}/api/images`, {
      method: 'POST',
      headers: { cookie: bob.cookie, origin: url, 'content-type': 'image/png' },
      body: new Uint8Array(PNG),
    })
    const answer = await remove(ann, bobsId)
    expect(answer.status).toBe(202)
    expect(await answer.json()).toMatchObject({
      id: bobsId,
      email: 'bob@example.org',
      data: 'keep',
      done: false,
    })
    for (const tab of tabs) await waitFor(() => tab.closed?.code === 4401)
    expect((await bob.get('/api/me')).status).toBe(401)
    const withKey = await fetch(`${url}/api/me`, { headers: { authorization: `Bearer ${key}` } })
    expect(withKey.status).toBe(401)
    await waitFor(async () => (await people()).removed[0]?.done === true)
    expect(asked()).toEqual([`remove ${bobsId} keep`])
    expect(await readdir(join(harness.folder, 'uploads'))).toEqual([])
    await mine.settle()
    expect(mine.closed).toBeUndefined()
    expect((await people()).users.map(({ email }) => email)).toEqual([ANN.email])

    await remove(ann, bobsId, 'purge')
    await waitFor(async () => (await people()).removed.length === 0)
    expect(asked()).toEqual([`remove ${bobsId} keep`, `remove ${bobsId} purge`])
  })

  test('a request of theirs in progress has no effect', async () => {
    const eve = { name: 'Eve', email: 'eve@example.org', password: 'battery staple' }
    await ann.post('/api/users', { ...eve, role: 'admin' })
    const { email, password } = eve
    const admin = browser(url, cookieOf(await browser(url, '').post('/api/sign-in', { email, password })))
    const evesId = ((await (await admin.get('/api/me')).json()) as { id: string }).id
    const friend = { ...eve, email: 'mallory@example.org', role: 'admin' }
    const making = await held(admin, '/api/users', json(friend))
    const uploading = await held(admin, '/api/images', Buffer.from(PNG), 'image/png')
    expect((await remove(ann, evesId, 'purge')).status).toBe(202)
    await waitFor(async () => (await people()).removed.length === 0)
    expect(await Promise.all([making(), uploading()])).toEqual([401, 401])
    expect((await people()).users.map((one) => one.email).toSorted()).toEqual([ANN.email, 'bob@example.org'])
    expect(await readdir(join(harness.folder, 'uploads'))).toEqual([])
  })

  test('while the agent is away the account ends all the same, and the rest is done when it is back, once', async () => {
    await harness.agent.drop()
    expect((await remove(ann, bobsId, 'purge')).status).toBe(202)
    expect((await bob.get('/api/me')).status).toBe(401)
    expect((await people()).removed).toMatchObject([{ id: bobsId, done: false }])
    await harness.restart()
    ann = browser(harness.service.url, ann.cookie)
    await harness.agent.listen()
    await waitFor(async () => (await people()).removed.length === 0)
    expect(asked()).toEqual([`remove ${bobsId} purge`])
  })

  test('what the agent could not do is tried again, and a stop does not wait for it', async () => {
    await harness.restart({ removalRetryMs: 20 })
    ann = browser(harness.service.url, ann.cookie)
    let failures = 2
    harness.agent.beforeRemoval = async () => {
      if (failures-- > 0) throw new Error('the engine is away')
      await new Promise(() => undefined)
    }
    await remove(ann, bobsId)
    await waitFor(() => asked().length === 3)
    // Until the next answer it is said why the last one was none.
    expect((await people()).removed).toMatchObject([{ done: false, problem: expect.any(String) }])
    harness.agent.beforeRemoval = () => Promise.resolve()
    await harness.restart()
    ann = browser(harness.service.url, ann.cookie)
    await waitFor(async () => (await people()).removed[0]?.done === true)
    expect((await people()).removed).toMatchObject([{ problem: null }])
  })

  test('one that never answers, or always fails, delays no other', async () => {
    await harness.restart({ removalSlowMs: 20 })
    ann = browser(harness.service.url, ann.cookie)
    const ids: string[] = []
    for (const name of ['cid', 'dot', 'eli', 'fay', 'gus', 'hal']) {
      const person = { name, email: `${name}@example.org`, password: 'battery staple', role: 'member' }
      ids.push(((await (await ann.post('/api/users', person)).json()) as { id: string }).id)
    }
    const [failing, ...others] = ids
    const last = others.pop() ?? ''
    // More of them than are asked about at once.
    harness.agent.beforeRemoval = async (userId) => {
      if (userId === failing) throw refusal('not_ready', 'Their sandbox could not be removed: no engine')
      if (others.includes(userId)) await new Promise(() => undefined)
    }
    for (const id of [failing ?? '', bobsId, ...others]) await remove(ann, id)
    await waitFor(() => asked().length === 6)
    await remove(ann, last)
    const told = async (id: string) => (await people()).removed.find((one) => one.id === id)
    await waitFor(async () => (await told(last))?.done === true)
    await waitFor(async () => (await told(others[0] ?? ''))?.problem?.includes('may hang') === true)
    expect((await told(bobsId))?.done).toBe(true)
    const problem = (await told(failing ?? ''))?.problem
    expect(problem).toBe('Their sandbox could not be removed: no engine')

    // Its next try would come in fifteen seconds.
    harness.agent.beforeRemoval = () => Promise.resolve()
    expect(await (await remove(ann, failing ?? '')).json()).toMatchObject({ done: false, problem })
    await waitFor(async () => (await told(failing ?? ''))?.done === true)
  })

  test('what is being purged can no longer be kept, and a request for that is refused', async () => {
    harness.agent.beforeRemoval = () => new Promise(() => undefined)
    await remove(ann, bobsId, 'purge')
    await waitFor(() => asked().length === 1)
    expect(await codeOf(await remove(ann, bobsId, 'keep'))).toBe('conflict')
    expect((await people()).removed).toMatchObject([{ id: bobsId, data: 'purge', done: false }])
    expect(asked()).toHaveLength(1)
  })

  test('only by an administrator who is signed in and chooses what happens to the files, and not themselves', async () => {
    const me = ((await (await ann.get('/api/me')).json()) as { id: string }).id
    expect(await codeOf(await remove(bob, me))).toBe('forbidden')
    expect(await codeOf(await bob.get('/api/users'))).toBe('forbidden')
    const key = { authorization: `Bearer ${await makeKey(ann)}` }
    const byKey = await fetch(`${url}/api/users/${bobsId}?data=purge`, { method: 'DELETE', headers: key })
    expect(await codeOf(byKey)).toBe('forbidden')
    expect(await codeOf(await ann.delete(`/api/users/${bobsId}`))).toBe('bad_request')
    expect(await codeOf(await remove(ann, bobsId, 'all'))).toBe('bad_request')
    expect(await codeOf(await remove(ann, me))).toBe('forbidden')
    expect(await codeOf(await remove(ann, 'nobody'))).toBe('not_found')
    expect(asked()).toEqual([])
    expect((await people()).users).toHaveLength(2)
  })

  test('what they have shared goes to another person first, or nothing is changed', async () => {
    const me = ((await (await ann.get('/api/me')).json()) as { id: string }).id
    const removeTo = (to: string) => ann.delete(`/api/users/${bobsId}?data=purge&handOver=${to}`)
    expect(await codeOf(await removeTo('nobody'))).toBe('bad_request')
    expect(await codeOf(await removeTo(bobsId))).toBe('bad_request')
    await harness.agent.drop()
    await waitFor(async () => (await codeOf(await removeTo(me))) === 'agent_unavailable')
    expect((await people()).users).toHaveLength(2)
    await harness.agent.listen()
    await waitFor(async () => (await removeTo(me)).status === 202)
    await waitFor(async () => (await people()).removed.length === 0)
    expect(asked()).toEqual([`remove ${bobsId} keep to ${me}`, `remove ${bobsId} purge`])
  })
})
