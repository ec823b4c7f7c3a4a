/** Summaries that would leave no room: too long, or asked for again and again although they do not help. */
import { setImmediate } from 'node:timers/promises'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { summaryMessages, summaryText } from '../../src/loop/summary.ts'
import { SUMMARY_REQUEST } from '../support/summary-request.ts'
import type { PromptBudgets } from '../../src/limits/budgets.ts'
import { messagesTokens, textTokens } from '../../src/model/tokens.ts'
import { type Model, ModelError, type ModelMessage, type ModelRequest } from '../../src/model/model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'

const WINDOW = 10_000
const words = (count: number): string => Array.from({ length: count }, (_, place) => `w${place}`).join(' ')
const isForSummary = ({ messages }: ModelRequest): boolean => messages.at(-1)?.content === SUMMARY_REQUEST

/** Talks and calls for ever; refuses what its window does not hold. */
function talker(summary: string): ScriptedModel {
  return scriptedModel(
    (place) => (request) => {
      if (isForSummary(request)) return { text: summary, usage: {} }
      if (messagesTokens(request.messages.slice(1)) > WINDOW)
        throw new ModelError('context_overflow', 'It is too long.', { retryable: false })
      const calls = [{ id: `c${place}`, name: 'step', args: {} }]
      return { text: `${place} ${words(500)}`, calls, usage: {} }
    },
    { contextWindow: WINDOW },
  )
}

async function run(model: ScriptedModel, system: string, budgets: PromptBudgets = {}): Promise<string> {
  let nth = 0
  const step = plainTool({
    name: 'step',
    description: 'For tests.',
    parameters: { type: 'object', properties: {} },
    execute: () => ++nth,
  })
  const running = runAgent({
    model,
    tools: [step],
    log: memoryLog(),
    prompt: 'go',
    system,
    maxTurns: 40,
    budgets,
  })
  let next = await running.next()
  while (next.done !== true) next = await running.next()
  return next.value.reason
}

test('a summary that does not end is cut, and the work goes on', async () => {
  const model = talker(words(100_000))
  expect(await run(model, 's')).toBe('max_turns')
  const summaries = model.requests.filter(isForSummary).length
  expect(summaries).toBeGreaterThan(1)
  expect(summaries).toBeLessThan(8)
})

test('the words of a summary are within their share of the window, half of what it may take with its files', async () => {
  const model = talker(words(100_000))
  await run(model, 's')
  const behind = model.requests.filter((_, place) => {
    const before = model.requests[place - 1]
    return before !== undefined && isForSummary(before)
  })
  expect(behind.length).toBeGreaterThan(1)
  for (const { messages } of behind) {
    const summary = messages.find(({ content }) => content.includes('w0 w1 '))
    expect(textTokens(summary?.content ?? '')).toBeGreaterThan(WINDOW * 0.08)
    expect(textTokens(summary?.content ?? '')).toBeLessThan(WINDOW * 0.12)
  }
})

test('one that comes out empty is asked for once more, before the older part goes without', async () => {
  const summaries = ['', 'What was.']
  const model = scriptedModel(
    (place) => (request) =>
      isForSummary(request)
        ? { text: summaries.shift() ?? 'What was.', usage: {} }
        : { text: `${place} ${words(500)}`, calls: [{ id: `c${place}`, name: 'step', args: {} }], usage: {} },
    { contextWindow: WINDOW },
  )
  await run(model, 's')
  const first = model.requests.findIndex(isForSummary)
  expect(model.requests.slice(first, first + 3).map(isForSummary)).toEqual([true, true, false])
  expect(JSON.stringify(model.requests[first + 2]?.messages)).toContain('What was.')
})

test('a summary that says the same for ever is not listened to for ever', async () => {
  const model = talker('')
  let closed = 0
  const chant: Model['stream'] = async (_request, signal, onPiece) => {
    while (!signal.aborted) {
      onPiece({ type: 'text', text: 'The user wants a summary of what was said. ' })
      await setImmediate()
    }
    closed++
    throw signal.reason
  }
  const chanting: ScriptedModel = {
    ...model,
    stream: (request, ...rest) => (isForSummary(request) ? chant : model.stream)(request, ...rest),
  }
  expect(await run(chanting, 's')).toBe('max_turns')
  expect(closed).toBeGreaterThan(1)
}, 20_000)

