/** Counts characters, not time: the machine that runs this may be busy. */
import { afterEach, expect, test, vi } from 'vitest'
import { chunk, events, piece, tools } from './documented/answer.ts'
import { callsOf, readPieces } from './read-stream.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

test('bug 30: 200 kB of arguments in 2,000 deltas are parsed once, at the end', async () => {
  const content = 'line of a file\n'.repeat(14_000).slice(0, 200_000)
  const args = JSON.stringify({ path: 'a.txt', content })
  const step = Math.ceil(args.length / 2_000)
  const pieces = Array.from({ length: 2_000 }, (_, index) => args.slice(index * step, (index + 1) * step))
  const stream = events(
    chunk(tools(piece(0, '', { id: 'a' }, 'write'))),
    ...pieces.map((part) => chunk(tools(piece(0, part)))),
    chunk({}, 'tool_calls'),
  )
  let parsed = 0
  const parse = JSON.parse
  vi.spyOn(JSON, 'parse').mockImplementation((text: string) => {
    parsed += text.length
    return parse(text) as unknown
  })
  const { answer } = await readPieces([stream])
  expect(answer.calls).toEqual([{ id: 'a', name: 'write', args: { path: 'a.txt', content } }])
  // Each event once, the arguments once.
  expect(parsed).toBeLessThan(stream.length + 2 * args.length)
})

test('bug 30: many calls, and a call flushed again and again, stay linear too', async () => {
  let parsed = 0
  const parse = JSON.parse
  const whole = JSON.stringify({ text: 'x'.repeat(2_000) })
  vi.spyOn(JSON, 'parse').mockImplementation((text: string) => {
    parsed += text.length
    return parse(text) as unknown
  })
  const many = Array.from({ length: 100 }, (_, index) => ({
    index,
    id: `id${index}`,
    function: { name: 'echo', arguments: whole },
  }))
  expect(await callsOf([...many, ...many])).toHaveLength(100)
  expect(parsed).toBeLessThan(200 * whole.length * 5)
})

test('deltas that are each a whole object, another one than before, are not joined and parsed again for each', async () => {
  let parsed = 0
  const parse = JSON.parse
  vi.spyOn(JSON, 'parse').mockImplementation((text: string) => {
    parsed += text.length
    return parse(text) as unknown
  })
  const grown = Array.from({ length: 300 }, (_, index) => JSON.stringify({ text: 'x'.repeat(index) }))
  const first = { index: 0, id: 'a', function: { name: 'echo', arguments: '' } }
  const deltas = grown.map((args) => ({ index: 0, function: { arguments: args } }))
  // Which of them is meant nobody knows.
  expect(await callsOf([first, ...deltas])).toMatchObject([{ id: 'a', name: 'echo', invalid: 'malformed' }])
  // Its event, and itself to be compared; all of them together only at the end.
  expect(parsed).toBeLessThan(10 * grown.join('').length)
})
