import { setTimeout as sleep } from 'node:timers/promises'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { LoadedSessions } from '../../src/session/loaded.ts'
import type { Session } from '../../src/session/session.ts'
import { AgentBench, type FlatParts, sessionParts } from '../support/agent-fixture.ts'
import { collected } from '../support/collect-garbage.ts'
import { textAnswer } from '../support/fake-provider.ts'

const said = (text: string): SessionEvent => ({
  sessionUpdate: 'agent_message_chunk',
  messageId: 'm',
  content: { type: 'text', text },
  _meta: makeMeta({}, 1),
})

/** Later than one round of the timer with a grace of 0. */
const nextRound = (): Promise<void> => sleep(5)

async function loadedIn(bench: AgentBench, limits: ConstructorParameters<typeof LoadedSessions>[2]) {
  let parts: FlatParts | undefined
  const core = await bench.core({ wrap: (made) => (parts = made) })
  if (parts === undefined) throw new Error('there are no parts')
  const loaded = new LoadedSessions(
    { ...sessionParts(parts), ending: new AbortController().signal },
    () => undefined,
    limits,
  )
  return {
    loaded,
    async load(id: string): Promise<Session> {
      const row = { id, userId: 'u_ada', cwd: '/workspace', mode: 'yolo', at: 1 } as const
      return loaded.loadAndResume(await core.store.sessions.create(row, [said('x'.repeat(100_000))]))
    },
    ids: async () => (await loaded.all()).map(({ id }) => id),
    [Symbol.dispose]: () => loaded.clear(),
  }
}

test('above the limit of bytes the least recently used idle session leaves; one that is read stays', async () => {
  await using bench = await AgentBench.start([])
  using sessions = await loadedIn(bench, { bytes: 250_000, graceMs: 0, idleMs: Infinity })
  const { loaded, load, ids } = sessions

  await load('read')
  const read = await loaded.find('read')
  read?.subscribe(0)
  await load('first')
  await nextRound()
  expect((await ids()).toSorted()).toEqual(['first', 'read'])
  await load('second')
  while ((await ids()).includes('first')) await nextRound()
  expect((await ids()).toSorted()).toEqual(['read', 'second'])
  expect(await loaded.find('read')).toBe(read)
  expect((await loaded.find('first'))?.log).toHaveLength(1)
})

test('a closed chat leaves memory although no other is loaded, and nothing else holds it', async () => {
  await using bench = await AgentBench.start([textAnswer('Hello')])
  using sessions = await loadedIn(bench, { bytes: Infinity, graceMs: 0, idleMs: 0 })
  const { load, ids } = sessions
  // In a function of its own, which leaves no reference on the stack.
  const openAndClose = async (): Promise<WeakRef<Session>> => {
    const session = await load('closed')
    const reader = session.subscribe(0, false, { id: 'u_ada' })
    await session.prompt('Hello')
    await session.settled()
    await nextRound()
    expect(await ids()).toEqual(['closed'])
    reader.close()
    return new WeakRef(session)
  }
  const closed = await openAndClose()
  while ((await ids()).length > 0) await nextRound()
  await collected(closed)
})
