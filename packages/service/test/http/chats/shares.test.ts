import { sessionList } from '@sandlot/shared/chat/chat-api'
import { diffsId } from '@sandlot/shared/chat/file-changes'
import { EXT } from '@sandlot/shared/acp/meta'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { sessionSummary } from '@sandlot/shared/chat/frames'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import { type Share, share, snapshot } from '@sandlot/shared/chat/shares'
import { type SnapshotView, directory, snapshotView } from '@sandlot/shared/chat/shares-api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULT_RATES } from '../../../src/auth/limits.ts'
import {
  type Browser,
  type Harness,
  Tab,
  addUser,
  browser,
  cookieOf,
  makeKey,
  setUp,
  startHarness,
} from '../../support/harness.ts'

let harness: Harness
let ann: Browser
let bob: Browser
let guest: Browser
const id = { ann: '', bob: '', guest: '' }

const idOf = async (who: Browser): Promise<string> =>
  ((await (await who.get('/api/me')).json()) as { id: string }).id

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  bob = await addUser(harness, ann, 'bob@example.org')
  await ann.post('/api/users', {
    name: 'Gus',
    email: 'gus@example.org',
    password: 'battery staple',
    role: 'guest',
  })
  guest = await signIn('gus@example.org')
  id.ann = await idOf(ann)
  id.bob = await idOf(bob)
  id.guest = await idOf(guest)
  const { store } = harness.agent
  await store.sessions.create({ id: 'plan', userId: id.ann, cwd: '/workspace', mode: 'yolo', at: 1_000 })
  await store.sessions.create({ id: 'own', userId: id.bob, cwd: '/workspace', mode: 'manual', at: 2_000 })
  await store.log.append('plan', LOG, { title: 'The plan' })
  await store.outputs.append('plan', 'c1', 0, Buffer.from('a secret line'))
})

afterEach(() => harness.close())

async function signIn(email: string): Promise<Browser> {
  const password = 'battery staple'
  return browser(
    harness.service.url,
    cookieOf(await browser(harness.service.url, '').post('/api/sign-in', { email, password })),
  )
}

