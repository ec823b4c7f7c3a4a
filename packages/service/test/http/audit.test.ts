/** The audit log, as administrators read it. */
import type { AuditChains, AuditPage } from '@sandlot/shared/admin/audit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ANN, addUser, browser, makeKey, setUp, startHarness } from '../support/harness.ts'
import type { Browser, Harness } from '../support/harness.ts'

let harness: Harness
let ann: Browser

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
})
afterEach(async () => {
  await harness.close()
})

const read = async (query = '') => (await (await ann.get(`/api/admin/audit${query}`)).json()) as AuditPage
const kinds = async (query = '') => (await read(query)).entries.map(({ what }) => what)

test('says who came in, from where, by which key, and what they changed', async () => {
  const bob = await addUser(harness, ann, 'bob@example.org')
  await makeKey(bob)
  const team: unknown = await (await ann.post('/api/teams', { name: 'Data' })).json()
  expect(team).toMatchObject({ name: 'Data' })
  await bob.post('/api/sign-out')
  expect(await kinds()).toEqual([
    'signed_out',
    'team_made',
    'key_made',
    'signed_in',
    'person_added',
    'signed_in',
    'person_added',
  ])
  const [made] = (await read('?what=team_made')).entries
  expect(made).toMatchObject({
    source: 'service',
    who: { name: ANN.name, email: ANN.email },
    from: { address: '127.0.0.1', key: null },
    whom: { name: 'Data' },
  })
  expect(made?.from.signIn).toMatch(/./)
  expect(await kinds('?who=bob@example.org')).toEqual(['signed_out', 'key_made', 'signed_in'])
  expect(await kinds('?text=Data')).toEqual(['team_made'])
  expect(await kinds(`?from=${Date.now() + 60_000}`)).toEqual([])
})

test('failed sign-ins are counted together, and a password in place of the address is not kept', async () => {
  const stranger = browser(harness.service.url, '')
  for (let tries = 0; tries < 5; tries++)
    await stranger.post('/api/sign-in', { email: ANN.email, password: 'wrong' })
  await stranger.post('/api/sign-in', { email: 'my secret pass', password: 'wrong' })
  await harness.restart()
  ann = { ...browser(harness.service.url, ann.cookie) }
  const { entries } = await read('?what=sign_in_failed')
  expect(entries.map(({ whom, count }) => [whom.name, count])).toEqual([
    [ANN.email, 4],
    ['no e-mail address', 1],
    [ANN.email, 1],
  ])
  expect(JSON.stringify(entries)).not.toContain('my secret pass')
})

test('lines of both processes are merged by time, page by page, and exported', async () => {
  const { store } = harness.agent
  for (let index = 0; index < 30; index++) {
    await store.admin.audit.write({
      who: { id: 'x', name: '=1+1' },
      what: 'secret_set',
      whom: { name: `T${index}` },
    })
    await ann.post('/api/teams', { name: `Team ${index}` })
  }
  const all = await read('?limit=200')
  expect(all.entries).toHaveLength(62)
  const times = all.entries.map(({ at }) => at)
  expect(times).toEqual(times.toSorted((a, b) => b - a))
  const paged = []
  let next: string | null = ''
  while (next !== null) {
    const page = await read(`?limit=7${next && `&cursor=${next}`}`)
    paged.push(...page.entries)
    next = page.next
  }
  expect(paged).toEqual(all.entries)

  const jsonl = await (await ann.get('/api/admin/audit/export?format=jsonl&what=secret_set')).text()
  expect(jsonl.trim().split('\n')).toHaveLength(30)
  const csv = await (await ann.get('/api/admin/audit/export?format=csv&what=secret_set')).text()
  expect(csv.split('\r\n')[1]).toContain(",'=1+1,")
  expect((await kinds('?limit=2'))[0]).toBe('audit_exported')

  const { chains } = (await (await ann.get('/api/admin/audit/chains')).json()) as AuditChains
  expect(chains.map(({ source, lines, problems }) => [source, lines, problems])).toEqual([
    ['agent', 30, []],
    ['service', 34, []],
  ])
})

test('a chat that the reader sees has its title, and no other has', async () => {
  const { store } = harness.agent
  const me = (await (await ann.get('/api/me')).json()) as { id: string }
  const about = { cwd: '/workspace', mode: 'manual', at: 1 } as const
  for (const [id, userId] of [
    ['own', me.id],
    ['theirs', 'somebody'],
  ] as const) {
    await store.sessions.create({ id, userId, ...about })
    await store.log.append(id, [], { title: `Plans of ${id}` })
    await store.admin.audit.write({ who: { id: userId, name: userId }, what: 'shared', whom: { id } })
  }
  await store.admin.audit.write({
    who: { id: me.id, name: 'Ann' },
    what: 'chat_deleted',
    whom: { id: 'gone' },
  })
  const page = await read('?what=shared,chat_deleted')
  expect(page.entries).toHaveLength(3)
  expect(page.chats).toEqual({ own: 'Plans of own' })
})

test('is for administrators, and refuses what is no search', async () => {
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect((await bob.get('/api/admin/audit')).status).toBe(403)
  expect((await bob.get('/api/admin/audit/export?format=csv')).status).toBe(403)
  for (const query of ['?limit=0', '?limit=9999', '?from=yesterday', '?cursor=nonsense'])
    expect((await ann.get(`/api/admin/audit${query}`)).status).toBe(400)
  expect((await ann.get('/api/admin/audit/export?format=pdf')).status).toBe(400)
})
