/** Work that a Stop must not wait for, and messages right after one. */
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { AgentBench, ask, happened, newSession, whenEvent, whenIdle } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

/** Reports that it has started something that runs without it. */
const starts = defineTool({
  name: 'starts',
  description: 'Starts something.',
  kind: 'execute',
  input: z.strictObject({}),
  readOnly: false,
  title: () => 'Start',
  // oxlint-disable-next-line require-yield
  async *execute() {
    const background = { id: 'bg1', command: 'a'.repeat(32), boot: 'boot', line: 'sleep 9' }
    return { status: 'completed', forModel: 'Started.', data: { background } }
  },
})

test('a sandbox that does not say how its background commands stand holds up no Stop', async () => {
  await using bench = await AgentBench.start([toolCalls([{ id: 'c1', name: 'starts', args: {} }])])
  const looked = Promise.withResolvers<void>()
  const pollJobs = (): Promise<never> => {
    looked.resolve()
    return new Promise(() => undefined)
  }
  const core = await bench.core({ tools: [starts], parts: { pollJobs } })
  const session = await newSession(core)
  const { done } = await session.prompt('go')
  await looked.promise
  await session.cancel()
  expect(await done).toMatchObject({ reason: 'cancelled' })
  expect(core.warnings).toEqual([])
}, 10_000)

/** Ends when it is released, whatever signals it receives. */
function deafTool(): { tool: Tool; begun: Promise<void>; release: () => void } {
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const tool = defineTool({
    name: 'deaf',
    description: 'Does not hear.',
    kind: 'other',
    input: z.strictObject({}),
    readOnly: true,
    title: () => 'Deaf',
    // oxlint-disable-next-line require-yield
    async *execute() {
      begun.resolve()
      await gate.promise
      return { status: 'completed', forModel: 'Done.' }
    },
  })
  return { tool, begun: begun.promise, release: () => gate.resolve() }
}

const deafCall = toolCalls([{ id: 'c1', name: 'deaf', args: {} }])
const asked = (bench: AgentBench): unknown[] =>
  (bench.provider.requests.at(-1)?.body.messages ?? [])
    .filter(({ role }) => role === 'user')
    .map(({ content }) => content)

test('a message behind a Stop is answered when the stopped prompt has ended, with what waited before it', async () => {
  const deaf = deafTool()
  await using bench = await AgentBench.start([deafCall, textAnswer('Here I am.')])
  const session = await newSession(await bench.core({ tools: [deaf.tool] }))
  const first = await session.prompt('1')
  await deaf.begun
  const before = await session.prompt('2', { whenBusy: 'queue' })
  await session.cancel()
  const behind = await session.prompt('3')
  deaf.release()
  expect(await first.done).toMatchObject({ reason: 'cancelled' })
  expect(await behind.done).toMatchObject({ promptId: behind.promptId, reason: 'completed' })
  // It went with the message that was sent later.
  expect(await before.done).toMatchObject({ promptId: behind.promptId, reason: 'completed' })
  expect(asked(bench)).toEqual(['1', '2', '3'])
  expect(happened(session.log, 'prompt_ended').map(({ reason }) => reason)).toEqual([
    'cancelled',
    'completed',
  ])
})

test('a second Stop is for what was sent behind the first', async () => {
  const deaf = deafTool()
  await using bench = await AgentBench.start([deafCall, textAnswer('Here I am.')])
  const session = await newSession(await bench.core({ tools: [deaf.tool] }))
  const first = await session.prompt('1')
  await deaf.begun
  await session.cancel()
  const behind = await session.prompt('2')
  await session.cancel()
  deaf.release()
  await first.done
  expect(await behind.done).toMatchObject({ reason: 'cancelled' })
  expect(session.running).toBe(false)
  await ask(session, '3')
  expect(asked(bench)).toEqual(['1', '2', '3'])
})

test('a message behind a Stop is answered also by the process that comes after', async () => {
  const deaf = deafTool()
  await using bench = await AgentBench.start([deafCall, textAnswer('Here I am.')])
  const core = await bench.core({ tools: [deaf.tool] })
  const session = await newSession(core)
  await session.prompt('1')
  await deaf.begun
  await session.cancel()
  await session.prompt('2')
  await core.leave()
  const restarted = await bench.core({ tools: [deaf.tool] })
  await restarted.manager.resumeUnfinished()
  const loaded = await restarted.manager.get('u_ada', session.id)
  await whenEvent(loaded, (event) => event.sessionUpdate === 'agent_message_chunk')
  await whenIdle(loaded)
  expect(happened(loaded.log, 'prompt_ended').map(({ reason }) => reason)).toEqual(['cancelled', 'completed'])
  expect(asked(bench)).toEqual(['1', '2'])
})

test('an end that cannot be stored keeps a shutdown from waiting for no other', async () => {
  const deaf = deafTool()
  await using bench = await AgentBench.start([deafCall, { steps: [], after: 'hang' }])
  const core = await bench.core({ tools: [deaf.tool] })
  const sound = await newSession(core)
  await sound.prompt('1')
  await deaf.begun
  const broken = await newSession(core)
  const { done } = await broken.prompt('2')
  const { append } = core.store.log
  core.store.log.append = (id, events, effects, epoch) =>
    id === broken.id ? Promise.reject(new Error('the disk is full')) : append(id, events, effects, epoch)
  const interrupted = core.manager.interruptAll()
  await expect(done).rejects.toThrow('the disk is full')
  deaf.release()
  await expect(interrupted).rejects.toThrow('the disk is full')
  expect(sound.running).toBe(false)
  expect(happened(sound.log, 'prompt_ended')).toMatchObject([{ reason: 'interrupted' }])
})

test('who comes to a session that is being deleted hears so, and does not wait for events that never come', async () => {
  await using bench = await AgentBench.start([])
  const session = await newSession(await bench.core())
  await session.endForGood()
  const { live } = session.subscribe(0)
  await expect(live[Symbol.asyncIterator]().next()).rejects.toMatchObject({ reason: 'deleted' })
}, 10_000)
