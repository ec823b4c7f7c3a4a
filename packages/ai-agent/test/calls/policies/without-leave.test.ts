/** A tool that changes only what was allowed before: nobody is asked, and it is no read all the same. */
import { expect, test } from 'vitest'
import { builtinTools } from '../../../src/tools/builtin/index.ts'
import type { Tool } from '../../../src/tools/tool.ts'
import { TestBatch } from '../test-batch.ts'
import { tool } from './tool-fixture.ts'

function counting(name: string, change: Partial<Tool>): Tool {
  let runs = 0
  // oxlint-disable-next-line require-yield
  return tool(name, change, async function* () {
    return { status: 'completed', forModel: `run ${++runs}` }
  })
}
const end = counting('end', { runs: { needsApproval: false } })
const act = counting('act', {})
const look = counting('look', { readOnly: true, runs: { cache: {} } })
const call = (name: string) => ({ id: name, name, args: {} })

test('it runs where everything else that is no read asks', async () => {
  const batch = new TestBatch({ tools: [end, act], mode: 'manual' })
  const outcomes = await batch.run([call('end'), call('act')])
  expect(outcomes.map(({ status }) => status)).toEqual(['completed', 'failed'])
  expect(batch.story().filter((line) => line.startsWith('asked'))).toEqual(['asked act'])
})

test('what denies its tool denies it', async () => {
  const batch = new TestBatch({ tools: [end] })
  batch.rules = [{ id: 'r', effect: 'deny', match: { tool: 'end' }, origin: 'user', createdAt: 0 }]
  expect(await batch.call('end', {})).toMatchObject({ status: 'failed', reason: 'denied' })
})

test('it waits for the reads before it, those behind it wait for it, and nothing from before it is known any more', async () => {
  const batch = new TestBatch({ tools: [end, look], mode: 'manual' })
  await batch.call('look', {})
  const calls = [
    { id: 'before', name: 'look', args: {} },
    call('end'),
    { id: 'after', name: 'look', args: {} },
  ]
  const outcomes = await batch.run(calls)
  expect(outcomes.map(({ forModel }) => forModel)).toEqual(['run 1', expect.anything(), 'run 2'])
  const ran = batch
    .story()
    .filter((line) => / (before|end|after)$/.test(line) && !line.startsWith('announced'))
  expect(ran).toEqual([
    'in_progress before',
    'completed before',
    'in_progress end',
    'completed end',
    'in_progress after',
    'completed after',
  ])
})

test('stop is such a tool, and the only one', () => {
  const such = builtinTools().filter(({ runs }) => runs?.needsApproval === false)
  expect(such.map(({ name, readOnly }) => [name, readOnly])).toEqual([['stop', false]])
})
