/** Resume, several readers, a lost agent, a slow reader: nothing settled is lost, and nothing comes twice. */
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Tab, setUp, startHarness, waitFor } from '../support/harness.ts'
import type { Browser, Harness } from '../support/harness.ts'
import { seqs } from '../support/scripted-agent.ts'
import type { Turn } from '../support/scripted-agent.ts'

let harness: Harness
let ann: Browser
const tabs: Tab[] = []

const open = async (): Promise<Tab> => {
  const tab = await Tab.of(ann, harness.service.url)
  tabs.push(tab)
  return tab
}
const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1)

/** A prompt whose script the test continues step by step. */
async function running(tab: Tab): Promise<{ sessionId: string; turn: Turn; end: () => void }> {
  const begun = Promise.withResolvers<Turn>()
  const over = Promise.withResolvers<void>()
  harness.agent.script = async (turn) => {
    begun.resolve(turn)
    await over.promise
    return 'completed'
  }
  tab.send({ type: 'ai_chat', requestId: 'run', text: 'work' })
  const { sessionId } = await tab.get('ai_chat_accepted')
  return { sessionId, turn: await begun.promise, end: over.resolve }
}

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
})

afterEach(async () => {
  for (const tab of tabs.splice(0)) await tab.close()
  await harness.close()
})

test('a second tab gets what was, then what comes, each once and in order', async () => {
  const tab = await open()
  const { sessionId, turn, end } = await running(tab)
  await turn.say('one')
  const late = await open()
  late.send({ type: 'ai_chat_resume', sessionId, after: 0 })
  const caughtUp = await late.get('ai_chat_caught_up')
  expect(seqs(late.eventsOf(sessionId))).toEqual(upTo(caughtUp.seq))
  await turn.say('two')
  end()
  await late.get('ai_chat_done')
  await tab.get('ai_chat_done')
  const stored = JSON.parse(JSON.stringify(await harness.agent.store.log.read(sessionId))) as unknown
  expect(late.eventsOf(sessionId)).toEqual(stored)
  expect(tab.eventsOf(sessionId)).toEqual(stored)
})

test('a session that was refused is not asked for again after a reconnect', async () => {
  const tab = await open()
  const { sessionId, end } = await running(tab)
  end()
  await tab.get('ai_chat_done')
  tab.send({ type: 'ai_chat', requestId: 'r1', sessionId: 'nobodys', text: 'hello' })
  await tab.get('ai_chat_error')
  await harness.agent.drop()
  await harness.agent.listen()
  await tab.get('ai_chat_caught_up', (frame) => frame.sessionId === sessionId)
  tab.send({ type: 'ai_chat_resume', sessionId, after: 0 })
  await waitFor(() => harness.agent.received.includes(`load ${sessionId} 0`))
  expect(harness.agent.received).not.toContain('load nobodys 0')
})

test('the catch-up is complete before it is reported', async () => {
  const tab = await open()
  const { sessionId, turn, end } = await running(tab)
  for (let i = 0; i < 300; i++) await turn.say(`line ${i}`)
  end()
  await tab.get('ai_chat_done')
  const late = await open()
  late.send({ type: 'ai_chat_resume', sessionId, after: 100 })
  await late.get('ai_chat_caught_up')
  const before = late.frames.slice(
    0,
    late.frames.findIndex((frame) => frame.type === 'ai_chat_caught_up'),
  )
  const got = before.flatMap((frame) => (frame.type === 'ai_chat_event' ? [frame.event] : []))
  expect(seqs(got)).toEqual(upTo(303).slice(100))
})

test('events that come while two resumes of one session run are not lost', async () => {
  const tab = await open()
  const { sessionId, turn, end } = await running(tab)
  for (let i = 0; i < 50; i++) await turn.say(`line ${i}`)
  const late = await open()
  late.send({ type: 'ai_chat_resume', sessionId, after: 40 })
  late.send({ type: 'ai_chat_resume', sessionId, after: 10 })
  for (let i = 0; i < 20; i++) await turn.say(`more ${i}`)
  end()
  await late.get('ai_chat_done')
  await waitFor(() => late.frames.filter((frame) => frame.type === 'ai_chat_caught_up').length === 2)
  expect(new Set(seqs(late.eventsOf(sessionId)))).toEqual(new Set(upTo(73).slice(10)))
})

test('a tab that follows one session receives nothing of another', async () => {
  const tab = await open()
  const { sessionId, turn, end } = await running(tab)
  const other = await open()
  other.send({ type: 'ai_chat_resume', sessionId: 'nothing-there', after: 0 })
  await other.get('ai_chat_error')
  await turn.say('private to the first tab')
  end()
  await tab.get('ai_chat_done')
  expect(other.eventsOf(sessionId)).toEqual([])
})

