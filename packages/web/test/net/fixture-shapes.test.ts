/** Compare the fixture of the page's tests with the real service: routes, statuses, messages, shapes, frames. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Browser,
  browser,
  type Harness,
  routesOf,
  setUp,
  startHarness,
  Tab,
} from '../../../service/test/support/harness.ts'
import { threeWait } from '../fixture/receipts.ts'
import { FixtureService } from '../fixture/service.ts'

const fixture = new FixtureService()
let harness: Harness
let real: Browser
let url: string

beforeAll(async () => {
  harness = await startHarness()
  real = await setUp(harness)
  fixture.setupNeeded = false
  url = await fixture.start('/no-pages')
})
afterAll(async () => {
  await fixture.stop()
  await harness.close()
})

const atFixture = (): Browser => {
  const { name, value } = fixture.newSignIn()
  return browser(url, `${name}=${value}`)
}

async function answer(who: Browser, method: string, path: string, body: unknown) {
  const response = await (method === 'GET'
    ? who.get(path)
    : method === 'PUT'
      ? who.put(path, body)
      : who.post(path, body))
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  return { status: response.status, body: isJson ? (JSON.parse(text) as unknown) : null }
}

/** Paths in `value` that `other` lacks. Null and empty values of `other` are not compared. */
function lacking(value: unknown, other: unknown, at = ''): string[] {
  if (typeof value !== 'object' || value === null || typeof other !== 'object' || other === null) return []
  if (Array.isArray(value)) {
    const [first, ...more] = Array.isArray(other) ? (other as unknown[]) : []
    if (first === undefined || typeof first !== 'object') return []
    const merged: unknown = Object.assign({}, first, ...more)
    return value.flatMap((item) => lacking(item, merged, `${at}[]`))
  }
  const known = new Map(Object.entries(other))
  if (known.size === 0) return []
  return Object.entries(value).flatMap(([key, item]) =>
    known.has(key) ? lacking(item, known.get(key), `${at}.${key}`) : [`${at}.${key}`],
  )
}

/** Fields that only one of the two has here: optional ones, members of a union, free-form values of the audit log. */
const OPTIONAL = [
  /\.requestId /,
  /\/me: \.(model\.images|modeCeiling)/,
  /audit: .*\.(before|after)\./,
  /overview: \.(version|prompts|promptLimit|sandboxes|freeBytes)/,
  /people: .*\.(guest|email)/,
  /rules: .*\.match\./,
]
/** Queries of routes that need one. */
const QUERIES: Record<string, string> = {
  '/api/files/content': '?path=none.txt',
  '/api/files/preview': '?path=none.txt',
  '/api/admin/audit/export': '?format=csv',
}

const messageIn = (body: unknown): unknown =>
  typeof body === 'object' && body !== null && 'message' in body ? body.message : undefined

async function differences(method: string, path: string, body?: unknown): Promise<string[]> {
  const [own, theirs] = await Promise.all([
    answer(atFixture(), method, path, body),
    answer(real, method, path, body),
  ])
  const route = `${method} ${path}`
  // Not answered by the fixture, or not by the scripted agent.
  if (messageIn(own.body) === 'There is no such route.' || theirs.status === 501) return []
  if (own.status !== theirs.status) return [`${route}: ${own.status}, the service ${theirs.status}`]
  if (own.status >= 400 && messageIn(own.body) !== messageIn(theirs.body))
    return [`${route}: “${String(messageIn(own.body))}”, the service “${String(messageIn(theirs.body))}”`]
  const all = [
    ...lacking(own.body, theirs.body).map((place) => `${route}: ${place} is missing in the service`),
    ...lacking(theirs.body, own.body).map((place) => `${route}: ${place} is missing in the fixture`),
  ]
  return [...new Set(all)].filter((one) => !OPTIONAL.some((pattern) => pattern.test(one)))
}

