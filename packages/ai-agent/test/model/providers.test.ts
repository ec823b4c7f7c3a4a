/** Each provider family's answers, streamed and whole, and cut anywhere. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CLOUDS } from './documented/clouds.ts'
import { GATEWAYS } from './documented/gateways.ts'
import { HOSTED } from './documented/hosted.ts'
import { LOCAL } from './documented/local.ts'
import { ODD_BYTES } from './documented/odd-bytes.ts'
import { RELAYS } from './documented/relays.ts'
import { SAID_TWICE } from './documented/said-twice.ts'
import { readDocumented as read } from './documented/read.ts'

const ALL = Object.entries({
  ...CLOUDS,
  ...GATEWAYS,
  ...HOSTED,
  ...LOCAL,
  ...ODD_BYTES,
  ...RELAYS,
  ...SAID_TWICE,
}).map(([name, documented]) => [`row ${documented.rows.join(', ')}: ${name}`, documented] as const)
const encoder = new TextEncoder()

describe('as it was streamed', () => {
  test.each(ALL)('%s', async (_, documented) => {
    expect(await read(documented, [documented.stream])).toMatchObject(documented.gives)
  })
})

describe('without a stream it is the same message', () => {
  test.each(ALL.filter(([, { whole }]) => whole !== undefined))('%s', async (_, documented) => {
    const streamed = await read(documented, [documented.stream])
    expect(await read(documented, [JSON.stringify(documented.whole)])).toEqual(streamed)
    expect(await read(documented, [`\n\n${JSON.stringify(documented.whole, null, 2)}\n`])).toEqual(streamed)
  })
})

describe('property: any cut of the bytes gives the same answer', () => {
  test.each(ALL)('%s', async (_, documented) => {
    const bytes = encoder.encode(documented.stream)
    const whole = await read(documented, [bytes])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 12 }), async (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
        const pieces = places.slice(1).map((to, index) => bytes.subarray(places[index], to))
        expect(await read(documented, pieces)).toEqual(whole)
      }),
      { numRuns: 25 },
    )
    expect(
      await read(
        documented,
        Array.from(bytes, (byte) => Uint8Array.of(byte)),
      ),
    ).toEqual(whole)
  })
})

test.each([
  'OpenAI',
  'Azure',
  'DashScope',
  'DeepSeek',
  'Kimi',
  'Mistral',
  'vLLM',
  'Ollama',
  'llama.cpp',
  'LM Studio',
  'OpenRouter',
  'Groq',
  'Gemini',
  'LiteLLM',
  'one-api',
])('%s has a documented stream', (family) => {
  expect(ALL.filter(([name]) => name.includes(`: ${family}: `)).length).toBeGreaterThan(0)
})

test('every row of the stream has a documented stream', () => {
  const rows = new Set(ALL.flatMap(([, documented]) => documented.rows))
  for (const row of [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 22]) {
    expect(rows, `row ${row}`).toContain(row)
  }
})