const meta = (fields = {}) => makeMeta({ promptId: 'p1', ...fields }, 1)
const happened = (event: SandlotEvent): SessionEvent => makeSandlotEvent(event, { promptId: 'p1' }, 1)
const PIXEL = { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' } as const
const LOG: SessionEvent[] = [
  happened({ type: 'instructions', text: 'what Ann told the agent in private' }),
  happened({ type: 'prompt_started' }),
  { sessionUpdate: 'user_message_chunk', messageId: 'm1', content: PIXEL, _meta: meta() },
  {
    sessionUpdate: 'tool_call',
    toolCallId: 'c1',
    title: 'cat plan.txt',
    name: 'run_shell_command',
    kind: 'execute',
    status: 'pending',
    rawInput: { command: 'cat plan.txt' },
    _meta: meta(),
  },
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c1',
    status: 'completed',
    content: [{ type: 'content', content: { type: 'text', text: 'a secret line' } }],
    _meta: meta({
      outputInfo: { bytes: 13, lines: 1, truncated: false, url: '/api/sessions/plan/outputs/c1' },
    }),
  },
  happened({ type: 'comment', commentId: 'k1', text: 'between us', mentions: [] }),
  happened({ type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' }),
]

const toBob = (more: object = {}) => ({ kind: 'person', targetId: id.bob, access: 'watch', ...more })
async function shared(more: object = {}): Promise<Share> {
  const answer = await ann.post('/api/sessions/plan/shares', toBob(more))
  expect(answer.status).toBe(201)
  return share.parse(await answer.json())
}
const code = async (answer: Promise<Response>): Promise<[number, string]> => {
  const response = await answer
  return [response.status, ((await response.json()) as { code: string }).code]
}
const said = async (answer: Promise<Response>): Promise<string> =>
  ((await (await answer).json()) as { message: string }).message

describe('a share', () => {
  test('gives the line, the outputs and the images, and its end takes them away', async () => {
    const paths = ['', '/outputs/c1', '/images/3/0']
    const statuses = () =>
      Promise.all(paths.map(async (path) => (await bob.get(`/api/sessions/plan${path}`)).status))
    expect(await statuses()).toEqual([404, 404, 404])
    const { id: shareId } = await shared()
    expect(await statuses()).toEqual([200, 200, 200])
    // Whole texts of the owner's files.
    const diffs = `/api/sessions/plan/outputs/${encodeURIComponent(diffsId('p1'))}`
    expect(await code(bob.get(diffs))).toEqual([403, 'forbidden'])
    expect(await code(ann.get(diffs))).toEqual([404, 'not_found'])
    const { sessions } = sessionList.parse(await (await bob.get('/api/sessions')).json())
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['own', 'plan'])
    expect(sessions[0]).not.toHaveProperty('owner')
    expect(sessions[1]).toMatchObject({ owner: { id: id.ann, name: 'Ann' }, access: 'watch', waiting: 0 })
    expect(sessionSummary.parse(await (await ann.get('/api/sessions/plan')).json())).toMatchObject({
      shared: true,
    })
    expect((await ann.delete(`/api/sessions/plan/shares/${shareId}`)).status).toBe(204)
    expect(await statuses()).toEqual([404, 404, 404])
    expect(await (await ann.get('/api/sessions/plan')).json()).not.toHaveProperty('shared')
  })

  test('to take part says the highest mode of what its reader sends', async () => {
    const made = await ann.post(
      '/api/sessions/plan/shares',
      toBob({ access: 'take_part', mode: 'auto-edit' }),
    )
    const share = (await made.json()) as { id: string }
    const line = await (await bob.get('/api/sessions/plan')).json()
    expect(line).toMatchObject({ access: 'take_part', modeCeiling: 'auto-edit' })
    await ann.delete(`/api/sessions/plan/shares/${share.id}`)
  })

  test('says who may answer what is pending to those who may not: people, members of teams, and nobody who has lost it', async () => {
    const eve = await addUser(harness, ann, 'eve@example.org')
    const eveId = await idOf(eve)
    const team = (await (await ann.post('/api/teams', { name: 'Ops' })).json()) as { id: string }
    expect((await ann.put(`/api/teams/${team.id}/members/${id.guest}`, { member: true })).status).toBe(200)
    await shared()
    const approvers = async (who: Browser) =>
      sessionSummary.parse(await (await who.get('/api/sessions/plan')).json()).approvers
    expect(await approvers(bob)).toBeUndefined()
    const put = (body: object) => ann.post('/api/sessions/plan/shares', { access: 'watch', ...body })
    await put({ kind: 'person', targetId: eveId, mayApprove: true })
    const { id: ofTeam } = share.parse(
      await (await put({ kind: 'team', targetId: team.id, mayApprove: true })).json(),
    )
    expect(await approvers(bob)).toBeUndefined()
    const asked = { toolCallId: 'c1', askedAt: 1, expiresAt: 2 }
    await harness.agent.store.log.append('plan', [], { approvalAsked: asked })
    const names = async () => (await approvers(bob))?.map(({ name }) => name).toSorted()
    expect(await names()).toEqual(['Bob', 'Gus'])
    expect(await approvers(eve)).toBeUndefined()
    expect(await approvers(ann)).toBeUndefined()
    await ann.delete(`/api/sessions/plan/shares/${ofTeam}`)
    expect(await approvers(bob)).toEqual([{ id: eveId, name: 'Bob' }])
    await put({ kind: 'person', targetId: id.guest })
    expect(await approvers(guest)).toBeUndefined()
    for (const name of ['a', 'b', 'c', 'd']) {
      const targetId = await idOf(await addUser(harness, ann, `${name}@example.org`))
      await put({ kind: 'person', targetId, mayApprove: true })
    }
    expect(await approvers(bob)).toHaveLength(3)
    expect(await (await bob.get('/api/sessions/plan')).json()).toMatchObject({ moreApprovers: 2 })
  })

  test('that has expired gives nothing', async () => {
    await harness.agent.store.shares.put(
      'plan',
      {
        id: 'gone',
        kind: 'person',
        targetId: id.bob,
        access: 'watch',
        mode: 'manual',
        mayApprove: false,
        createdAt: 1,
        expiresAt: Date.now() - 1,
      },
      id.ann,
    )
    expect((await bob.get('/api/sessions/plan')).status).toBe(404)
    expect((await bob.get('/api/sessions/plan/outputs/c1')).status).toBe(404)
    const { sessions } = sessionList.parse(await (await bob.get('/api/sessions')).json())
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['own'])
  })

  test('with oneself, nobody, somebody removed: a clear sentence; with a guest it is possible', async () => {
    const put = (body: object) => ann.post('/api/sessions/plan/shares', body)
    expect(await said(put(toBob({ targetId: id.ann })))).toContain('yours already')
    expect(await said(put(toBob({ targetId: 'nobody' })))).toBe('There is no such person here.')
    expect(await said(put({ kind: 'team', targetId: 'none', access: 'watch' }))).toBe(
      'There is no such team.',
    )
    expect((await put(toBob({ targetId: id.guest, access: 'take_part' }))).status).toBe(201)
    await ann.delete(`/api/users/${id.guest}?data=keep`)
    expect(await said(put(toBob({ targetId: id.guest })))).toContain('was removed')
    expect((await put(toBob({ access: 'own' }))).status).toBe(400)
  })

  test('is not made with a key, which it would outlive', async () => {
    const authorization = `Bearer ${await makeKey(ann)}`
    const post = (path: string, body: object) =>
      fetch(`${harness.service.url}/api/sessions/plan${path}`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    expect(await code(post('/shares', toBob()))).toEqual([403, 'forbidden'])
    expect(await code(post('/snapshots', {}))).toEqual([403, 'forbidden'])
  })
})

describe('a snapshot', () => {
  const view = async (who: Browser, link: string): Promise<SnapshotView> =>
    snapshotView.parse(await (await who.get(`/api/snapshots/${link}`)).json())
  const made = async (body: object): Promise<string> => {
    const answer = await ann.post('/api/sessions/plan/snapshots', body)
    expect(answer.status).toBe(201)
    return snapshot.parse(await answer.json()).id
  }

  test('shows what was said, to everybody who is signed in, and nothing of what was printed', async () => {
    const link = await made({})
    const seen = await view(guest, link)
    expect(seen).toMatchObject({
      title: 'The plan',
      owner: { name: 'Ann' },
      upTo: 7,
      outputs: false,
      next: null,
    })
    const text = JSON.stringify(seen)
    expect(text).toContain('cat plan.txt')
    for (const hidden of ['secret line', 'in private', 'between us', '/api/sessions', PIXEL.data])
      expect(text).not.toContain(hidden)
    const image = seen.events.find((event) => event.sessionUpdate === 'user_message_chunk')
    const { uri } = (image as { content: { uri: string } }).content
    expect((await guest.get(uri)).status).toBe(200)
    expect((await guest.get(`/api/snapshots/${link}/outputs/c1`)).status).toBe(404)
    expect((await guest.get('/api/sessions/plan')).status).toBe(404)
    expect((await fetch(`${harness.service.url}/api/snapshots/${link}`)).status).toBe(401)
  })

  test('keeps the title that the chat had', async () => {
    const link = await made({})
    await harness.agent.store.log.append('plan', [LOG[2] as SessionEvent], { title: 'Layoffs in May' })
    expect(await view(bob, link)).toMatchObject({ title: 'The plan' })
    expect(await view(bob, await made({}))).toMatchObject({ title: 'Layoffs in May' })
    const { store } = harness.agent
    await store.sessions.create({ id: 'new', userId: id.ann, cwd: '/workspace', mode: 'yolo', at: 1 })
    const untitled = { id: 'u', sessionId: 'new', upTo: 1, outputs: false, createdAt: 1, expiresAt: null }
    await store.shares.addSnapshot(untitled, id.ann)
    await store.log.append('new', [LOG[2] as SessionEvent], { title: 'Layoffs in May' })
    expect(await view(bob, 'u')).toMatchObject({ title: null })
  })

  test('with outputs has those of calls that had ended, at its own address', async () => {
    const link = await made({ outputs: true })
    const { events } = await view(bob, link)
    const url = events.find((event) => event.sessionUpdate === 'tool_call_update')?._meta.sandlot.outputInfo
      ?.url
    expect(url).toBe(`/api/snapshots/${link}/outputs/c1`)
    expect(await (await bob.get(url ?? '')).text()).toBe('a secret line')
    await harness.agent.store.outputs.append('plan', 'later', 0, Buffer.from('later'))
    expect((await bob.get(`/api/snapshots/${link}/outputs/later`)).status).toBe(404)
  })

  test('has nothing later, and nothing once it is revoked or has expired', async () => {
    const link = await made({ outputs: true })
    const { store } = harness.agent
    await store.log.append('plan', [{ ...(LOG[2] as SessionEvent) }])
    const { events } = await view(bob, link)
    expect(Math.max(...events.map((event) => event._meta.sandlot.seq ?? 0))).toBe(7)
    expect((await bob.get(`/api/snapshots/${link}/images/8/0`)).status).toBe(404)
    expect((await ann.delete(`/api/sessions/plan/snapshots/${link}`)).status).toBe(204)
    expect((await bob.get(`/api/snapshots/${link}`)).status).toBe(404)
    expect((await bob.get(`/api/snapshots/${link}/outputs/c1`)).status).toBe(404)
    const old = { id: 'old', sessionId: 'plan', upTo: 7, outputs: true, createdAt: 1, expiresAt: 2 }
    await store.shares.addSnapshot(old, id.ann)
    for (const path of ['', '/outputs/c1', '/images/3/0'])
      expect((await bob.get(`/api/snapshots/old${path}`)).status).toBe(404)
  })
})

describe('people to share with', () => {
  test('are found by name; an address is shown where two have one name; guests find nobody', async () => {
    await ann.post('/api/users', { name: 'Bob', email: 'bob2@example.org', password: 'battery staple' })
    const find = async (who: Browser, query: string) =>
      directory.parse(await (await who.get(`/api/people?query=${encodeURIComponent(query)}`)).json())
    const { people } = await find(ann, 'bo')
    expect(new Set(people.map(({ email }) => email))).toEqual(
      new Set(['bob@example.org', 'bob2@example.org']),
    )
    expect((await find(bob, 'gus')).people).toEqual([{ id: id.guest, name: 'Gus', guest: true }])
    expect((await find(bob, 'gus@example.org')).people).toHaveLength(1)
    expect((await find(bob, 'example.org')).people).toEqual([])
    expect(JSON.stringify(await find(ann, 'Ann'))).not.toContain(id.ann)
    expect(await code(guest.get('/api/people?query=a'))).toEqual([403, 'forbidden'])
  })
})

test('comments are limited as messages are', async () => {
  await shared()
  const { points } = DEFAULT_RATES.prompts
  const status = async (number: number): Promise<number> =>
    (await bob.post('/api/sessions/plan/comments', { commentId: `r${number}`, text: 'Hm.' })).status
  for (let number = 1; number <= points; number++) expect(await status(number)).toBe(201)
  expect(await status(points + 1)).toBe(429)
})

describe('a socket', () => {
  test('follows a shared chat, comments, and gets nothing more once its share has ended', async () => {
    const { id: shareId } = await shared()
    const tab = await Tab.of(bob, harness.service.url)
    tab.send({ type: 'ai_chat_resume', sessionId: 'plan', after: 0 })
    await tab.get('ai_chat_caught_up')
    expect(tab.eventsOf('plan')).toHaveLength(LOG.length)
    tab.send({ type: 'ai_chat_typing', sessionId: 'plan' })
    const comment = { commentId: 'c1', text: ' Look here. ', mentions: [id.ann] }
    await bob.post('/api/sessions/plan/comments', comment)
    await tab.get('ai_chat_event', ({ event }) => {
      const inner = sandlotEventOf(event)
      return inner?.type === 'comment' && inner.text === 'Look here.'
    })
    expect(harness.agent.received).toContain(`typing ${id.bob} plan`)
    tab.send({ type: 'ai_chat_cancel', sessionId: 'plan' })
    expect((await tab.get('ai_chat_error')).code).toBe('forbidden')
    await ann.delete(`/api/sessions/plan/shares/${shareId}`)
    harness.agent.sendRaw(EXT.sessionClosed, { sessionId: 'plan', why: 'unshared' })
    const closed = await tab.get('ai_chat_error', (frame) => frame.code === 'not_found')
    expect(closed).toMatchObject({ sessionId: 'plan', message: 'This chat is no longer shared with you.' })
    const before = tab.eventsOf('plan').length
    await ann.post('/api/sessions/plan/comments', { commentId: 'c2', text: 'He is gone.' })
    await tab.settle()
    expect(tab.eventsOf('plan')).toHaveLength(before)
    await tab.close()
  })

  test('reads how the list changes: as one’s share is, and that it is gone', async () => {
    const tabs = [
      await Tab.of(ann, harness.service.url),
      await Tab.of(bob, harness.service.url),
      await Tab.of(guest, harness.service.url),
    ]
    const [anns, bobs, guests] = tabs as [Tab, Tab, Tab]
    const { id: shareId } = await shared()
    const summary = {
      sessionId: 'plan',
      title: 'The plan',
      updatedAt: 5,
      mode: 'manual',
      running: true,
      waiting: 1,
    }
    const both = { people: [id.bob], teams: [] }
    harness.agent.sendRaw(EXT.sessionChanged, { userId: id.ann, summary, sharedWith: both })
    expect((await bobs.get('ai_chat_sessions')).changed).toMatchObject([
      { title: 'The plan', waiting: 0, owner: { id: id.ann, name: 'Ann' }, access: 'watch' },
    ])
    expect((await anns.get('ai_chat_sessions')).changed).toMatchObject([{ waiting: 1 }])
    await ann.delete(`/api/sessions/plan/shares/${shareId}`)
    harness.agent.sendRaw(EXT.sessionChanged, {
      userId: id.ann,
      summary: { ...summary, title: 'Renamed' },
      unsharedFrom: both,
    })
    const gone = await bobs.get('ai_chat_sessions', ({ changed }) => changed[0]?.deleted === true)
    expect(JSON.stringify(gone)).not.toContain('Renamed')
    await guests.settle()
    expect(guests.frames).toEqual([])
    for (const tab of tabs) await tab.close()
  })
})
