/** Answers over Messages: whole, as one body, and cut at every byte. */
import { describe, expect, test } from 'vitest'
import { anthropicWire } from '../../src/model/wires/anthropic/anthropic-wire.ts'
import { ANTHROPIC } from './documented/anthropic.ts'
import { readDocumented } from './documented/read.ts'
import { readPieces } from './read-stream.ts'

const ALL = Object.entries(ANTHROPIC)

describe('as it was streamed', () => {
  test.each(ALL)('%s', async (_, documented) => {
    expect(await readDocumented(documented, [documented.stream])).toMatchObject(documented.gives)
  })
})

describe('without a stream it is the same message', () => {
  test.each(ALL.filter(([, { whole }]) => whole !== undefined))('%s', async (_, documented) => {
    const streamed = await readDocumented(documented, [documented.stream])
    expect(await readDocumented(documented, [`\n${JSON.stringify(documented.whole, null, 1)}\n`])).toEqual(
      streamed,
    )
  })
})

test('a stream that is cut at any byte gives the same answer', async () => {
  for (const [name, documented] of ALL) {
    const bytes = new TextEncoder().encode(documented.stream)
    const whole = JSON.stringify(await readDocumented(documented, [bytes]))
    for (let at = 1; at < bytes.length; at++) {
      const cut = await readDocumented(documented, [bytes.subarray(0, at), bytes.subarray(at)])
      // Comparing texts costs a tenth of comparing values.
      if (JSON.stringify(cut) !== whole) expect(cut, `${name}, cut at ${at}`).toEqual(JSON.parse(whole))
    }
    const single = Array.from(bytes, (byte) => Uint8Array.of(byte))
    expect(JSON.stringify(await readDocumented(documented, single)), name).toBe(whole)
  }
}, 60_000)

test('there are at least forty of them', () => {
  expect(ALL.length).toBeGreaterThanOrEqual(40)
})

const read = (text: string) => readPieces([text], undefined, anthropicWire)

test('4,000 deltas of arguments are one call, which is shown as it grows', async () => {
  const event = (one: object): string => `data: ${JSON.stringify(one)}\n\n`
  const pieces = ['{"text":"', ...Array.from({ length: 4_000 }, (_, i) => `line ${i}\\n`), '"}']
  const content_block = { type: 'tool_use', id: 'a', name: 'write' }
  const { answer, chunks } = await read(
    [
      event({ type: 'content_block_start', index: 0, content_block }),
      ...pieces.map((partial_json) =>
        event({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json } }),
      ),
      event({ type: 'message_delta', delta: { stop_reason: 'tool_use' } }),
    ].join(''),
  )
  expect(answer.calls).toEqual([{ id: 'a', name: 'write', args: JSON.parse(pieces.join('')) as unknown }])
  expect(chunks.length).toBeGreaterThan(10)
  expect(chunks.length).toBeLessThan(400)
})

test.each([
  '<html><title>502 Bad Gateway</title></html>',
  '<html></html>',
  '{"hello":"world"}',
  '{"object":"list"}',
])('no answer of this API: %s', async (body) => {
  await expect(read(body)).rejects.toMatchObject({ name: 'ModelError', message: expect.stringMatching(/\w/) })
})
