/** Our own share of the delay, to the millisecond: one prompt on a clock of the test's own. */
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent, metaOf, type EventGroup } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { AgentMetrics } from '../../src/metrics/agent-metrics.ts'
import { MeasuredPrompt } from '../../src/metrics/measured-prompt.ts'
import type { Model, ModelAnswer } from '../../src/model/model.ts'
import { createToolMetrics } from '../../src/metrics/tool-metrics.ts'

const PROMPT = { promptId: 'p_1', turn: 1 }
const update = (status: 'in_progress' | 'completed'): SessionEvent => ({
  sessionUpdate: 'tool_call_update',
  toolCallId: 'c1',
  status,
  _meta: makeMeta(PROMPT, 0),
})
const asked = makeSandlotEvent(
  { type: 'approval_asked', toolCallId: 'c1', options: [], why: [], expiresAt: 1 },
  PROMPT,
  0,
)
const ended = makeSandlotEvent(
  { type: 'prompt_ended', reason: 'completed', stopReason: 'end_turn' },
  PROMPT,
  0,
)

/** A loop by hand: `wait` lets time pass, `ask` makes a request, `store` passes a group that takes 2 ms to store. */
function bench() {
  let at = 1000
  const metrics = new AgentMetrics()
  const measured = new MeasuredPrompt(metrics, () => at)
  const wait = (ms: number): void => {
    at += ms
  }
  const stored: SessionEvent[] = []
  return {
    metrics,
    measured,
    stored,
    wait,
    /** One request: the first piece comes after 30 ms and the answer is complete 10 ms later, or it fails after 7 ms. */
    async ask(end: 'answers' | 'fails' = 'answers'): Promise<void> {
      const model = {
        // oxlint-disable-next-line typescript/require-await
        async stream(_request, _signal, onPiece): Promise<ModelAnswer> {
          if (end === 'fails') {
            wait(7)
            throw new Error('overloaded')
          }
          wait(30)
          onPiece({ type: 'text', text: 'x' })
          wait(10)
          return {} as ModelAnswer
        },
      } as Pick<Model, 'stream'> as Model
      const asked = measured.model(model)
      try {
        await asked.stream({ messages: [], tools: [] }, new AbortController().signal, () => undefined)
      } catch (error) {
        expect((error as Error).message).toBe('overloaded')
      }
    },
    async store(...groups: EventGroup[]): Promise<void> {
      const source = (async function* () {
        yield* groups
      })()
      for await (const group of measured.groups(source)) {
        wait(2)
        stored.push(...group)
      }
    },
    report: () => metrics.report(createToolMetrics()),
  }
}

test('continuation is from the stored outcome to the next request, first token from a request to its first piece', async () => {
  const { ask, store, wait, report, measured, stored } = bench()
  await ask()
  wait(5)
  await store([update('in_progress')])
  wait(500)
  await store([update('completed')])
  wait(11)
  await ask()
  await store([update('completed')])
  wait(4)
  await ask()
  await store([ended])
  expect(report()).toMatchObject({
    requests: 3,
    continuationMs: { count: 2, sum: 15 },
    // 5 ms and the 2 ms that storing the start took: only then does the call run.
    callStartMs: { count: 1, sum: 7 },
    firstTokenMs: { count: 3, sum: 90 },
  })
  // The longest of the prompt; at its end, and nowhere else.
  const timing = { firstTokenMs: 30, continuationMs: 11 }
  expect(measured.ended).toMatchObject({ reason: 'completed', turns: 1, ...timing })
  expect(stored.map((event) => metaOf(event).promptTiming)).toEqual([undefined, undefined, undefined, timing])
})

test('a request that failed is no first token, and the wait before it is tried again is not ours', async () => {
  const { ask, store, wait, report, measured } = bench()
  await ask('fails')
  wait(1000)
  await ask()
  await store([update('completed')])
  wait(3)
  await ask('fails')
  wait(1000)
  await ask()
  await store([ended])
  expect(report()).toMatchObject({
    requests: 4,
    continuationMs: { count: 1, sum: 3 },
    firstTokenMs: { count: 2, sum: 60 },
  })
  expect(measured.ended).toMatchObject({ firstTokenMs: 30, continuationMs: 3 })
})

test('the time in which a person decides is not ours', async () => {
  const { ask, store, wait, report } = bench()
  await ask()
  await store([asked])
  wait(60_000)
  await store([update('in_progress')], [update('completed')])
  wait(1)
  await ask()
  expect(report()).toMatchObject({ callStartMs: { count: 0 }, continuationMs: { count: 1, sum: 1 } })
})

test('a prompt without a call or an answer has no times', async () => {
  const { ask, store, measured } = bench()
  await ask('fails')
  await store([ended])
  expect(measured.ended).not.toHaveProperty('firstTokenMs')
  expect(measured.ended).not.toHaveProperty('continuationMs')
})
