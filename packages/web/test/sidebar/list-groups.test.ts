import type { SessionSummary } from '@sandlot/shared/chat/frames'
import { expect, test } from 'vitest'
import { listGroups } from '../../src/sidebar/list-groups.ts'

const NOW = new Date(2026, 10, 27, 12).getTime()
const line = (sessionId: string, more: Partial<SessionSummary> = {}): SessionSummary => ({
  sessionId,
  title: sessionId,
  updatedAt: NOW,
  mode: 'manual',
  running: false,
  waiting: 0,
  ...more,
})
const project = (id: string) => ({ id, name: id, folder: '', instructions: '', mode: null, model: null })

test('a chat stands in one place: with the pinned, else in its project, else by its age', () => {
  const groups = listGroups(
    [
      line('today'),
      line('pinned', { pinned: true, project: 'p' }),
      line('kept', { project: 'p' }),
      line('of no project that there is', { project: 'gone' }),
      line('yesterday', { updatedAt: NOW - 86_400_000 }),
    ],
    [project('p'), project('empty')],
    NOW,
  )
  expect(groups.map(({ title, sessions }) => [title, sessions.map(({ sessionId }) => sessionId)])).toEqual([
    ['Pinned', ['pinned']],
    ['p', ['kept']],
    ['empty', []],
    ['Today', ['today', 'of no project that there is']],
    ['Yesterday', ['yesterday']],
  ])
})
