/** Row "compaction", bugs 21 and 26: what is left out, what stays, and that every cut leaves a history that may be sent. */
import { type SessionEvent, makeSandlotEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PRUNED, changedFiles } from '../../src/history/compaction.ts'
import { contextSize } from '../../src/loop/context-size.ts'
import { planCut, planPruning } from '../../src/loop/plan.ts'
import { mechanicalSummary, summaryMessages } from '../../src/loop/summary.ts'
import { SUMMARY_REQUEST } from '../support/summary-request.ts'
import { historyProblems } from '../../src/history/check.ts'
import { modelMessages } from '../../src/history/model-messages.ts'
import type { ModelMessage } from '../../src/model/model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { scriptedModel } from '../support/scripted-model.ts'
import { ends, play } from '../scripts/run-script.ts'
import { wireProblems } from '../scripts/wire-problems.ts'
import { type FakeAnswer, type Scripted, toolCalls } from '../support/fake-provider.ts'
import { call, done, refuses, says, times } from '../scripts/words.ts'
import { type AnyPrompt, anyPrompts, logOf, withEvent } from './any-log.ts'

const compacted = (upTo: number, prunedUpTo: number): SessionEvent =>
  makeSandlotEvent(
    { type: 'compacted', summary: upTo === 0 ? '' : 'What was.', upTo, prunedUpTo },
    { promptId: 'p' },
    1,
  )
