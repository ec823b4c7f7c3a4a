import { setImmediate as nextTurn } from 'node:timers/promises'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { LoadedSessions } from '../../src/session/loaded.ts'
import type { SessionParts } from '../../src/session/parts.ts'
import { AgentBench } from '../support/agent-fixture.ts'

const said = (text: string): SessionEvent => ({
  sessionUpdate: 'agent_message_chunk',
  messageId: 'm',
  content: { type: 'text', text },
  _meta: makeMeta({}, 1),
})

test('idle sessions are forgotten by what their logs take, the least recently used first; one that is read stays', async () => {
  await using bench = await AgentBench.start([])
  let parts: SessionParts | undefined
  const core = await bench.core({ wrap: (made) => (parts = made) })
  if (parts === undefined) throw new Error('there are no parts')
  const loaded = new LoadedSessions(parts, () => undefined, { sessions: 200, bytes: 250_000, ms: 0 })
  const load = async (id: string): Promise<void> => {
    const row = { id, userId: 'u_ada', cwd: '/workspace', mode: 'yolo', at: 1 } as const
    await loaded.loadAndResume(await core.store.createSession(row, [said('x'.repeat(100_000))]))
  }
  const ids = async (): Promise<string[]> => (await loaded.all()).map(({ id }) => id)

  await load('read')
  const read = await loaded.find('read')
  read?.subscribe(0)
  await load('first')
  expect(await ids()).toEqual(['read', 'first'])
  await load('second')
  while ((await ids()).includes('first')) await nextTurn()
  expect(await ids()).toEqual(['read', 'second'])
  expect(await loaded.find('read')).toBe(read)
  expect((await loaded.find('first'))?.log).toHaveLength(1)
})
