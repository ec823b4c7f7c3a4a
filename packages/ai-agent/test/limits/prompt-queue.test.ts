/** The prompt queue in a real session manager: slots, a model that refuses, Stop, a restart. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sandlotEventOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { queueText } from '@sandlot/shared/chat/queue-wait'
import { expect, test } from 'vitest'
import { PromptQueue } from '../../src/limits/prompt-queue.ts'
import type { Session } from '../../src/session/session.ts'
import { AgentBench, type Core, heldTool, whenEvent } from '../support/agent-fixture.ts'
import { errorAnswer, type Scripted, textAnswer, toolCalls } from '../support/fake-provider.ts'

interface WithQueue {
  core: Core
  queue: PromptQueue
  leave: () => Promise<void>
}

/** A core whose prompts take turns for so many slots. */
async function withQueue(
  bench: AgentBench,
  places?: number,
  tool = heldTool('held', true),
): Promise<WithQueue> {
  const leaving = new AbortController()
  let queue: PromptQueue | undefined
  const core = await bench.core({
    tools: [tool.tool],
    wrap: (parts) => {
      queue = new PromptQueue({
        slots: places,
        rows: parts.store.promptQueue,
        leaving: leaving.signal,
        log: parts.log,
      })
      return {
        ...parts,
        promptQueue: queue,
        retry: { attempts: 4, baseMs: 1, capMs: 4, longestWaitMs: 5_000 },
      }
    },
  })
  if (queue === undefined) throw new Error('no queue was made')
  const made = queue
  return {
    core,
    queue,
    leave: async () => {
      leaving.abort()
      await made.settled()
      await core.leave()
    },
  }
}

const sessionOf = (core: Core, userId: string, mode: 'yolo' | 'manual' = 'yolo'): Promise<Session> =>
  core.manager.create({ userId, cwd: '/workspace', mode })

const queuedAt = (place: number) => (event: SessionEvent) => {
  const happened = sandlotEventOf(event)
  return happened?.type === 'line_waited' && happened.place === place
}

/** An answer that waits until it is let go. */
function heldAnswer(words: string): { answer: Scripted; asked: Promise<void>; release: () => void } {
  const gate = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const answer: Scripted = async () => {
    asked.resolve()
    await gate.promise
    return textAnswer(words)
  }
  return { answer, asked: asked.promise, release: () => gate.resolve() }
}

const lastWords = (bench: AgentBench): unknown[] =>
  bench.provider.requests.map(({ body }) => body.messages.findLast(({ role }) => role === 'user')?.content)

test('who waits sees its place and why; Stop leaves the line; the next moves up', async () => {
  const first = heldAnswer('First.')
  await using bench = await AgentBench.start([first.answer, textAnswer('Third.')])
  const { core, queue } = await withQueue(bench, 1)
  const [a, b, c] = [
    await sessionOf(core, 'ada'),
    await sessionOf(core, 'bob'),
    await sessionOf(core, 'cleo'),
  ]
  const one = await a.prompt('one')
  await first.asked
  const two = await b.prompt('two')
  const event = await whenEvent(b, queuedAt(1))
  expect(sandlotEventOf(event)).toMatchObject({ place: 1, of: 1, why: 'places', limit: 1 })
  const three = await c.prompt('three')
  await whenEvent(c, queuedAt(2))
  // Later readers see it too.
  expect(b.subscribe(0).catchUp.some(queuedAt(1))).toBe(true)
  expect(queue.view().map(({ wait }) => queueText(wait))).toEqual([
    '1st in line: the one place is taken',
    '2nd in line: the one place is taken',
  ])
  await b.cancel()
  expect(await two.done).toMatchObject({
    reason: 'cancelled',
    text: 'Stopped while it waited in line: nothing of it was begun.',
  })
  await whenEvent(c, queuedAt(1))
  first.release()
  expect(await one.done).toMatchObject({ reason: 'completed' })
  expect(await three.done).toMatchObject({ reason: 'completed' })
  expect(lastWords(bench)).toEqual(['one', 'three'])
  await queue.settled()
  expect(await core.store.promptQueue.all()).toEqual([])
})

test('a prompt that waits for a person gives its place to others', async () => {
  const tool = heldTool('held', false)
  await using bench = await AgentBench.start([
    toolCalls([{ id: 'c1', name: 'held', args: { key: 'k' } }]),
    textAnswer('Meanwhile.'),
    textAnswer('Done.'),
  ])
  const { core } = await withQueue(bench, 1, tool)
  const [a, b] = [await sessionOf(core, 'ada', 'manual'), await sessionOf(core, 'bob')]
  const one = await a.prompt('one')
  await whenEvent(a, (event) => sandlotEventOf(event)?.type === 'approval_asked')
  const two = await b.prompt('two')
  expect(await two.done).toMatchObject({ reason: 'completed' })
  tool.release('k')
  const [approval] = await a.waitingApprovals()
  await a.answer('c1', approval?.options.find(({ kind }) => kind === 'allow_once')?.optionId ?? '')
  expect(await one.done).toMatchObject({ reason: 'completed' })
})

