import type { MessageEntry } from '@sandlot/shared/transcript/entries'
import { expect, test } from 'vitest'
import { Blocks, type Row } from '../../src/chat/transcript/blocks.ts'

const row = (id: string, promptId = 'p_1'): MessageEntry => ({
  type: 'message',
  id,
  role: 'assistant',
  text: id,
  settled: true,
  promptId,
  at: 0,
})
const rowsOf = (count: number): Row[] => Array.from({ length: count }, (_, at) => row(`m_${at}`))

test('every row is in one block, in order', () => {
  for (const count of [0, 1, 9, 10, 11, 97]) {
    const rows = rowsOf(count)
    expect(new Blocks().cut(rows).flatMap((block) => block.rows)).toEqual(rows)
  }
})

test('what is said at the end changes the last block alone', () => {
  const cutter = new Blocks()
  const rows = rowsOf(95)
  const before = cutter.cut(rows)
  const after = cutter.cut([...rows.slice(0, -1), { ...row('m_94'), text: 'longer' }])
  expect(after.slice(0, -1).every((block, at) => block === before[at])).toBe(true)
  expect(after.at(-1)).not.toBe(before.at(-1))
})

test('blocks begin where they began when rows before them become fewer', () => {
  const cutter = new Blocks()
  const rows = rowsOf(60)
  const before = cutter.cut(rows)
  const after = cutter.cut([...rows.slice(0, 12), ...rows.slice(15)])
  expect(after.slice(2).map(({ id }) => id)).toEqual(before.slice(2).map(({ id }) => id))
  expect(after[5]).toBe(before[5])
})

test('a block knows the prompt before it', () => {
  const rows = [...rowsOf(10), ...Array.from({ length: 10 }, (_, at) => row(`n_${at}`, 'p_2'))]
  const blocks = new Blocks().cut(rows)
  expect(blocks.map(({ promptBefore }) => promptBefore)).toEqual([undefined, 'p_1'])
})