const read = (log: readonly SessionEvent[]): ModelMessage[] => modelMessages(log, 'system')
const lastUser = (log: readonly SessionEvent[]): string => {
  const event = log.findLast(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk')
  return event?.sessionUpdate === 'user_message_chunk' && event.content.type === 'text'
    ? event.content.text
    : ''
}

describe('property: any log', () => {
  test('bug 21: any cut and any pruning leave pairs whole, and the user’s last message', () => {
    fc.assert(
      fc.property(anyPrompts, fc.nat(200), fc.nat(200), (prompts, cut, pruned) => {
        const log = logOf(prompts)
        const messages = read(withEvent(log, compacted(cut % (log.length + 1), pruned % (log.length + 1))))
        expect(historyProblems(messages)).toEqual([])
        expect(messages.some(({ content }) => content.includes(lastUser(log)))).toBe(true)
      }),
    )
  })

  test('a planned cut stands before a message of the user or before a turn, and keeps the last turn whole', () => {
    fc.assert(
      fc.property(anyPrompts, fc.integer({ min: 1_000, max: 8_000 }), (prompts, window) => {
        const log = logOf(allOver(prompts))
        const upTo = planCut(log, window)
        if (upTo === undefined) return
        const whole = read(log)
        const cut = read(withEvent(log, compacted(upTo, 0)))
        expect(historyProblems(cut)).toEqual([])
        // Retained messages are unchanged, but for the one that carries the summary.
        const kept = cut.slice(2)
        expect(whole.slice(whole.length - kept.length)).toEqual(kept)
        expect(cut.length).toBeLessThan(whole.length)
      }),
    )
  })

  test('pruning leaves the last turn’s results alone, which the model has not read', () => {
    fc.assert(
      fc.property(anyPrompts, fc.integer({ min: 0, max: 8_000 }), (prompts, window) => {
        const log = logOf(prompts)
        const upTo = planPruning(log, window)
        if (upTo === undefined) return
        const last = log.findLast(({ sessionUpdate }) => sessionUpdate === 'tool_call')
        expect(upTo).toBeLessThan(last?._meta.sandlot.seq ?? 0)
        const messages = read(withEvent(log, compacted(0, upTo)))
        expect(messages.some(({ content }) => content === PRUNED)).toBe(true)
        expect(messages.map(({ role }) => role)).toEqual(read(log).map(({ role }) => role))
      }),
    )
  })

  test('bug 26: after a compaction a longer log only adds messages at the end', () => {
    fc.assert(
      fc.property(anyPrompts, anyPrompts, fc.nat(100), (before, after, cut) => {
        const log = logOf(allOver(before))
        // The last message is always kept: there is nothing to go on with without one.
        const short = withEvent(log, compacted(cut % log.length, cut % log.length))
        const more = logOf(after).map((event) => renamed(event))
        const long = more.reduce(withEvent, short)
        const first = read(short)
        expect(read(long).slice(0, first.length)).toEqual(first)
      }),
    )
  })

  test('the request for a summary is a history that may be sent, and fits', () => {
    fc.assert(
      fc.property(anyPrompts, fc.integer({ min: 100, max: 5_000 }), (prompts, most) => {
        const messages = summaryMessages(read(logOf(prompts)), most)
        expect(historyProblems(messages)).toEqual([])
        expect(messages.at(-1)?.content).toBe(SUMMARY_REQUEST)
      }),
    )
  })
})

/** Nothing is still running: what is, is answered behind what the log has of it. */
function allOver(prompts: readonly AnyPrompt[]): AnyPrompt[] {
  return prompts.map(({ turns, ends }) => ({
    ends,
    turns: turns.map((turn) => ({
      ...turn,
      calls: turn.calls.map((one) => ({ ...one, result: 'completed' as const })),
    })),
  }))
}

/** The event as one of another part of the session. */
function renamed(event: SessionEvent): SessionEvent {
  return JSON.parse(JSON.stringify(event).replaceAll('p_', 'p_later_')) as SessionEvent
}

test('the list of changed files: what edited and succeeded, once, in order', () => {
  const turn = (edits: boolean, result: 'completed' | 'failed') => ({
    text: '',
    steered: false,
    calls: [{ result, length: 1, edits }],
  })
  const log = logOf([
    { ends: true, turns: [turn(true, 'completed'), turn(false, 'completed'), turn(true, 'failed')] },
  ])
  expect(changedFiles(log)).toEqual(['/workspace/p_0_1_0'])
  expect(mechanicalSummary(log, log.length, 1_000)).toContain('message 0')
})

test('the size is what the provider counted, and an estimate of what is new', () => {
  const log = logOf([{ ends: false, turns: [{ text: 'Yes.', calls: [], steered: false }] }])
  const reader = { model: 'fake', contextWindow: 1_000 }
  const usage = { input: 5_000, output: 10 }
  const sandlot = { v: 1 as const, at: 1, promptId: 'p_0', turn: 1, usage, model: 'fake' }
  const counted = withEvent(log.slice(0, 3), {
    sessionUpdate: 'usage_update',
    used: 5_010,
    size: 1_000,
    _meta: { sandlot },
  })
  expect(contextSize(counted, 's', [], reader)).toBe(5_010)
  const longer = log.slice(3).reduce(withEvent, counted)
  expect(contextSize(longer, 's', [], reader)).toBeGreaterThan(5_010)
  expect(contextSize(longer, 's', [], reader)).toBeLessThan(5_050)
  // Another model counts otherwise, and after a compaction the count is of something else.
  expect(contextSize(counted, 's', [], { ...reader, model: 'other' })).toBeLessThan(200)
  expect(contextSize(withEvent(counted, compacted(0, 1)), 's', [], reader)).toBeLessThan(200)
})

describe('in a prompt', () => {
  // Nobody counts tokens here, so the size is an estimate.
  const big = (n: number) => toolCalls([call(`c${n}`, 'big')], { usage: null })
  /** Its messages cannot be left out, its results can. */
  const long = (n: number) => {
    const write = call(`c${n}`, 'write', { text: `${n} ${'w'.repeat(9_000)}` })
    return toolCalls([write, call(`d${n}`, 'big')], { usage: null, pieceLength: 3_000 })
  }
  /** Sixty long turns; the request for a summary gets its own answer. */
  const unlessAsked = (summary: FakeAnswer): Scripted[] =>
    [...Array.from({ length: 60 }, (_, n) => long(n + 1)), done].map(
      (answer) => (request) =>
        JSON.stringify(request.body.messages.at(-1)).includes('Write a summary') ? summary : answer,
    )
  const compactions = (log: readonly SessionEvent[]) =>
    log.map(sandlotEventOf).filter((event) => event?.type === 'compacted')

  test('near the window old results go first, then a summary stands for the rest; the original stays in the log', async () => {
    const played = await play({
      name: '',
      answers: unlessAsked(says('A summary of it all.')),
      ends: [],
      options: { maxTurns: 14 },
    })
    expect(ends(played.log)).toEqual(['max_turns'])
    for (const { body } of played.requests) expect(wireProblems(body)).toEqual([])
    const [first] = compactions(played.log)
    expect(first).toMatchObject({ summary: '', why: 'window' })
    const summaries = compactions(played.log).filter(
      (event) => event?.type === 'compacted' && event.summary !== '',
    )
    expect(summaries[0]).toMatchObject({ summary: 'A summary of it all.', why: 'window' })
    expect(played.log.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call')).toHaveLength(28)
    // All of it would be twice the window of 32,000 tokens.
    for (const { raw } of played.requests) expect(raw.length / 3.5).toBeLessThan(32_000)
    expect(played.requests.at(-1)?.raw).toContain('which you are working on:\\n\\ngo')
  })

  test('a process that died behind the first step leaves the summary to the next one', async () => {
    const answers = unlessAsked(says('A summary of it all.'))
    const { log } = await play({ name: '', answers, ends: [], options: { maxTurns: 14 } })
    const pruned = log.findIndex((event) => sandlotEventOf(event)?.type === 'compacted')
    const left = log.slice(0, pruned + 1)
    const model = scriptedModel([{ text: 'What was.' }, { text: 'Done.' }], { contextWindow: 16_000 })
    const run = runAgent({ model, tools: [], log: memoryLog(left) })
    for (let step = await run.next(); step.done !== true;) step = await run.next()
    expect(model.requests.map(({ messages }) => messages.at(-1)?.content === SUMMARY_REQUEST)).toEqual([
      true,
      false,
    ])
  })

  test('after an overflow error room is made once, with the same tools, and the request goes again', async () => {
    const full = () => refuses(400, 'This model has a maximum context length of 4096 tokens')
    const played = await play({
      name: '',
      answers: [...times(4, big), full(), says('A summary.'), done],
      ends: [],
    })
    expect(ends(played.log)).toEqual(['completed'])
    expect(compactions(played.log).at(-1)).toMatchObject({ why: 'overflow' })
    const sizes = played.requests.map(({ raw }) => raw.length)
    expect(sizes.at(-1)).toBeLessThan(sizes[4] ?? 0)
    expect(new Set(played.requests.map(({ body }) => JSON.stringify(body.tools))).size).toBe(1)
  })

  test('still over the window: an error that says so, and no third try', async () => {
    const full = () => refuses(400, 'context_length_exceeded')
    const played = await play({
      name: '',
      answers: [...times(3, big), full(), full(), full(), says('A summary.'), says('Yes.')],
      steps: [{ say: 'go' }, { say: 'shorter' }],
      ends: [],
    })
    // The next message makes room for itself.
    expect(ends(played.log)).toEqual(['error', 'completed'])
    expect(played.results[0]?.text).toContain('longer than the context window')
  })

  test('a summary that fails falls back to leaving out results', async () => {
    const played = await play({
      name: '',
      answers: unlessAsked(refuses(400, 'no')),
      ends: [],
      options: { maxTurns: 14 },
    })
    expect(ends(played.log)).toEqual(['max_turns'])
    for (const { body, raw } of played.requests) {
      expect(wireProblems(body)).toEqual([])
      expect(raw.length / 3.5).toBeLessThan(32_000)
    }
  })
})
