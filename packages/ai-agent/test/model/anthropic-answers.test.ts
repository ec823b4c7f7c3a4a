/** Answers over Messages: whole, as one body, and cut at every byte. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DEFAULT_PROFILE } from '../../src/model/profiles.ts'
import { ModelError } from '../../src/model/model.ts'
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

const event = (one: object): string => `data: ${JSON.stringify(one)}\n\n`
const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).map((text) => `x${text}`)
/** Not -0, which JSON has not. */
const json = fc.jsonValue({ maxDepth: 1 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)
/** A block of an answer, as it stands in a whole message. */
const block = fc.oneof(
  fc.record({ type: fc.constant('text'), text: words }),
  fc.record({ type: fc.constant('thinking'), thinking: fc.oneof(words, fc.constant('')), signature: words }),
  fc.record({ type: fc.constant('redacted_thinking'), data: words }),
  fc.record({ type: fc.constant('tool_use'), input: fc.dictionary(words, json) }),
)
const content = fc.array(block, { maxLength: 6 }).map((blocks) => [
  ...blocks.map((one, place) =>
    'input' in one ? { type: one.type, id: `t${place}`, name: 'read', input: one.input } : one,
  ),
  // No answer ends in a thought.
  { type: 'text', text: 'End.' },
])

/** The events of a block: it begins empty, and comes in two pieces. */
function eventsOf(one: object, index: number): string[] {
  const { text, thinking, signature, input, ...rest } = one as Record<string, unknown>
  const halves = (whole: unknown): string[] => {
    const chars = Array.from(typeof whole === 'string' ? whole : JSON.stringify(whole))
    return [chars.slice(0, chars.length / 2).join(''), chars.slice(chars.length / 2).join('')]
  }
  const deltas = Object.entries({ text, thinking, partial_json: input }).flatMap(([name, whole]) =>
    whole === undefined ? [] : halves(whole).map((half) => ({ [name]: half })),
  )
  return [
    {
      type: 'content_block_start',
      content_block: { ...rest, ...(thinking === undefined ? {} : { thinking: '' }) },
    },
    ...deltas.map((delta) => ({ type: 'content_block_delta', delta })),
    ...(signature === undefined ? [] : [{ type: 'content_block_delta', delta: { signature } }]),
    { type: 'content_block_stop' },
  ].map((each) => event({ ...each, index }))
}
const END = event({ type: 'message_delta', delta: { stop_reason: 'end_turn' } })

test('property: an answer goes back exactly as it came', async () => {
  await fc.assert(
    fc.asyncProperty(content, async (blocks) => {
      const { answer } = await read([...blocks.flatMap(eventsOf), END].join(''))
      const { text, calls, replay } = answer
      const said = {
        role: 'assistant',
        content: text,
        calls,
        ...(replay === undefined ? {} : { replay }),
      } as const
      const options = { model: 'm', streaming: true, profile: DEFAULT_PROFILE, refused: new Set<string>() }
      const body = anthropicWire.body({ messages: [{ role: 'user', content: 'Hi' }, said] }, options)
      const [, sent] = body['messages'] as { content: { type: string; text?: string }[] }[]
      // Texts in a row may be one text where nothing else has to go back.
      const joined = (list: readonly object[]): unknown[] =>
        list.reduce<Record<string, unknown>[]>((all, one) => {
          const [last, next] = [all.at(-1), one as Record<string, unknown>]
          if (last?.['type'] === 'text' && next['type'] === 'text')
            return [...all.slice(0, -1), { ...last, text: `${String(last['text'])}${String(next['text'])}` }]
          return [...all, next]
        }, [])
      expect(joined(sent?.content ?? [])).toEqual(joined(blocks))
    }),
  )
})

test('property: events that are lost, repeated or in any order give an answer or a typed error', async () => {
  const shuffled = content.chain((blocks) => {
    const events = [...blocks.flatMap(eventsOf), END]
    return fc.array(fc.constantFrom(...events), { maxLength: events.length + 4 })
  })
  await fc.assert(
    fc.asyncProperty(shuffled, async (events) => {
      const outcome = await read(`${events.join('')}${END}`).catch((error: unknown) => error)
      if (outcome instanceof ModelError) return
      const { answer, chunks } = outcome as Awaited<ReturnType<typeof read>>
      const shown = chunks.map((chunk) => (chunk.type === 'text' ? chunk.text : '')).join('')
      expect(answer.text).toBe(shown)
      const chars = answer.replay?.reduce((sum, item) => sum + (item.chars ?? 0), 0)
      expect(chars ?? answer.text.length).toBe(answer.text.length)
    }),
  )
})
