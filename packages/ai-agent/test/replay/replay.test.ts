/** A recorded session makes its requests again, byte for byte, from its log alone. */
import { join } from 'node:path'
import { type SessionEvent, isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { makeScrubber } from '@sandlot/shared/base/scrub'
import { openSessionReader } from '@sandlot/storage/store/open'
import { describe, expect, test } from 'vitest'
import { readRecording, record, replay } from '../../src/replay/replay.ts'
import { AgentBench, ask, heldTool, newSession } from '../support/agent-fixture.ts'
import { deltaChunk, sse, textAnswer, toolCalls } from '../support/fake-provider.ts'

const SECRET = 'sk-abcdefghijklmnopqrstuvwx'

/** Two prompts: calls, a steered message, a stream that breaks, reasoning. */
async function recorded(
  bench: AgentBench,
  scrub?: (text: string) => string,
): Promise<{ recording: ReturnType<typeof readRecording>; bodies: string[] }> {
  const slow = heldTool('slow', true)
  const core = await bench.core({ tools: [slow.tool] })
  const session = await newSession(core)
  const { done } = await session.prompt(`my key is ${SECRET}`)
  await slow.whenBegun(1)
  await session.prompt('in blue, please')
  slow.release('a')
  await done
  await ask(session, 'and now?')
  await using reader = Object.assign(await openSessionReader(join(bench.folder, 'sessions.db')), {
    async [Symbol.asyncDispose]() {
      await reader.close()
    },
  })
  const recording = await record(reader, session.id, scrub)
  return { recording, bodies: bench.provider.requests.map(({ raw }) => raw) }
}

const script = () => [
  toolCalls([{ id: 'c', name: 'slow', args: { key: 'a' } }], { text: 'Wait.', reasoning: 'Slowly.' }),
  { steps: [sse(deltaChunk({ content: 'Half' }))], after: 'destroy' as const },
  textAnswer('It is blue.'),
  textAnswer('Now it is.'),
]

describe('a replay', () => {
  test('gives the bytes that the provider got, without a model', async () => {
    await using bench = await AgentBench.start(script())
    const { recording, bodies } = await recorded(bench)
    const again = replay(readRecording(JSON.stringify(recording)))
    expect(again.mismatch).toBeUndefined()
    // The broken attempt was asked again with the same bytes; the mark is that of the answer.
    expect(new Set(bodies).size).toBe(3)
    expect(again.bodies).toEqual([...new Set(bodies)])
    expect(recording.checked).toEqual({ requests: 3 })
  })

  test('a mark has only what is new since the one before', async () => {
    await using bench = await AgentBench.start(script())
    const { recording } = await recorded(bench)
    const marks = recording.events.flatMap((event) => metaOf(event).request ?? [])
    expect(marks).toHaveLength(3)
    let told = 0
    for (const { from, digests } of marks) {
      expect(from).toBe(told)
      told += digests.length
    }
    expect(told).toBe(JSON.parse(bench.provider.requests.at(-1)?.raw ?? '').messages.length)
  })

  test('names the first message that differs', async () => {
    await using bench = await AgentBench.start(script())
    const { recording } = await recorded(bench)
    const events = recording.events.map((event): SessionEvent =>
      isOutcome(event) ? { ...event, rawOutput: { forModel: 'done b' } } : event,
    )
    const { mismatch, requests } = replay({ ...recording, events })
    expect(requests).toBe(2)
    expect(mismatch).toMatchObject({ turn: 2, message: 3 })
    expect(mismatch?.text).toContain('message 4 is not the recorded one: tool "done b"')
  })

  test('names a message that is missing, and a frame that is', async () => {
    await using bench = await AgentBench.start(script())
    const { recording } = await recorded(bench)
    const last = recording.events.findLast((event) => event.sessionUpdate === 'user_message_chunk')
    const without = recording.events.filter((event) => event !== last)
    expect(replay({ ...recording, events: without }).mismatch?.text).toMatch(
      /message 7 is not the recorded one: user/,
    )
    expect(replay({ ...recording, frames: {} }).mismatch?.text).toContain('system prompt and the tools')
    const frames = Object.fromEntries(
      Object.entries(recording.frames).map(([hash, frame]) => [hash, { ...(frame as object), maxTokens: 7 }]),
    )
    expect(replay({ ...recording, frames }).mismatch?.text).toContain('the rest of the body is not')
  })

  test('a recording for a bug report has no secrets, and replays all the same', async () => {
    await using bench = await AgentBench.start(script())
    const { recording } = await recorded(bench, makeScrubber([]))
    expect(JSON.stringify(recording)).not.toContain(SECRET)
    expect(recording).toMatchObject({ masked: true, checked: { requests: 3 } })
    const again = replay(recording)
    expect(again.mismatch).toBeUndefined()
    expect(again.bodies[0]).toContain('my key is [hidden]')
  })

  test('goes on over a restart', async () => {
    await using bench = await AgentBench.start([textAnswer('one'), textAnswer('two')])
    const first = await bench.core()
    const { id } = await newSession(first)
    const asked = async (core: typeof first, text: string): Promise<void> => {
      await ask(await core.manager.get('u_ada', id), text)
    }
    await asked(first, '1')
    await first.leave()
    const second = await bench.core()
    await asked(second, '2')
    const recording = await record(second.store, id)
    expect(recording.events.flatMap((event) => metaOf(event).request?.from ?? [])).toEqual([0, 0])
    expect(replay(recording).bodies).toEqual(bench.provider.requests.map(({ raw }) => raw))
  })

  test('what is no recording is refused with the reason', () => {
    expect(() => readRecording('{')).toThrow(/not JSON/)
    expect(() => readRecording('{"kind":"other"}')).toThrow(/no recording/)
  })
})
