import fc from 'fast-check'
import { expect, test } from 'vitest'

import { OutputQueue } from '../../src/sbxd/output.ts'
import type { CommandStream } from '../../src/sandbox.ts'

/** Pieces of a stream with consecutive bytes, so that a lost, doubled or moved one shows. */
function writer(queue: OutputQueue): (stream: CommandStream, length: number) => void {
  const next = { stdout: 0, stderr: 0 }
  return (stream, length) => {
    const offset = next[stream]
    next[stream] += length
    const data = Buffer.from(Array.from({ length }, (_, i) => (offset + i) % 251))
    queue.push(stream, offset, data)
  }
}

test.each([
  ['with bytes of its own', false],
  ['lent', true],
])(
  'whatever is written and taken in whatever order, each stream arrives whole and in order: %s',
  async (_how, lend) => {
    const step = fc.oneof(
      {
        weight: 20,
        arbitrary: fc.tuple(fc.constantFrom('stdout', 'stderr'), fc.integer({ min: 1, max: 3 })),
      },
      {
        weight: 1,
        arbitrary: fc.tuple(fc.constantFrom('stdout', 'stderr'), fc.integer({ min: 1, max: 9_000 })),
      },
      { weight: 3, arbitrary: fc.constant('take' as const) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 1_500, size: 'max' }), async (steps) => {
        const queue = new OutputQueue(() => {}, lend)
        const write = writer(queue)
        const iterator = queue[Symbol.asyncIterator]()
        const sent = { stdout: 0, stderr: 0 }
        const seen = { stdout: 0, stderr: 0 }
        /** The chunk that was taken last must stay what it is until the next is asked for. */
        let check = (): void => {}
        const take = async (): Promise<boolean> => {
          check()
          const { done, value } = await iterator.next()
          if (done) return false
          expect(value.offset).toBe(seen[value.stream])
          check = () =>
            value.data.forEach((byte, i) => {
              if (byte !== (value.offset + i) % 251) throw new Error(`byte ${value.offset + i} is another`)
            })
          check()
          seen[value.stream] += value.data.length
          return true
        }
        for (const one of steps) {
          if (one === 'take') {
            if (seen.stdout + seen.stderr < sent.stdout + sent.stderr) await take()
            continue
          }
          const [stream, length] = one as [CommandStream, number]
          write(stream, length)
          sent[stream] += length
        }
        queue.end()
        while (await take());
        expect(seen).toEqual(sent)
      }),
      { numRuns: 40 },
    )
  },
)

test('a chunk that is not lent stays what it is', async () => {
  const queue = new OutputQueue(() => {})
  const write = writer(queue)
  const kept: Uint8Array[] = []
  const iterator = queue[Symbol.asyncIterator]()
  for (let i = 0; i < 100; i += 1) {
    write('stdout', 1_000)
    kept.push((await iterator.next()).value?.data ?? Buffer.alloc(0))
  }
  const whole = Buffer.concat(kept)
  expect(whole).toHaveLength(100_000)
  expect(whole.findIndex((byte, i) => byte !== i % 251)).toBe(-1)
})

test('an untaken flood of tiny alternating pieces costs little more than its bytes', async () => {
  const queue = new OutputQueue(() => {})
  const write = writer(queue)
  for (let i = 0; i < 400_000; i += 1) write(i % 2 ? 'stdout' : 'stderr', 1)
  queue.end()
  let chunks = 0
  let bytes = 0
  for await (const { data } of queue) {
    chunks += 1
    bytes += data.length
  }
  expect(bytes).toBe(400_000)
  expect(chunks).toBeLessThan(300)
})
