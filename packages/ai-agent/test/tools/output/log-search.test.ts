import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLogSearch } from '../../../src/tools/background/log-search.ts'
import type { ReadBytes } from '../../../src/tools/output/stored-text.ts'
import { pageRoom } from '../../../src/tools/output/line-page.ts'
import { DEFAULT_RESULT_LIMITS } from '../../../src/tools/output/truncate-output.ts'

const ROOM = pageRoom(DEFAULT_RESULT_LIMITS)

const never = new AbortController().signal

test('property: a log that grows by any pieces is searched like one that is there at once, and its whole lines once', async () => {
  const pieces = fc.array(fc.stringMatching(/^(?:é|a|\n|hit){0,12}$/), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(pieces, async (grows) => {
      let log = Buffer.alloc(0)
      let bytesRead = 0
      const read: ReadBytes = async (from, to) => {
        const bytes = log.subarray(from, to)
        bytesRead += bytes.length
        return bytes
      }
      await using search = createLogSearch(read, 0, 'hit', ROOM)
      const seen: string[] = []
      let unfinished = 0
      for (const piece of grows) {
        log = Buffer.concat([log, Buffer.from(piece)])
        seen.push(...(await search.find(log.length, never)))
        unfinished += Buffer.byteLength(log.toString().split('\n').at(-1) ?? '')
      }
      // A line that matches before it is whole is seen again when it is longer.
      const lines = log.toString().split('\n')
      const matching = lines.filter((line) => line.includes('hit'))
      expect([...new Set(seen)].filter((line) => lines.includes(line)).toSorted()).toEqual(
        [...new Set(matching)].toSorted(),
      )
      expect(bytesRead).toBeLessThanOrEqual(log.length + unfinished)
    }),
    { numRuns: 15 },
  )
})

test('a log that has not grown is not read', async () => {
  let reads = 0
  const bytes = Buffer.from('one\ntwo\n')
  const read: ReadBytes = async (from, to) => {
    reads++
    return bytes.subarray(from, to)
  }
  await using search = createLogSearch(read, 0, 'three', ROOM)
  expect(await search.find(bytes.length, never)).toEqual([])
  const before = reads
  expect(await search.find(bytes.length, never)).toEqual([])
  expect(reads).toBe(before)
})
