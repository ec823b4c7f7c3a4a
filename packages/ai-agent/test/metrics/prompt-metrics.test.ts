/** Measurements of prompts, with the real loop, scheduler and store, and a scripted provider. */
import { expect, test } from 'vitest'
import { AgentMetrics } from '../../src/metrics/agent-metrics.ts'
import { createToolMetrics } from '../../src/metrics/tool-metrics.ts'
import { AgentBench, ask, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const echo = (id: string) => ({ id, name: 'echo', args: { text: id } })

test('a prompt is counted once, with its turns, tokens, requests and our own delays', async () => {
  const metrics = new AgentMetrics()
  await using bench = await AgentBench.start([
    toolCalls([echo('a'), echo('b')]),
    toolCalls([echo('c')]),
    { status: 500, steps: ['no'] },
    textAnswer('done'),
  ])
  const session = await newSession(await bench.core({ parts: { metrics } }))
  await ask(session, 'go')
  const report = metrics.report(createToolMetrics())
  expect(report).toMatchObject({
    requests: 4,
    cost: 0,
    prompts: { ended: { completed: 1 }, turns: { count: 1, sum: 3, p50: 3 }, unpriced: 1 },
    // One for each turn that made calls; the retry is not our delay.
    continuationMs: { count: 2 },
    callStartMs: { count: 2 },
    tools: [],
  })
  expect(report.firstTokenMs.count).toBe(3)
})

test('tokens are summed as providers counted them; a prompt that fails is an end too', async () => {
  const metrics = new AgentMetrics()
  await using bench = await AgentBench.start([
    textAnswer('one', {
      usage: { prompt_tokens: 10, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 6 } },
    }),
    { status: 401, steps: ['{"error": {"message": "no"}}'] },
  ])
  const session = await newSession(await bench.core({ parts: { metrics } }))
  await ask(session, '1')
  await ask(session, '2')
  expect(metrics.report(createToolMetrics())).toMatchObject({
    tokens: new Map([['fake', { input: 10, output: 4, cached: 6 }]]),
    prompts: { ended: { completed: 1, error: 1 } },
  })
})

test('nothing measured is zeros', () => {
  expect(new AgentMetrics().report(createToolMetrics())).toMatchObject({
    requests: 0,
    firstTokenMs: { count: 0, sum: 0, mean: 0, p50: 0, p95: 0 },
  })
})
