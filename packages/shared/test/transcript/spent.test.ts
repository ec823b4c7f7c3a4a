/** Usage of a prompt and a chat, folded from the log. */
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/chat/events.ts'
import { makeMeta, type TokenUsage } from '../../src/chat/event-meta.ts'
import { type EndReason, STOP_REASON_OF } from '../../src/chat/reasons.ts'
import { costOf } from '../../src/transcript/spent.ts'
import { emptyTranscript, foldTranscript } from '../../src/transcript/transcript.ts'
import { call, outcome, Recorder, text } from './scripts.ts'

function counts(turn: number | undefined, usage?: TokenUsage, cost?: number): (at: number) => SessionEvent {
  return (at) => ({
    sessionUpdate: 'usage_update',
    used: 10,
    size: 100,
    _meta: makeMeta({ promptId: 'p', turn, usage, cost }, at),
  })
}
const answer = (turn: number) => text('agent_message_chunk', `m${turn}`, 'So.', { promptId: 'p', turn })
const USAGE = { input: 100, output: 20, cached: 80, reasoning: 5 }
const ONE = { answers: 1, ...USAGE, known: 0.5, unpriced: 0 }
const TWICE = { answers: 2, input: 200, output: 40, cached: 160, reasoning: 10, known: 1, unpriced: 0 }

function spentOf(record: (recorder: Recorder) => void, reason: EndReason = 'completed') {
  const recorder = new Recorder()
  recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
  record(recorder)
  recorder.happened({ type: 'prompt_ended', stopReason: STOP_REASON_OF[reason], reason }, { promptId: 'p' })
  const { entries, spent } = recorder.events.reduce(foldTranscript, emptyTranscript())
  const end = entries.at(-1)
  if (end?.type !== 'end') throw new Error('no end')
  return { end, chat: spent.chat }
}

describe('a prompt', () => {
  test('has the sum of its answers, wherever their counts stand beside them, and how long it took', () => {
    const { end, chat } = spentOf((recorder) => {
      recorder.settled(answer(1))
      recorder.settled(counts(1, USAGE, 0.5))
      recorder.settled(call('c', { promptId: 'p', turn: 1 }))
      recorder.settled(outcome('c', 'out', { promptId: 'p', turn: 1 }))
      recorder.settled(counts(2, USAGE, 0.5))
      recorder.settled(answer(2))
    })
    expect(end.spent).toEqual(TWICE)
    expect(end.tookMs).toBe(7)
    expect(chat).toEqual(TWICE)
  })

  test('an answer that was never counted is one of unknown cost, and of unknown cost alone nothing is known', () => {
    const { end } = spentOf((recorder) => {
      recorder.settled(answer(1))
      recorder.settled(counts(1))
    })
    expect(end.spent).toMatchObject({ answers: 1, input: 0, unpriced: 1 })
    expect(costOf(end.spent)).toBeNull()
    const beside = spentOf((recorder) => {
      recorder.settled(answer(1))
      recorder.settled(answer(2))
      recorder.settled(counts(2, USAGE, 0.5))
      recorder.settled(answer(3))
      recorder.settled(counts(3, USAGE))
    }).end.spent
    expect(beside).toMatchObject({ answers: 3, input: 200, known: 0.5, unpriced: 2 })
    expect(costOf(beside)).toBe(0.5)
  })

  test('counts of a summary are not those of the answer behind it', () => {
    const { end } = spentOf((recorder) => {
      recorder.settled(counts(1, USAGE, 0.5))
      recorder.happened({ type: 'compacted', summary: 'They spoke.', upTo: 1 }, { promptId: 'p', turn: 1 })
      recorder.settled(answer(1))
    })
    expect(end.spent).toEqual({ ...ONE, answers: 2, unpriced: 1 })
  })

  test('an answer that was stopped could not be counted', () => {
    const stopped = spentOf((recorder) => recorder.settled(answer(1)), 'cancelled')
    expect(stopped.end.spent.answers).toBe(0)
  })
})

test('the next prompt begins with nothing, and the chat keeps its sum', () => {
  const recorder = new Recorder()
  for (const promptId of ['p', 'q']) {
    recorder.happened({ type: 'prompt_started' }, { promptId })
    recorder.settled(counts(1, USAGE, 0.5))
    const end = { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' } as const
    recorder.happened(end, { promptId })
  }
  const { spent } = recorder.events.reduce(foldTranscript, emptyTranscript())
  expect(spent.prompt).toEqual(ONE)
  expect(spent.chat).toEqual(TWICE)
})
