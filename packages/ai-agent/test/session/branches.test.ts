/** Resent messages in a session: another branch of its one log. */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { metaOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { AgentBench, ask, happened, heldTool, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const promptIds = (log: readonly SessionEvent[]): string[] =>
  log.flatMap((event) =>
    metaOf(event).event?.type === 'prompt_started' ? [metaOf(event).promptId ?? ''] : [],
  )

test('a message said anew follows what the first one followed, and the model reads that branch alone', async () => {
  await using bench = await AgentBench.start([
    textAnswer('one'),
    textAnswer('two'),
    textAnswer('other two'),
    textAnswer('three'),
    textAnswer('back'),
    textAnswer('anew'),
  ])
  const core = await bench.core()
  const session = await newSession(core)
  await ask(session, '1')
  await ask(session, '2')
  const before = session.log.length
  const [first, second] = promptIds(session.log)
  const told = () =>
    bench.provider.requests
      .at(-1)
      ?.body.messages.slice(1)
      .map(({ content }) => content)

  await (
    await session.prompt('2, but other', { follows: first })
  ).done
  expect(told()).toEqual(['1', 'one', '2, but other'])
  // Nothing is removed, and the next prompt follows the newest.
  expect(session.log.length).toBeGreaterThan(before)
  await ask(session, '3')
  expect(told()).toEqual(['1', 'one', '2, but other', 'other two', '3'])
  expect(happened(session.log, 'prompt_started').map(({ follows }) => follows)).toEqual([
    undefined,
    undefined,
    first,
    undefined,
  ])

  await (
    await session.prompt('back to 2', { follows: second })
  ).done
  expect(told()).toEqual(['1', 'one', '2', 'two', 'back to 2'])
  await (
    await session.prompt('1, but other', { follows: null })
  ).done
  expect(told()).toEqual(['1, but other'])

  // The same after a restart, and in a new chat.
  await core.leave()
  const again = await bench.core()
  const loaded = await again.manager.get('u_ada', session.id)
  const [, , third] = promptIds(loaded.log)
  const fork = await again.manager.fork('u_ada', session.id, { promptId: third ?? '', where: 'after' })
  expect(promptIds(fork.log)).toEqual([first, third])
})

test('another branch is begun when what runs has ended, and only after a message that is there', async () => {
  const held = heldTool('hold', true)
  await using bench = await AgentBench.start([
    textAnswer('one'),
    toolCalls([{ id: 'c', name: 'hold', args: { key: 'k' } }]),
    textAnswer('two'),
  ])
  const core = await bench.core({ tools: [held.tool] })
  const session = await newSession(core)
  await ask(session, '1')
  const [first] = promptIds(session.log)
  const running = await session.prompt('2')
  await held.whenBegun(1)
  await expect(session.prompt('2, but other', { follows: first })).rejects.toMatchObject({ code: 'busy' })
  await expect(session.prompt('x', { follows: 'p_none' })).rejects.toMatchObject({ code: 'not_found' })
  held.release('k')
  await running.done
})

test('who takes part in the chat of another says anew only what they have said', async () => {
  await using bench = await AgentBench.start([textAnswer('one'), textAnswer('two'), textAnswer('three')])
  const core = await bench.core()
  const session = await newSession(core)
  await ask(session, '1')
  const [first = ''] = promptIds(session.log)
  const bob = {
    author: { id: 'u_bob', name: 'Bob' },
    onBehalf: { modeCeiling: 'manual', chargedTo: 'u_bob' },
  } as const
  await expect(session.prompt('1, but other', { ...bob, follows: null })).rejects.toMatchObject({
    code: 'forbidden',
  })
  await (
    await session.prompt('2', { ...bob, follows: first })
  ).done
  await (
    await session.prompt('2, but other', { ...bob, follows: first })
  ).done
  expect(happened(session.log, 'prompt_started').map(({ follows }) => follows)).toEqual([
    undefined,
    undefined,
    first,
  ])
})