test('where a summary cannot make room it is not asked for before every request', async () => {
  const model = talker('Short.')
  // The system prompt alone is near the limit at which room is made.
  expect(await run(model, words(4_700))).toBe('max_turns')
  const asked = model.requests.length
  const summaries = model.requests.filter(isForSummary).length
  expect(summaries).toBeGreaterThan(0)
  expect(summaries * 3).toBeLessThan(asked)
})

test('property: words and changed files keep within what they may take; the files changed last are named', () => {
  const edits = (paths: readonly string[]): SessionEvent[] =>
    paths.flatMap((path, n): SessionEvent[] => {
      const at = { toolCallId: `c${n}`, _meta: makeMeta({ promptId: 'p', turn: 1 }, 1) }
      return [
        {
          sessionUpdate: 'tool_call',
          title: 'Edit',
          name: 'edit',
          kind: 'edit',
          status: 'pending',
          rawInput: {},
          locations: [{ path }],
          ...at,
        },
        { sessionUpdate: 'tool_call_update', status: 'completed', rawOutput: { forModel: 'x' }, ...at },
      ]
    })
  fc.assert(
    fc.property(fc.nat(3_000), fc.nat(300), fc.integer({ min: 200, max: 4_000 }), (said, files, most) => {
      const paths = Array.from({ length: files }, (_, n) => `/workspace/a/b/c/file-${n}.ts`)
      const log = [makeSandlotEvent({ type: 'prompt_started' }, { promptId: 'p' }, 1), ...edits(paths)]
      const text = summaryText(words(said), log, Number.MAX_SAFE_INTEGER, most)
      expect(textTokens(text)).toBeLessThan(most + 20)
      if (files > 0) expect(text).toContain(`- ${paths.at(-1) ?? ''}`)
      if (textTokens(words(said)) < most / 2) expect(text).toContain(words(said))
    }),
  )
})

test('what is left out of a long conversation is found in one pass', () => {
  let looks = 0
  const messages = Array.from({ length: 1_000 }, (_, place): ModelMessage => ({
    role: place % 2 === 0 ? 'user' : 'system',
    get content() {
      looks++
      return words(20)
    },
  }))
  const kept = summaryMessages(messages, 1_000)
  expect(kept.length).toBeLessThan(100)
  expect(looks).toBeLessThan(10 * messages.length)
})

test('a summary that uses up the budget is the last request', async () => {
  const model = scriptedModel(
    (place) => (request) =>
      isForSummary(request)
        ? { text: 'What was.', usage: { input: 9_000, output: 10 } }
        : { text: `${place} ${words(500)}`, calls: [{ id: `c${place}`, name: 'step', args: {} }], usage: {} },
    { contextWindow: WINDOW },
  )
  expect(await run(model, 's', { tokens: 9_000 })).toBe('budget')
  expect(model.requests.map(isForSummary).indexOf(true)).toBe(model.requests.length - 1)
})

test('an answer that is no summary is paid for as well', async () => {
  const model = scriptedModel(
    (place) => (request) => {
      const calls = [{ id: `c${place}`, name: 'step', args: {} }]
      return isForSummary(request)
        ? { text: '', calls, usage: { input: 9_000, output: 10 } }
        : { text: `${place} ${words(500)}`, calls, usage: {} }
    },
    { contextWindow: WINDOW },
  )
  expect(await run(model, 's', { tokens: 9_000 })).toBe('budget')
  expect(model.requests.map(isForSummary).indexOf(true)).toBe(model.requests.length - 1)
})

test('a summary that uses up the budget is the last request, also when only the provider found the window full', async () => {
  const model = scriptedModel(
    (place) => (request) => {
      if (isForSummary(request)) return { text: 'What was.', usage: { input: 9_000, output: 10 } }
      if (request.messages.length > 6)
        throw new ModelError('context_overflow', 'It is too long.', { retryable: false })
      return {
        text: `${place} ${words(500)}`,
        calls: [{ id: `c${place}`, name: 'step', args: {} }],
        usage: {},
      }
    },
    { contextWindow: WINDOW * 10 },
  )
  expect(await run(model, 's', { tokens: 9_000 })).toBe('budget')
  expect(model.requests.map(isForSummary).indexOf(true)).toBe(model.requests.length - 1)
})
