/** One's own data: all of it as an archive, and the end of one's account. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { unzipSync } from 'fflate'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { addUser, makeKey, setUp, startHarness, waitFor } from '../../support/harness.ts'
import type { Browser, Harness } from '../../support/harness.ts'

const MARKER = 'zebrafish'
const EMAIL = `${MARKER}@example.org`
let harness: Harness
let ann: Browser
let bob: Browser
let bobId: string

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  bob = await addUser(harness, ann, EMAIL)
  bobId = ((await (await bob.get('/api/me')).json()) as { id: string }).id
})
afterEach(async () => {
  await harness.close()
})

async function addChat(): Promise<void> {
  const { store } = harness.agent
  await store.sessions.create({ id: 's_b', userId: bobId, cwd: '/workspace', mode: 'manual', at: Date.now() })
  const meta = { _meta: { sandlot: { v: 1 as const, at: Date.now() } } }
  await store.log.append(
    's_b',
    [
      {
        sessionUpdate: 'user_message_chunk',
        messageId: 'm1',
        content: { type: 'text', text: 'Hello there' },
        ...meta,
      },
      makeSandlotEvent(
        { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' },
        { promptId: 'p1' },
        Date.now(),
      ),
    ],
    { title: 'A/B: test' },
  )
  await store.outputs.append('s_b', 'c1', 0, Buffer.from('printed'))
}

test('the archive has chats, outputs, files, rules, names of secrets, usage, and the audit lines about oneself', async () => {
  await addChat()
  await bob.put('/api/instructions', { text: 'Be brief.' })
  await bob.put('/api/secrets/TOKEN', { value: 'hunter2-hunter2' })
  await fetch(`${harness.service.url}/api/files/content?path=notes.txt`, {
    method: 'PUT',
    headers: { cookie: bob.cookie, origin: harness.service.url, 'content-type': 'application/octet-stream' },
    body: 'my notes',
  })
  const answer = await bob.get('/api/export')
  expect(answer.headers.get('content-type')).toBe('application/zip')
  const files = unzipSync(new Uint8Array(await answer.arrayBuffer()))
  const text = (name: string) => Buffer.from(files[name] ?? []).toString()
  const [folder] = Object.keys(files).flatMap((name) => /^(chats\/[^/]+)\/chat.md$/.exec(name)?.[1] ?? [])
  expect(folder).toMatch(/^chats\/\d{4}-\d\d-\d\d A_B_ test$/)
  expect(text(`${folder}/chat.md`)).toContain('Hello there')
  expect(JSON.parse(text(`${folder}/chat.json`))).toMatchObject({ sessionId: 's_b' })
  expect(text(`${folder}/outputs/c1.txt`)).toBe('printed')
  expect(text('workspace/notes.txt')).toBe('my notes')
  expect(JSON.parse(text('account.json'))).toMatchObject({ email: EMAIL, hasPassword: true })
  expect(JSON.parse(text('secrets.json'))).toMatchObject([{ name: 'TOKEN' }])
  expect(text('instructions.md')).toBe('Be brief.')
  expect(text('usage.csv')).toMatch(/^day,model,/)
  const lines = text('audit.jsonl')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { what: string })
  expect(lines.map(({ what }) => what)).toEqual(expect.arrayContaining(['signed_in', 'person_added']))
  expect(Object.values(files).some((bytes) => Buffer.from(bytes).includes('hunter2'))).toBe(false)
  expect(text(`${folder}/chat.json`)).not.toContain(EMAIL)
})

test('asks for a sign-in on the page; without the agent there is no half archive', async () => {
  const authorization = `Bearer ${await makeKey(bob)}`
  expect((await bob.get('/api/export', { cookie: '', authorization })).status).toBe(403)
  await harness.agent.drop()
  await waitFor(async () => (await bob.get('/api/export')).status === 503)
})

test('an account goes with its person’s word and password, and leaves nothing but the audit’s lines', async () => {
  const remove = (body: object) => bob.post('/api/account/delete', body)
  expect((await remove({ email: 'ann@example.org', password: 'correct horse' })).status).toBe(400)
  expect((await remove({ email: EMAIL })).status).toBe(403)
  expect((await remove({ email: EMAIL, password: 'wrong' })).status).toBe(403)
  await makeKey(bob)
  await ann.post('/api/invitations', { role: 'member', teams: [], expiresInHours: 1 })
  const answer = await remove({ email: EMAIL, password: 'battery staple' })
  expect(answer.status).toBe(204)
  expect(answer.headers.getSetCookie().join()).toContain('Max-Age=0')
  expect((await bob.get('/api/me')).status).toBe(401)
  await waitFor(async () => {
    const { removed } = (await (await ann.get('/api/users')).json()) as { removed: unknown[] }
    return removed.length === 0
  })
  expect(harness.agent.received).toContain(`remove ${bobId} purge`)
  const { entries } = (await (await ann.get('/api/admin/audit?what=person_removed')).json()) as {
    entries: object[]
  }
  expect(entries).toMatchObject([
    { who: { id: bobId, email: EMAIL }, whom: { id: bobId }, after: { data: 'purge' } },
  ])
  expect(found(join(harness.folder, 'accounts.db'))).toEqual(['audit'])
  const others = readdirSync(harness.folder, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && !/\.db(-wal|-shm)?$/.test(entry.name),
  )
  for (const { parentPath, name } of others)
    expect([name, readFileSync(join(parentPath, name)).includes(MARKER)]).toEqual([name, false])
})

test('the last administrator stays, and reads why', async () => {
  const answer = await ann.post('/api/account/delete', {
    email: 'ann@example.org',
    password: 'correct horse',
  })
  expect(answer.status).toBe(409)
  expect(((await answer.json()) as { message: string }).message).toContain('last administrator')
  expect((await ann.get('/api/me')).status).toBe(200)
})

/** Tables in which the marker or the id stands. */
function found(path: string): string[] {
  const file = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = file.prepare("select name from sqlite_master where type = 'table'").all() as {
      name: string
    }[]
    return tables
      .filter(({ name }) => {
        const rows = JSON.stringify(file.prepare(`select * from "${name}"`).all())
        return rows.includes(MARKER) || rows.includes(bobId)
      })
      .map(({ name }) => name)
  } finally {
    file.close()
  }
}