test('when the agent is lost the tab stays, is notified, and continues where it was', async () => {
  const tab = await open()
  const { sessionId, turn, end } = await running(tab)
  await turn.say('before')
  await waitFor(() => seqs(tab.eventsOf(sessionId)).includes(3))
  await harness.agent.drop()
  await turn.say('meanwhile')
  const answers = tab.frames.length
  tab.send({ type: 'ai_chat', requestId: 'two', sessionId, text: 'hello?' })
  const refused = await tab.get('ai_chat_error', (frame) => frame.requestId === 'two')
  expect(refused.code).toBe('agent_unavailable')
  expect(tab.frames.length).toBeGreaterThan(answers)
  await harness.agent.listen()
  await tab.get('ai_chat_caught_up')
  await turn.say('after')
  end()
  await tab.get('ai_chat_done')
  expect(seqs(tab.eventsOf(sessionId))).toEqual(upTo(6))
  expect(harness.agent.received.filter((line) => line.startsWith('load'))).toEqual([`load ${sessionId} 3`])
  expect(tab.closed).toBeUndefined()
})

test('a resume that the agent could not answer is answered when it is back', async () => {
  const tab = await open()
  const { sessionId, end } = await running(tab)
  end()
  await tab.get('ai_chat_done')
  await harness.agent.drop()
  const late = await open()
  late.send({ type: 'ai_chat_resume', sessionId, after: 2 })
  expect(await late.get('ai_chat_error')).toMatchObject({ code: 'agent_unavailable', sessionId })
  await harness.agent.listen()
  await late.get('ai_chat_caught_up')
  expect(seqs(late.eventsOf(sessionId))).toEqual([3])
})

test('a reader that does not read is dropped, delays no other, and gets the rest by resuming', async () => {
  await harness.restart({ slowReaderBytes: 256 * 1024 })
  await waitFor(async () => (await fetch(`${harness.service.url}/readyz`)).status === 200)
  const tab = await open()
  const { sessionId, turn, end } = await running(tab)
  const slow = await open()
  slow.send({ type: 'ai_chat_resume', sessionId, after: 0 })
  await slow.get('ai_chat_caught_up')
  slow.socket.pause()
  // More than the kernel takes for it. The other tab reads along, so all of it was sent when it has the last.
  const text = 'x'.repeat(200_000)
  for (let i = 0; i < 100; i++) {
    await turn.say(text)
    await waitFor(() => seqs(tab.eventsOf(sessionId)).includes(3 + i))
    // At once: why it was dropped waits a few seconds for it.
    if (harness.logLines.some((line) => line.includes('dropped a slow reader'))) slow.socket.resume()
  }
  end()
  await tab.get('ai_chat_done')
  expect(harness.logLines.join()).toContain('dropped a slow reader')
  await waitFor(() => slow.closed !== undefined)
  expect(slow.closed?.code).toBe(4008)
  const have = seqs(slow.eventsOf(sessionId))
  expect(have).toEqual(upTo(have.length))
  const back = await open()
  back.send({ type: 'ai_chat_resume', sessionId, after: have.length })
  await waitFor(
    () => back.closed !== undefined || back.frames.some((frame) => frame.type === 'ai_chat_event'),
  )
  expect(seqs(back.eventsOf(sessionId))[0]).toBe(have.length + 1)
})

test('a closed tab gives its connection to the agent back', async () => {
  const tab = await open()
  const { end } = await running(tab)
  expect(harness.agent.connections).toBe(2)
  await tab.close()
  await waitFor(() => harness.agent.connections === 1)
  end()
})

test('an event that is no event is dropped; of one with an unreadable part the rest arrives', async () => {
  const tab = await open()
  const { sessionId, turn, end } = await running(tab)
  harness.agent.sendRaw('session/update', { sessionId, update: { sessionUpdate: 'nonsense' } })
  harness.agent.sendRaw('session/update', { nothing: true })
  harness.agent.sendRaw('_else/where', { x: 1 })
  const event = { type: 'line_waited', place: 1, of: 2, why: 'places', limit: null }
  const _meta = { sandlot: { v: 1, at: 1, live: true, event } }
  harness.agent.sendRaw('session/update', {
    sessionId,
    update: { sessionUpdate: 'session_info_update', _meta },
  })
  await turn.say('fine')
  end()
  await tab.get('ai_chat_done')
  expect(seqs(tab.eventsOf(sessionId))).toEqual(upTo(4))
  expect(harness.logLines.join()).toContain('an unknown event')
  const notices = tab.eventsOf(sessionId).map((one) => sandlotEventOf(one))
  expect(notices).toContainEqual({ type: 'line_waited', place: 1, of: 2, why: 'places' })
})

test('stopping the service closes sockets with 1001 and ends no prompt', async () => {
  const tab = await open()
  const { sessionId, end } = await running(tab)
  await harness.restart()
  await waitFor(() => tab.closed !== undefined)
  expect(tab.closed?.code).toBe(1001)
  end()
  const back = await open()
  await waitFor(async () => (await fetch(`${harness.service.url}/readyz`)).status === 200)
  back.send({ type: 'ai_chat_resume', sessionId, after: 0 })
  await back.get('ai_chat_done')
})