test('a chat is replayed in the same frames', async () => {
  const log = threeWait()
  fixture.add('s_three', 'Set the machine up', log)
  const { id } = (await (await real.get('/api/me')).json()) as { id: string }
  await harness.agent.store.sessions.create(
    { id: 's_three', userId: id, cwd: '/workspace', mode: 'manual', at: Date.now() },
    log.settled,
  )
  const framesOf = async (tab: Tab) => {
    tab.send({ type: 'ai_chat_resume', sessionId: 's_three', after: 0 })
    await tab.get('ai_chat_caught_up')
    const frames = tab.frames.filter(({ type }) => type === 'ai_chat_event' || type === 'ai_chat_caught_up')
    await tab.close()
    return frames
  }
  const own = await framesOf(await Tab.of(atFixture(), url))
  expect(own).toEqual(await framesOf(await Tab.of(real, harness.service.url)))
  expect(own).toHaveLength(log.settled.length + 1)
})

test('a message is accepted by the same frame', async () => {
  const frameOf = async (tab: Tab) => {
    tab.send({ type: 'ai_chat', requestId: 'r_1', text: 'hello', whenBusy: 'steer' })
    const frame = await tab.get('ai_chat_accepted')
    await tab.close()
    return frame
  }
  const own = await frameOf(await Tab.of(atFixture(), url))
  const theirs = await frameOf(await Tab.of(real, harness.service.url))
  expect([...lacking(own, theirs), ...lacking(theirs, own)]).toEqual([])
})

test('writes get the same answers', async () => {
  const found: string[] = []
  for (const [method, path, body] of [
    ['POST', '/api/users', { name: 'Cid', email: 'cid@example.org', password: 'a first password' }],
    ['POST', '/api/keys', { name: 'ci' }],
    ['POST', '/api/rules', { effect: 'allow', match: { shell: 'npm run *' } }],
    ['PUT', '/api/secrets/TOKEN', { value: 'x' }],
    ['POST', '/api/projects', { name: 'Garden', folder: 'primes' }],
    ['POST', '/api/teams', { name: 'ops' }],
    ['POST', '/api/invitations', { role: 'guest', teams: [], expiresInHours: 24 }],
    ['POST', '/api/admin/rules', { effect: 'deny', match: { shell: 'reboot' } }],
    ['PUT', '/api/instructions', { text: 'Be brief.' }],
    ['PUT', '/api/account/name', { name: 'Ada' }],
    ['PUT', '/api/password', { current: 'wrong', password: 'a good password' }],
    ['POST', '/api/sign-in', { email: 'nobody@example.org', password: 'wrong password' }],
    ['POST', '/api/reset', { email: 'nobody@example.org' }],
    ['POST', '/api/invitations/look', { token: 'none' }],
    ['POST', '/api/reset/password', { token: 'none', password: 'another good one' }],
    [
      'POST',
      '/api/setup',
      { token: 'none', name: 'Ada', email: 'a@example.org', password: 'a good password' },
    ],
    ['POST', '/api/rules/preview', { effect: 'allow', match: { shell: 'npm run *' } }],
  ] as const)
    found.push(...(await differences(method, path, body)))
  expect(found).toEqual([])
})

test('reads get the same answers', async () => {
  const found: string[] = []
  for (const route of routesOf(harness)) {
    const [method = '', path = ''] = route.split(' ')
    // The fixture makes no zip of an empty workspace.
    if (method === 'GET' && path.startsWith('/api/') && !/[:*]|zip$/.test(path))
      found.push(...(await differences(method, `${path}${QUERIES[path] ?? ''}`)))
  }
  expect(found).toEqual([])
})

test('every route that the fixture names exists in the service', () => {
  const routes = routesOf(harness)
  const files = globSync(join(import.meta.dirname, '../fixture/*.ts'))
  const named = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/'((?:GET|POST|PUT|PATCH|DELETE) \/api\/[\w/-]+)/g)].map(
      ([, route = '']) => route,
    ),
  )
  expect(named.length).toBeGreaterThan(40)
  expect(named.filter((route) => !routes.some((one) => one.startsWith(route)))).toEqual([])
})
