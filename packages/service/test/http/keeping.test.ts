/** Marks and projects, over HTTP, with the real agent's own rows. */
import { type Project, projectList } from '@sandlot/shared/chat/chats'
import { sessionList } from '@sandlot/shared/chat/chat-api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { addUser, setUp, startHarness } from '../support/harness.ts'
import type { Browser, Harness } from '../support/harness.ts'

let harness: Harness
let ann: Browser
let bob: Browser

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  bob = await addUser(harness, ann, 'bob@example.org')
  const { id } = (await (await ann.get('/api/me')).json()) as { id: string }
  const { store } = harness.agent
  for (const [index, name] of ['first', 'second'].entries())
    await store.sessions.create({
      id: name,
      userId: id,
      cwd: '/workspace',
      mode: 'manual',
      at: 1_000 + index,
    })
  await store.log.append('first', [], { ended: { reason: 'budget', at: 2_000 } })
  await store.chats.mark(id, { sessionIds: ['second'], pinned: true }, 3_000)
  const project: Project = { id: 'p', name: 'P', folder: 'p', instructions: '', mode: null, model: null }
  await store.chats.putProject(id, project)
  await store.chats.mark(id, { sessionIds: ['second'], project: 'p', archived: true }, 3_000)
})

afterEach(() => harness.close())

async function listed(who: Browser, query: string) {
  return sessionList.parse(await (await who.get(`/api/sessions?${query}`)).json()).sessions
}

test('lines have their reader’s marks, and lists are asked for by them', async () => {
  expect(await listed(ann, '')).toMatchObject([
    { sessionId: 'second', pinned: true, archived: true, project: 'p' },
    { sessionId: 'first', endedAt: 2_000, ended: 'unfinished', unread: true },
  ])
  expect((await listed(ann, 'archived=false')).map(({ sessionId }) => sessionId)).toEqual(['first'])
  expect((await listed(ann, 'pinned=true&project=p')).map(({ sessionId }) => sessionId)).toEqual(['second'])
  expect((await ann.get('/api/sessions?archived=maybe')).status).toBe(400)
  const projects = async (who: Browser) =>
    projectList.parse(await (await who.get('/api/projects')).json()).projects.map(({ name }) => name)
  expect(await projects(ann)).toEqual(['P'])
  expect(await projects(bob)).toEqual([])
})

test('what another person’s project, or no project, is asked is not found', async () => {
  const put = (who: Browser, body: object) =>
    fetch(`${harness.service.url}/api/projects/p`, {
      method: 'PUT',
      headers: { cookie: who.cookie, origin: harness.service.url, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  expect((await put(bob, { name: 'Mine' })).status).toBe(404)
  expect((await put(ann, { name: '' })).status).toBe(400)
  expect((await put(ann, { name: 'x', folder: '../x' })).status).toBe(400)
})
