import type { ApiKey } from '@sandlot/shared/account/api'
import { effectiveSettingsView } from '@sandlot/shared/account/agent-settings'
import type { NewSecondFactor } from '@sandlot/shared/account/sign-in-api'
import { expect, test } from 'vitest'
import { codeOf, nextCode } from '../../../storage/test/support/totp.ts'
import {
  type Browser,
  ANN,
  Tab,
  addUser,
  browser,
  cookieOf,
  makeKey,
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

test('a second factor is asked for from its confirmation on, and ends other sign-ins', async () => {
  const { harness, ann } = now()
  const { url } = harness.service
  const other = await signInAs(FIREFOX)
  const begin = '/api/account/second-factor'
  expect((await ann.post(begin, { password: 'wrong horse' })).status).toBe(403)
  const made = (await (await ann.post(begin, { password: ANN.password })).json()) as NewSecondFactor
  expect(made.recoveryCodes.length).toBeGreaterThanOrEqual(8)
  expect((await signInAs(PHONE)).cookie).toContain('session')
  expect((await ann.post(`${begin}/confirm`, { code: '000000' })).status).toBe(403)
  const used = codeOf(made.uri)
  const confirmed = await ann.post(`${begin}/confirm`, { code: used })
  expect(confirmed.status).toBe(204)
  const again = browser(url, cookieOf(confirmed))
  expect(await (await again.get('/api/account/ways')).json()).toMatchObject({ secondFactor: true })
  expect((await other.get('/api/me')).status).toBe(401)

  const half = await browser(url, '').post('/api/sign-in', { email: ANN.email, password: ANN.password })
  expect(await half.json()).toEqual({ secondFactor: true })
  const waiting = browser(url, cookieOf(half))
  expect((await waiting.get('/api/me')).status).toBe(401)
  expect((await waiting.post('/api/sign-in/code', { code: '000000' })).status).toBe(401)
  expect((await waiting.post('/api/sign-in/code', { code: used })).status).toBe(401)
  const whole = await waiting.post('/api/sign-in/code', { code: nextCode(made.uri) })
  expect(await whole.json()).toMatchObject({ email: ANN.email })
  for (const cookie of ['', 'sandlot.two_factor=%'])
    expect((await browser(url, cookie).post('/api/sign-in/code', { code: codeOf(made.uri) })).status).toBe(
      401,
    )

  const [recovery = ''] = made.recoveryCodes
  const byRecovery = async (): Promise<number> => {
    const one = await browser(url, '').post('/api/sign-in', { email: ANN.email, password: ANN.password })
    return (await browser(url, cookieOf(one)).post('/api/sign-in/code', { code: recovery })).status
  }
  expect([await byRecovery(), await byRecovery()]).toEqual([200, 401])

  expect(
    (await again.post(`${begin}/disable`, { password: 'wrong horse', code: made.recoveryCodes[1] })).status,
  ).toBe(403)
  for (const code of ['000000', used, recovery])
    expect((await again.post(`${begin}/disable`, { password: ANN.password, code })).status).toBe(403)
  expect((await again.post(`${begin}/disable`, { password: ANN.password })).status).toBe(400)
  const removal = { password: ANN.password, code: made.recoveryCodes[1] }
  expect((await again.post(`${begin}/disable`, removal)).status).toBe(204)
  expect((await signInAs(FIREFOX)).cookie).toContain('session')
})

test('an administrator removes a second factor, and gives a new password', async () => {
  const { harness, ann } = now()
  const bob = await addUser(harness, ann, 'bob@example.org')
  const password = 'battery staple'
  const made = (await (await bob.post('/api/account/second-factor', { password })).json()) as NewSecondFactor
  const confirmed = await bob.post('/api/account/second-factor/confirm', { code: codeOf(made.uri) })
  const again = browser(harness.service.url, cookieOf(confirmed))
  const { id } = (await (await again.get('/api/me')).json()) as { id: string }
  expect((await again.delete(`/api/users/${id}/second-factor`)).status).toBe(403)
  expect((await ann.delete(`/api/users/${id}/second-factor`)).status).toBe(204)
  expect((await ann.delete('/api/users/nobody/second-factor')).status).toBe(404)
  const fresh = (await (await ann.post(`/api/users/${id}/password`, {})).json()) as { password: string }
  expect((await again.get('/api/me')).status).toBe(401)
  const signedIn = await browser(harness.service.url, '').post('/api/sign-in', {
    email: 'bob@example.org',
    password: fresh.password,
  })
  expect(await signedIn.json()).toMatchObject({ email: 'bob@example.org' })
})

test('what was set for an address goes to who was invited by it, not to who names it by an open invitation', async () => {
  const { harness, ann } = now()
  const { url } = harness.service
  const join = async (email: string, invited: object): Promise<Browser> => {
    const made = (await (await ann.post('/api/invitations', invited)).json()) as { url: string }
    const token = new URL(made.url).searchParams.get('token')
    const body = { token, name: email, email, password: 'battery staple' }
    return browser(url, cookieOf(await browser(url, '').post('/api/invitations/accept', body)))
  }
  const ceilings = async (user: Browser) => {
    const { id } = (await (await user.get('/api/me')).json()) as { id: string }
    const both = [await user.get('/api/me/effective'), await ann.get(`/api/users/${id}/effective`)]
    const read = async (answer: Response) =>
      effectiveSettingsView.parse(await answer.json()).modeCeiling.from.kind
    return Promise.all(both.map(read))
  }
  for (const name of ['eve', 'fay'])
    harness.agent.settings.set(`person:${name}@example.org`, {
      settings: { modeCeiling: 'manual' },
      revision: 1,
    })
  const eve = await join('eve@example.org', {})
  const fay = await join('fay@example.org', { email: 'fay@example.org' })
  expect(await ceilings(eve)).toEqual(['deployment', 'deployment'])
  expect(await ceilings(fay)).toEqual(['person', 'person'])
  const key = await makeKey(eve)
  const headers = { authorization: `Bearer ${key}` }
  const own = await fetch(`${url}/api/me/effective`, { headers })
  expect(await own.json()).toMatchObject({ modeCeiling: { from: { kind: 'deployment' } } })
})

test('an invitation makes one account, with its role, for its address, until its end', async () => {
  const { harness, ann } = now()
  const { url } = harness.service
  const invite = async (body: unknown): Promise<{ id: string; token: string }> => {
    const made = (await (await ann.post('/api/invitations', body)).json()) as { id: string; url: string }
    return { id: made.id, token: new URL(made.url).searchParams.get('token') ?? '' }
  }
  const nobody = browser(url, '')
  const accept = async (token: string, email: string): Promise<{ status: number; message?: string }> => {
    const answer = await nobody.post('/api/invitations/accept', {
      token,
      name: 'Cid',
      email,
      password: 'battery staple',
    })
    return { status: answer.status, ...((await answer.json()) as object) }
  }
  const { id, token } = await invite({ role: 'guest', email: 'cid@example.org' })
  expect(await (await nobody.post('/api/invitations/look', { token })).json()).toMatchObject({
    role: 'guest',
    email: 'cid@example.org',
    createdBy: 'Ann',
  })
  expect(await accept(token, 'dan@example.org')).toMatchObject({ status: 403 })
  expect(await accept(token, 'cid@example.org')).toMatchObject({ status: 200, role: 'guest' })
  expect(await accept(token, 'cid@example.org')).toMatchObject({
    status: 403,
    message: 'This invitation has been used already. Ask for another one.',
  })
  const { invitations } = (await (await ann.get('/api/invitations')).json()) as { invitations: unknown[] }
  expect(invitations).toMatchObject([{ id, usedBy: 'Cid' }])

  // An address that is taken uses nothing up; of two at once one comes in.
  const second = await invite({})
  expect(await accept(second.token, 'cid@example.org')).toMatchObject({ status: 409 })
  const both = await Promise.all([
    accept(second.token, 'eve@example.org'),
    accept(second.token, 'fay@example.org'),
  ])
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403])

  const third = await invite({})
  expect((await ann.delete(`/api/invitations/${third.id}`)).status).toBe(204)
  expect(await accept(third.token, 'gus@example.org')).toMatchObject({ status: 403 })
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect((await bob.post('/api/invitations', {})).status).toBe(403)
})
