/** Row "budgets": per prompt, checked before each request and each call. */
import { makeSandlotEvent, type SessionEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { describe, expect, test } from 'vitest'
import { callOverBudget, overBudget, spentBy } from '../../src/limits/budgets.ts'
import { AgentBench, ask, happened, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { play } from '../scripts/run-script.ts'
import { call, calls, says, startOf } from '../scripts/words.ts'

const spent = { calls: 3, tokens: 100, cost: 0.5, unpriced: 0, startedAt: 1_000 }

describe('budgets', () => {
  test.each([
    [{ calls: 3 }, /3 calls/],
    [{ tokens: 100 }, /100 tokens/],
    [{ cost: 0.5 }, /\$0\.50/],
    [{ promptMs: 60_000 }, /60 seconds/],
  ])('%j ends it with a sentence', (budgets, words) => {
    expect(overBudget(spent, budgets, 61_000)).toMatch(words)
    expect(overBudget({ ...spent, calls: 2, tokens: 99, cost: 0.49 }, budgets, 60_999)).toBeUndefined()
  })

  test('without budgets nothing ends', () => {
    expect(overBudget(spent, {}, 1e15)).toBeUndefined()
    expect(callOverBudget(1_000, spent, {}, 1e15)).toBeUndefined()
  })

  test('a call is judged by its place and by the time', () => {
    expect(callOverBudget(3, spent, { calls: 3 }, 0)).toBeUndefined()
    expect(callOverBudget(4, spent, { calls: 3 }, 0)).toMatch(/not started.*3 calls/)
    expect(callOverBudget(1, spent, { promptMs: 1_000 }, 2_000)).toMatch(/not started.*1 seconds/)
  })

  test('what was spent is a fold of the prompt’s own events', () => {
    const usage = (promptId: string, cost?: number): SessionEvent => ({
      sessionUpdate: 'usage_update',
      used: 1,
      size: 1,
      _meta: {
        sandlot: {
          v: 1,
          at: 5,
          promptId,
          usage: { input: 10, output: 2 },
          cost,
        },
      },
    })
    const log = [
      makeSandlotEvent({ type: 'prompt_started' }, { promptId: 'p' }, 7),
      usage('p', 0.25),
      usage('p'),
      usage('other', 9),
    ]
    expect(spentBy(log, 'p')).toEqual({ calls: 0, tokens: 24, cost: 0.25, unpriced: 1, startedAt: 7 })
  })

  test('a summary that was counted does not count the answer of its turn, nor the other way round', () => {
    const meta = { promptId: 'p', turn: 2 }
    const usage = (cost: object): SessionEvent => ({
      sessionUpdate: 'usage_update',
      used: 1,
      size: 1,
      _meta: makeMeta({ ...meta, usage: { input: 1, output: 1 }, ...cost }, 5),
    })
    const answer: SessionEvent = {
      sessionUpdate: 'agent_message_chunk',
      messageId: 'm',
      content: { type: 'text', text: 'So.' },
      _meta: makeMeta(meta, 5),
    }
    const compacted = makeSandlotEvent(
      { type: 'compacted', summary: 'It was so.', upTo: 1, why: 'window' },
      meta,
      5,
    )
    const unpriced = (...log: SessionEvent[]): number => spentBy(log, 'p').unpriced
    expect(unpriced(usage({ cost: 1 }), compacted, answer)).toBe(1)
    expect(unpriced(usage({}), compacted, answer, usage({ cost: 1 }))).toBe(1)
    expect(unpriced(usage({ cost: 1 }), compacted, answer, usage({ cost: 1 }))).toBe(0)
  })

  test('what nobody counted is not nothing: with a limit in dollars it ends the prompt, with a sentence', () => {
    const unknown = { ...spent, cost: 0, unpriced: 1 }
    expect(overBudget(unknown, { cost: 2 }, 0)).toMatch(/is unknown.*\$2\.00.*limit turns or time/)
    expect(overBudget(unknown, { day: { cost: 2 } }, 0)).toMatch(/is unknown/)
    expect(overBudget(unknown, { calls: 100, tokens: 1_000 }, 0)).toBeUndefined()
  })

  test.each([
    ['no counts', null, 'budget'],
    ['only what came out', { completion_tokens: 4 }, 'budget'],
    ['both', { prompt_tokens: 10, completion_tokens: 4 }, 'completed'],
  ] as const)('a provider that says %s of an answer, and a limit in dollars', async (_, usage, reason) => {
    const model = { name: 'priced', price: { input: 1, output: 1 } }
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c', name: 'echo', args: { text: 'x' } }], { usage }),
      textAnswer('done', { usage: { prompt_tokens: 1, completion_tokens: 1 } }),
    ])
    const core = await bench.core({
      wrap: (parts) => ({
        ...parts,
        models: { ...parts.models, model: { ...parts.models.model, ...model } },
        limitsOf: () => ({ maxTurns: 10, budgets: { cost: 5 } }),
      }),
    })
    const session = await newSession(core)
    await ask(session, 'go')
    expect(happened(session.log, 'prompt_ended')).toMatchObject([{ reason }])
    expect(JSON.stringify(session.log).includes('the cost of the last answer is unknown')).toBe(
      reason === 'budget',
    )
  })

  test('budgets, wall time: calls that would start after it do not, and it counts from the log over a restart', async () => {
    let now = 1_000
    const played = await play({
      name: '',
      answers: [calls(call('a', 'write', { text: '1' }), call('b', 'write', { text: '2' })), says('Yes.')],
      // Dies in the first call; ten minutes later the next process resumes.
      steps: [
        { say: 'go', dieAt: (event) => startOf('a')(event) && (now += 600_000) > 0 },
        {},
        { say: 'and now?' },
      ],
      options: { budgets: { promptMs: 300_000 }, now: () => now },
      ends: [],
    })
    expect(played.ran['write']).toBeUndefined()
    expect(played.results.map(({ reason }) => reason)).toEqual(['budget', 'completed'])
    expect(played.results[0]?.text).toContain('5 minutes')
  })
})
