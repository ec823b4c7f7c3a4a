import type { ApiKey } from '@sandlot/shared/api'
import { expect, test } from 'vitest'
import {
  type Browser,
  ANN,
  Tab,
  addUser,
  browser,
  cookieOf,
  refusedUpgrade,
  waitFor,
} from '../support/harness.ts'
import { useHarness } from '../support/use-harness.ts'

const now = useHarness()

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const PHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1'

const signInAs = async (userAgent: string): Promise<Browser> => {
  const { url } = now().harness.service
  const answer = await browser(url, '').post(
    '/api/sign-in',
    { email: ANN.email, password: ANN.password },
    { 'user-agent': userAgent },
  )
  return browser(url, cookieOf(answer))
}

interface Entry {
  id: string
  current: boolean
  device: string
  address: string
  provider: string | null
  since: number
  lastUsedAt: number
}

const signInsOf = async (who: Browser): Promise<Entry[]> =>
  ((await (await who.get('/api/account/sign-ins')).json()) as { signIns: Entry[] }).signIns

test('a person sees their sign-ins, ends one, and ends all others', async () => {
  const { harness, ann } = now()
  const bob = await addUser(harness, ann, 'bob@example.org')
  const linux = await signInAs(FIREFOX)
  const phone = await signInAs(PHONE)
  const list = await signInsOf(linux)
  expect(list.map(({ device, current }) => ({ device, current }))).toEqual(
    expect.arrayContaining([
      { device: 'Firefox on Linux', current: true },
      { device: 'Safari on iPhone', current: false },
    ]),
  )
  expect(list).toHaveLength(3)
  expect(list[0]).toMatchObject({ address: '127.0.0.1', provider: null })
  for (const { since, lastUsedAt } of list) {
    expect(Math.abs(Date.now() - since)).toBeLessThan(60_000)
    expect(lastUsedAt).toBeGreaterThanOrEqual(since - 1_000)
  }

  const tab = await Tab.of(phone, harness.service.url)
  const id = list.find(({ device }) => device.includes('iPhone'))?.id ?? ''
  expect((await bob.delete(`/api/account/sign-ins/${id}`)).status).toBe(404)
  expect((await linux.delete(`/api/account/sign-ins/${id}`)).status).toBe(204)
  await waitFor(() => tab.closed?.code === 4401)
  expect((await phone.get('/api/me')).status).toBe(401)
  expect((await linux.delete(`/api/account/sign-ins/${id}`)).status).toBe(404)

  const other = await Tab.of(ann, harness.service.url)
  const own = await Tab.of(linux, harness.service.url)
  expect((await linux.delete('/api/account/sign-ins')).status).toBe(204)
  await waitFor(() => other.closed?.code === 4401)
  expect((await ann.get('/api/me')).status).toBe(401)
  expect(await signInsOf(linux)).toMatchObject([{ current: true }])
  expect(own.closed).toBeUndefined()
  expect(await signInsOf(bob)).toHaveLength(1)
  await own.close()
})

test('a key does what its scopes say, and is told which is missing', async () => {
  const { harness, ann } = now()
  const { url } = harness.service
  const keyOf = async (body: Record<string, unknown>): Promise<string> => {
    const made = await ann.post('/api/keys', { name: 'k', ...body })
    return ((await made.json()) as { key: string }).key
  }
  const ask = async (key: string, path: string, init: RequestInit = {}): Promise<string> => {
    const answer = await fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    })
    const { message } = (await answer.json().catch(() => ({}))) as { message?: string }
    return `${answer.status} ${/scope “(\w+)”/.exec(message ?? '')?.[1] ?? ''}`.trim()
  }
  const post = (body: unknown): RequestInit => ({ method: 'POST', body: JSON.stringify(body) })

  const read = await keyOf({ scopes: ['read'] })
  expect(await ask(read, '/api/me')).toBe('200')
  expect(await ask(read, '/api/sessions')).toBe('200')
  expect(await ask(read, '/api/chat', post({ message: 'hi' }))).toBe('403 chat')
  expect(await ask(read, '/api/sessions/x/cancel', { method: 'POST' })).toBe('403 chat')
  expect(await ask(read, '/api/files?path=')).toBe('403 files')
  expect(await ask(read, '/api/images', { method: 'POST' })).toBe('403 files')
  expect(await ask(read, '/api/users')).toBe('403 admin')
  expect(await refusedUpgrade(url, { authorization: `Bearer ${read}` })).toMatchObject({ status: 403 })

  const chat = await keyOf({ scopes: ['chat'] })
  expect(await ask(chat, '/api/me')).toBe('403 read')
  const tab = await Tab.open(url, { authorization: `Bearer ${chat}` })
  await tab.close()

  const usual = await keyOf({})
  expect(await ask(usual, '/api/me')).toBe('200')
  expect(await ask(usual, '/api/users')).toBe('403 admin')

  const admin = await keyOf({ scopes: ['admin', 'read', 'chat'] })
  expect(await ask(admin, '/api/users')).toBe('200')
  const cid = { name: 'Cid', email: 'cid@example.org', password: 'battery staple' }
  expect(await ask(admin, '/api/users', post(cid))).toBe('201')
  // A leaked key must not outlive its deletion.
  expect(await ask(admin, '/api/keys', post({ name: 'more' }))).toBe('403')
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect((await bob.post('/api/keys', { name: 'k', scopes: ['admin'] })).status).toBe(403)
  expect((await ann.post('/api/keys', { name: 'k', scopes: [] })).status).toBe(400)
})

test('a key is made with its end', async () => {
  const made = (await (await now().ann.post('/api/keys', { name: 'k', expiresInDays: 1 })).json()) as ApiKey
  expect(made.scopes).toEqual(['chat', 'read', 'files', 'exec'])
  expect(Math.round(((made.expiresAt ?? 0) - Date.now()) / 3_600_000)).toBe(24)
})
