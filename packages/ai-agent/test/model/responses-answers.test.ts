/** Responses streams of each provider family: whole, as one body, and cut at every byte. */
import { describe, expect, test } from 'vitest'
import { RESPONSES } from './documented/responses.ts'
import { readDocumented } from './documented/read.ts'

const ALL = Object.entries(RESPONSES)

describe('as it was streamed', () => {
  test.each(ALL)('%s', async (_, documented) => {
    expect(await readDocumented(documented, [documented.stream])).toMatchObject(documented.gives)
  })
})

describe('without a stream it is the same message', () => {
  test.each(ALL.filter(([, { whole }]) => whole !== undefined))('%s', async (_, documented) => {
    const streamed = await readDocumented(documented, [documented.stream])
    expect(await readDocumented(documented, [JSON.stringify(documented.whole, null, 1)])).toEqual(streamed)
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

test('at least forty of them have a source', () => {
  const sources = ALL.map(([, { source }]) => source).filter((source) => source !== 'made up')
  expect(sources.length).toBeGreaterThanOrEqual(40)
})
