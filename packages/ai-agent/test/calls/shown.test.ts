/** A call on the screen: its title, its content, and whether it was cut. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type ToolOutcome } from '../../src/tools/tool.ts'
import { TestBatch } from './test-batch.ts'

/** A batch with one tool, `look`. */
const batchOf = (outcome: ToolOutcome, title = 'look'): TestBatch =>
  new TestBatch({
    tools: [
      defineTool({
        name: 'look',
        description: 'For tests.',
        kind: 'read',
        input: z.strictObject({}),
        readOnly: true,
        title: () => title,
        // oxlint-disable-next-line require-yield
        async *execute() {
          return outcome
        },
      }),
    ],
  })

test('a call that failed without a word says why; what the screen gets is as clean as what the model gets', async () => {
  const dirty = 'a\ud800b\0c'
  const outcome = await batchOf({
    status: 'failed',
    reason: 'tool_error',
    forModel: ' ',
    content: [
      { type: 'content', content: { type: 'text', text: dirty } },
      { type: 'diff', path: '/workspace/f', oldText: dirty, newText: dirty },
    ],
  }).call('look', {})
  expect(outcome.forModel).toBe('The call failed (tool_error).')
  expect(outcome.content).toEqual([
    { type: 'content', content: { type: 'text', text: 'a\uFFFDbc' } },
    { type: 'diff', path: '/workspace/f', oldText: 'a\uFFFDbc', newText: 'a\uFFFDbc' },
  ])
})

test('a title is no longer than a screen has room for', async () => {
  const batch = batchOf({ status: 'completed', forModel: 'seen' }, 'word '.repeat(1_000))
  await batch.call('look', {})
  const titles = batch.log.flatMap((event) => (event.sessionUpdate === 'tool_call' ? [event.title] : []))
  expect(titles).toEqual([expect.stringMatching(/^word word/)])
  expect(titles[0]?.length).toBeLessThanOrEqual(300)
})

test('what is shortened for its turn says so, whatever its tool said', async () => {
  const outputInfo = { bytes: 9_000, lines: 1, truncated: false, url: '/o' }
  const batch = batchOf({ status: 'completed', forModel: 'y'.repeat(9_000), outputInfo })
  const calls = Array.from({ length: 40 }, (_, index) => ({ id: `c${index}`, name: 'look' }))
  const outcomes = await batch.run(calls)
  expect(outcomes.map((outcome) => outcome.outputInfo?.truncated)).toEqual(calls.map(() => true))
})