test('a model that refuses gets one request after its rest, and then everybody’s by turns', async () => {
  const refusal = errorAnswer(429, { error: { message: 'slow down' } }, { 'retry-after-ms': '150' })
  await using bench = await AgentBench.start([
    refusal,
    ...['1', '2', '3', '4'].map((words) => textAnswer(words)),
  ])
  const { core } = await withQueue(bench)
  const sessions = await Promise.all(['ada', 'bob', 'cleo', 'dan'].map((name) => sessionOf(core, name)))
  const [a, ...others] = sessions
  if (a === undefined) throw new Error('no session')
  const one = await a.prompt('ada')
  await whenEvent(a, (event) => sandlotEventOf(event)?.type === 'model_waited')
  const at = performance.now()
  const rest = await Promise.all(others.map((session) => session.prompt(session.userId)))
  const [b] = others
  if (b === undefined) throw new Error('no session')
  const event = sandlotEventOf(await whenEvent(b, queuedAt(2)))
  expect(event).toMatchObject({ why: 'model', model: 'fake' })
  expect(bench.provider.requests).toHaveLength(1)
  for (const { done } of [one, ...rest]) expect(await done).toMatchObject({ reason: 'completed' })
  expect(performance.now() - at).toBeGreaterThan(100)
  // Not one more was refused: nobody tried on their own.
  expect(lastWords(bench)).toEqual(['ada', 'ada', 'bob', 'cleo', 'dan'])
})

test('a restart keeps the line: what ran goes on, then what waited, by turns', async () => {
  const first = heldAnswer('never')
  await using bench = await AgentBench.start([first.answer])
  const before = await withQueue(bench, 1)
  const names = ['ada', 'ada', 'ada', 'bob', 'cleo', 'bob']
  for (const [place, name] of names.entries()) {
    const session = await sessionOf(before.core, name)
    await session.prompt(`${name} ${place}`)
    if (place === 0) await first.asked
    else await whenEvent(session, (event) => sandlotEventOf(event)?.type === 'line_waited')
  }
  const order = before.queue.view().map(({ promptId }) => promptId)
  await before.leave()
  first.release()

  const asked = bench.provider.requests.length
  const gates = names.map((_, place) => heldAnswer(`answer ${place}`))
  bench.provider.add(...gates.map(({ answer }) => answer))
  const after = await withQueue(bench, 1)
  const unfinished = await after.core.store.sessions.unfinished()
  await after.queue.restore(
    unfinished.map(({ runningPromptId, userId }) => ({ promptId: runningPromptId ?? '', person: userId })),
  )
  expect(after.queue.view().map(({ promptId }) => promptId)).toEqual(order)
  expect(await after.core.manager.resumeUnfinished()).toBe(6)
  for (const gate of gates) {
    await gate.asked
    gate.release()
  }
  while ((await after.core.store.sessions.unfinished()).length > 0) await sleep(5)
  expect(lastWords(bench).slice(asked)).toEqual(['ada 0', 'bob 3', 'cleo 4', 'ada 1', 'bob 5', 'ada 2'])
  await after.queue.settled()
  expect(await after.core.store.promptQueue.all()).toEqual([])
})

test('an administrator sees what runs and what waits, and stops it; no text of it is shown', async () => {
  const first = heldAnswer('First.')
  await using bench = await AgentBench.start([first.answer])
  const { core } = await withQueue(bench, 1)
  const [a, b] = [await sessionOf(core, 'ada'), await sessionOf(core, 'bob')]
  const one = await a.prompt('a secret plan')
  await first.asked
  const two = await b.prompt('another')
  await whenEvent(b, queuedAt(1))
  const seen = await core.manager.runningPrompts('root')
  expect(seen).toMatchObject([
    { person: 'ada', doing: 'model', tools: [], model: 'fake' },
    { person: 'bob', doing: 'line', line: { place: 1, why: 'places' } },
  ])
  expect(JSON.stringify(seen)).not.toMatch(/secret|s_/)
  expect(await core.manager.runningPrompts('ada')).toMatchObject([{ sessionId: a.id }, { person: 'bob' }])
  for (const { promptId } of [two, one]) await core.manager.stopPrompt(promptId, { id: 'root', name: 'Root' })
  expect(await one.done).toMatchObject({ reason: 'cancelled', text: 'An administrator stopped this.' })
  expect(await two.done).toMatchObject({ reason: 'cancelled', text: 'An administrator stopped this.' })
  await expect(core.manager.stopPrompt(one.promptId, { id: 'root', name: 'Root' })).rejects.toThrow(
    'has ended',
  )
  first.release()
})
