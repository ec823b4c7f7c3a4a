import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LineSplitter, TOO_LONG } from '../../src/node/line-splitter.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const LIMIT = 40

function split(pieces: readonly Uint8Array[]): (string | typeof TOO_LONG)[] {
  const splitter = new LineSplitter(LIMIT)
  const lines = pieces.flatMap((piece) => [...splitter.push(piece)])
  const rest = splitter.rest()
  return rest === undefined ? lines : [...lines, rest]
}

describe('bytes as lines', () => {
  test('however they are cut, the lines are the same; one that is too long takes no other with it', () => {
    const line = fc
      .string({ unit: 'binary', maxLength: 30 })
      .map((text) => text.replaceAll('\n', ' ').toWellFormed())
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat(400)), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''))
        const at = [...new Set([0, ...cuts.filter((cut) => cut < bytes.length), bytes.length])].toSorted(
          (a, b) => a - b,
        )
        const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
        const fits = (text: string): boolean => Buffer.byteLength(text) <= LIMIT
        expect(split(pieces)).toEqual(lines.map((text) => (fits(text) ? text : TOO_LONG)))
      }),
    )
  })

  test('what has no end of line yet is the rest; nothing is none', () => {
    expect(split([Buffer.from('a\nb')])).toEqual(['a', 'b'])
    expect(split([Buffer.from('x'.repeat(LIMIT + 1))])).toEqual([TOO_LONG])
    expect(split([])).toEqual([])
  })

  test('what is too long is not kept', () => {
    const splitter = new LineSplitter(LIMIT)
    const megabyte = Buffer.alloc(1024 * 1024, 'x')
    collectGarbage()
    const before = process.memoryUsage().arrayBuffers
    for (let n = 0; n < 200; n++) expect([...splitter.push(Buffer.from(megabyte))]).toEqual([])
    collectGarbage()
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(150 * 1024 * 1024)
    expect([...splitter.push(Buffer.from('\nnext\n'))]).toEqual([TOO_LONG, 'next'])
  })
})
