/**
 * The start of a body, in pieces. Counts characters, not time: the machine that runs this may be
 * busy.
 */
import { afterEach, expect, test, vi } from 'vitest'
import { readPieces, streamOf, deltas } from './read-stream.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const BLANKS: string[] = Array.from({ length: 2_000 }, () => ' \n'.repeat(10))

test.each([
  ['a stream', streamOf(deltas([{ content: 'ab' }], 'stop'))],
  ['a body', JSON.stringify({ choices: [{ message: { content: 'ab' }, finish_reason: 'stop' }] })],
])('%s behind many blanks: each piece is looked at once', async (_, text) => {
  let looked = 0
  const trimStart = String.prototype.trimStart
  vi.spyOn(String.prototype, 'trimStart').mockImplementation(function count(this: string) {
    looked += this.length
    return trimStart.call(this)
  })
  expect((await readPieces([...BLANKS, text])).answer.text).toBe('ab')
  expect(looked).toBeLessThan(10 * BLANKS.join('').length)
})
