/**
 * Two agents on one store. The agent's lock normally prevents that; these tests are without it, and show that the number
 * of the session's owner holds alone. (Of the store there is one: SQLite in one process would wait for itself.)
 */
import { expect, test } from 'vitest'
import { AgentBench, happened, heldTool, newSession, outcomes, whenIdle } from '../support/agent-fixture.ts'
import { deltaChunk, errorAnswer, sse, textAnswer, toolCalls } from '../support/fake-provider.ts'

test('the older owner stops at its next write, asks the model no more, and ends no command of the newer one', async () => {
  const slow = heldTool('slow', true)
  await using bench = await AgentBench.start([
    toolCalls([{ id: 'a', name: 'slow', args: { key: 'k' } }]),
    textAnswer('Only once.'),
  ])
  const older = await bench.core({ tools: [slow.tool] })
  const session = await newSession(older)
  const { done } = await session.prompt('go')
  const heard = expect(done).rejects.toMatchObject({ code: 'not_owner' })
  await slow.whenBegun(1)

  const newer = await bench.core({ tools: [slow.tool], parts: { store: older.store } })
  expect(await newer.manager.resumeUnfinished()).toBe(1)
  await slow.whenBegun(2)
  slow.release('k')
  const taken = await newer.manager.get('u_ada', session.id)
  await whenIdle(taken)
  await heard
  expect(session.lost).toBe(true)
  expect(session.running).toBe(false)

  const log = await older.store.log.read(session.id)
  expect(taken.log).toEqual(log)
  expect(outcomes(log)).toEqual({ a: ['completed'] })
  expect(happened(log, 'prompt_ended')).toMatchObject([{ reason: 'completed' }])
  expect(bench.provider.requests).toHaveLength(2)
})

/** While the older agent waits for its model, a newer one takes its prompt over and ends it. `heard`: the older one knows. */
async function takenOver(bench: AgentBench) {
  const older = await bench.core()
  const session = await newSession(older)
  const { done } = await session.prompt('go')
  const heard = expect(done).rejects.toMatchObject({ code: 'not_owner' })
  await expect.poll(() => bench.provider.requests.length).toBe(1)
  const newer = await bench.core({ parts: { store: older.store } })
  await newer.manager.resumeUnfinished()
  const taken = await newer.manager.get('u_ada', session.id)
  await whenIdle(taken)
  return { store: older.store, taken, heard }
}

test('the older owner’s answer that is on its way is not stored', async () => {
  const gate = Promise.withResolvers<void>()
  await using bench = await AgentBench.start([
    async () => {
      await gate.promise
      return { steps: [sse(deltaChunk({ content: 'Old' }, 'stop')), sse('[DONE]')] }
    },
    textAnswer('New'),
  ])
  const { store, taken, heard } = await takenOver(bench)
  gate.resolve()
  await heard
  const said = taken.log.filter((event) => event.sessionUpdate === 'agent_message_chunk')
  expect(said).toMatchObject([{ content: { text: 'New' } }])
  expect(await store.log.read(taken.id)).toEqual(taken.log)
})

test('the older owner whose request failed does not ask again', async () => {
  const gate = Promise.withResolvers<void>()
  await using bench = await AgentBench.start([
    async () => {
      await gate.promise
      return errorAnswer(503, { error: { message: 'overloaded' } })
    },
    textAnswer('New'),
  ])
  const { heard } = await takenOver(bench)
  gate.resolve()
  await heard
  expect(bench.provider.requests).toHaveLength(2)
})

test('who looks at a session that was taken away takes it back, whole', async () => {
  await using bench = await AgentBench.start([textAnswer('1'), textAnswer('2'), textAnswer('3')])
  const one = await bench.core()
  const two = await bench.core({ parts: { store: one.store } })
  const { id } = await newSession(one)
  const ask = async (core: typeof one, text: string): Promise<void> => {
    await (
      await core.manager.prompt('u_ada', id, text, { requestId: text })
    ).done
  }
  await ask(one, 'a')
  await ask(two, 'b')
  // The object that `one` has loaded does not know yet that it is the older one; its write finds out.
  await ask(one, 'c')
  const log = await one.store.log.read(id)
  expect(happened(log, 'prompt_ended')).toHaveLength(3)
  expect(bench.provider.requests[2]?.body.messages.filter(({ role }) => role === 'user')).toMatchObject([
    { content: 'a' },
    { content: 'b' },
    { content: 'c' },
  ])
})
