import { expect, test } from 'vitest'
import { mergeMetrics, mergeOverviews, mergeToolStats } from '../../src/agent/merge-answers.ts'

const delays = (ms: number) => ({ p50: ms, p99: ms, max: ms })

test('metrics of two agents stand together by metric, each with its label', () => {
  const text = (count: number): string =>
    `# HELP a_total Of a.\n# TYPE a_total counter\na_total{kind="x \\"y\\" {z}"} ${count}\na_total ${count}\n# HELP b Of b.\n# TYPE b gauge\nb 1\n`
  const merged = mergeMetrics([
    { replica: 'one', answer: { text: text(1), eventLoopDelayMs: delays(1) } },
    { replica: 'two', answer: { text: text(2), eventLoopDelayMs: delays(3) } },
  ])
  expect(merged?.text.split('\n')).toEqual([
    '# HELP a_total Of a.',
    '# TYPE a_total counter',
    'a_total{replica="one",kind="x \\"y\\" {z}"} 1',
    'a_total{replica="one"} 1',
    'a_total{replica="two",kind="x \\"y\\" {z}"} 2',
    'a_total{replica="two"} 2',
    '# HELP b Of b.',
    '# TYPE b gauge',
    'b{replica="one"} 1',
    'b{replica="two"} 1',
    '',
  ])
  expect(merged?.eventLoopDelayMs).toEqual(delays(3))
  expect(mergeMetrics([])).toBeUndefined()
})

test('counts of tools are added', () => {
  const line = { id: 't', source: 'built-in', offered: 'on', truncationRate: 0, p50Ms: 10, outputBytes: 5 }
  const merged = mergeToolStats([
    { replica: 'one', answer: { since: 9, tools: [{ ...line, calls: 1, successRate: 0, p95Ms: 20 }] } },
    { replica: 'two', answer: { since: 7, tools: [{ ...line, calls: 3, successRate: 1, p95Ms: 90 }] } },
  ])
  expect(merged).toEqual({
    since: 7,
    tools: [{ ...line, calls: 4, successRate: 0.75, p95Ms: 90, outputBytes: 10 }],
  })
})

test('an overview has what can be read of each agent', () => {
  const line = (limit: unknown) => ({ place: 1, of: 1, why: 'places', limit })
  const prompt = { promptId: 'p_1', person: 'ada', model: 'm', startedAt: 1, doing: 'line', tools: [] }
  const good = { version: '1', prompts: [{ ...prompt, line: line(2) }], sandboxes: { image: 'i' } }
  const odd = {
    ...good,
    prompts: [
      { ...prompt, promptId: 'p_2', line: line(null) },
      { ...prompt, promptId: 7 },
    ],
  }
  expect(mergeOverviews([{ replica: '', answer: odd }]).prompts).toMatchObject([{ promptId: 'p_2' }])
  const merged = mergeOverviews([
    { replica: 'one', answer: 'none' },
    { replica: 'two', answer: good },
  ])
  expect(merged.prompts).toMatchObject([{ promptId: 'p_1', line: line(2) }])
  expect(() => mergeOverviews([{ replica: 'one', answer: 'none' }])).toThrow('cannot be read')
})
