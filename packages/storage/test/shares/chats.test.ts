/** Users' own marks on chats. */
import { type Project, newProject } from '@sandlot/shared/chat/chats'
import { searchQuery } from '@sandlot/shared/search/search'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSessionStore } from '../../src/store/open.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { onBoth } from '../support/databases.ts'

const AT = 1_790_000_000_000
const PROJECT: Project = {
  id: 'p',
  name: 'Garden',
  folder: 'garden',
  instructions: 'Be brief.',
  mode: 'manual',
  model: null,
}
onBoth(({ fresh }) => {
  let store: SessionStore

  beforeEach(async () => {
    store = await openSessionStore(await fresh())
    for (const [index, id] of ['a', 'b', 'c'].entries())
      await store.sessions.create({ id, userId: 'ann', cwd: '/workspace', mode: 'manual', at: AT + index })
  })
  afterEach(() => store.close())

  async function listed(marks: object, who = 'ann') {
    return (await store.sessions.list(who, { marks })).map(({ id }) => id)
  }

  test('pins, archive and projects are one person’s, and lists keep to them', async () => {
    await store.chats.putProject('ann', PROJECT)
    await store.chats.mark('ann', { sessionIds: ['a', 'b'], pinned: true }, AT)
    await store.chats.mark('ann', { sessionIds: ['b'], archived: true, project: 'p' }, AT)
    await store.chats.mark('bob', { sessionIds: ['c'], archived: true }, AT)
    expect(await listed({})).toEqual(['c', 'b', 'a'])
    expect(await listed({ archived: false })).toEqual(['c', 'a'])
    expect(await listed({ archived: true })).toEqual(['b'])
    expect(await listed({ pinned: true, archived: false })).toEqual(['a'])
    expect(await listed({ project: 'p' })).toEqual(['b'])
    expect(await store.chats.projectOf('ann', 'b')).toEqual(PROJECT)
    expect(await store.chats.projectOf('bob', 'b')).toBeUndefined()
    const marks = await store.chats.marks('ann', ['a', 'b', 'c'])
    expect(marks.get('b')).toEqual({ pinned: true, archived: true, project: 'p', seenAt: 0 })
    await store.chats.mark('ann', { sessionIds: ['b'], pinned: false, project: null, seen: true }, AT + 5)
    expect((await store.chats.marks('ann', ['b'])).get('b')).toEqual({
      pinned: false,
      archived: true,
      project: null,
      seenAt: AT + 5,
    })
  })

  test('a project is its person’s alone; its chats stay when it goes', async () => {
    await store.chats.putProject('ann', PROJECT)
    await expect(store.chats.mark('bob', { sessionIds: ['a'], project: 'p' }, AT)).rejects.toMatchObject({
      code: 'not_found',
    })
    await store.chats.putProject('bob', { ...PROJECT, name: 'Taken' })
    expect(await store.chats.projects('ann')).toEqual([PROJECT])
    expect(await store.chats.removeProject('bob', 'p')).toBe(false)
    await store.sessions.create({
      id: 'd',
      userId: 'ann',
      cwd: '/workspace/garden',
      mode: 'manual',
      at: AT,
      project: 'p',
    })
    expect(await listed({ project: 'p' })).toEqual(['d'])
    expect(await store.chats.removeProject('ann', 'p')).toBe(true)
    expect((await store.chats.marks('ann', ['d'])).get('d')?.project).toBeNull()
    expect(await store.sessions.get('d')).toBeDefined()
  })

  test('search keeps to a project and to the archive; what is deleted or removed leaves no mark', async () => {
    for (const id of ['a', 'b'])
      await store.log.append(id, [
        {
          sessionUpdate: 'user_message_chunk',
          messageId: id,
          content: { type: 'text', text: 'tulips' },
          _meta: makeMeta({}, AT),
        },
      ])
    await store.chats.putProject('ann', PROJECT)
    await store.chats.mark('ann', { sessionIds: ['b'], archived: true, project: 'p' }, AT)
    const found = async (more: object) =>
      (await store.sessions.search({ id: 'ann' }, searchQuery.parse({ q: 'tulips', ...more }))).hits.map(
        ({ sessionId }) => sessionId,
      )
    expect(await found({ project: 'p' })).toEqual(['b'])
    expect(await found({ archived: 'true' })).toEqual(['b'])
    expect(await found({ archived: 'false' })).toEqual(['a'])
    await store.sessions.remove('b')
    expect((await store.chats.marks('ann', ['b'])).size).toBe(0)
    await store.chats.mark('ann', { sessionIds: ['a'], pinned: true }, AT)
    await store.people.known.remove('ann', AT)
    expect((await store.chats.marks('ann', ['a'])).size).toBe(0)
    expect(await store.chats.projects('ann')).toEqual([])
  })

  test('the end of a prompt is known of the row', async () => {
    await store.log.append('a', [], { runningPromptId: 'p' })
    expect((await store.sessions.get('a'))?.ended).toBeUndefined()
    await store.log.append('a', [], { runningPromptId: null, ended: { reason: 'error', at: AT + 9 } })
    expect((await store.sessions.get('a'))?.ended).toEqual({ reason: 'error', at: AT + 9 })
  })
})

test.each(['..', 'a/../b', 'a//b', './a', 'a\nb', 'a\0'])('%j is no folder', (path) => {
  expect(newProject.safeParse({ name: 'x', folder: path }).success).toBe(false)
})

test.each([
  ['/workspace/a/b/', 'a/b'],
  ['workspace', ''],
  [' a b ', 'a b'],
  ['workspaces/x', 'workspaces/x'],
])('the folder %j is %j', (said, folder) =>
  expect(newProject.parse({ name: 'x', folder: said }).folder).toBe(folder),
)
