import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Increments } from '../../src/model/wires/chat/reasoning.ts'
import { DEFAULT_PROFILE, profileFor } from '../../src/model/profiles.ts'
import { ThinkTags } from '../../src/model/wires/chat/think-tags.ts'
import { deltas, readPieces, readText, streamOf } from './read-stream.ts'

const PAIRS = [
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
] as const

function tell(pieces: readonly string[]): { text: string; thought: string } {
  const tags = new ThinkTags(PAIRS)
  const told = [...pieces.flatMap((piece) => tags.push(piece)), ...tags.end()]
  const all = (type: string): string => told.map((each) => (each.type === type ? each.text : '')).join('')
  return { text: all('text'), thought: all('thought') }
}

function cutAt(text: string, cuts: readonly number[]): string[] {
  const places = [0, ...cuts.toSorted((a, b) => a - b), text.length]
  return places.slice(1).map((to, index) => text.slice(places[index], to))
}

describe('bug 13: think tags, only by profile, only at the start', () => {
  const CASES: [string, string, string][] = [
    ['<think>a</think>b', 'a', 'b'],
    ['\n <think>\na</think>\n\nb <think>c</think>', 'a', 'b <think>c</think>'],
    ['<thinking>a</thinking>b', 'a', 'b'],
    ['<think>a', 'a', ''],
    ['<think>a</thi', 'a</thi', ''],
    ['<think></think>b', '', 'b'],
    ['<thin', '', '<thin'],
    ['<table>x', '', '<table>x'],
    ['  x <think>y</think>', '', '  x <think>y</think>'],
    ['', '', ''],
    ['  ', '', '  '],
    ['<think>a</think>\n<think>b</think>\n\nc', 'ab', 'c'],
    ['<think>a</think><thinx', 'a', '<thinx'],
    ['<think>a</think> <thin', 'a', '<thin'],
    ['</think>\n\nb', '', 'b'],
    ['</thinker>', '', '</thinker>'],
  ]
  test.each(CASES)('%j', (whole, thought, text) => {
    expect(tell([whole])).toEqual({ thought, text })
    expect(tell(Array.from(whole))).toEqual({ thought, text })
  })

  test('property: any cut', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...CASES),
        fc.array(fc.nat(40), { maxLength: 8 }),
        ([whole, thought, text], cuts) => {
          const within = cuts.map((cut) => Math.min(cut, whole.length))
          expect(tell(cutAt(whole, within))).toEqual({ thought, text })
        },
      ),
    )
  })

  // SharpAI/SwiftLM#115, mudler/LocalAI#11790: templates put the opening tag into the prompt.
  test.each<[string, string, string]>([
    ['I see.\n</think>\n\nb', 'I see.\n', 'b'],
    ['\nI see.</think>\nb', 'I see.', 'b'],
    ['I see.\n</think>{"a":1}', 'I see.\n', '{"a":1}'],
    ['I see.</think>', 'I see.', ''],
    ['Write `</think>` at its end.', '', 'Write `</think>` at its end.'],
    ['Like this:\n<think>\nx\n</think>\ny', '', 'Like this:\n<think>\nx\n</think>\ny'],
    // Code is the subject of the answer.
    ['So:\n```\nx\n</think>\ny\n```\nDone.', '', 'So:\n```\nx\n</think>\ny\n```\nDone.'],
    ['So:\n~~~xml\n</think>\n~~~', '', 'So:\n~~~xml\n</think>\n~~~'],
    ['So:\n````\n```\n</think>\n```\n````', '', 'So:\n````\n```\n</think>\n```\n````'],
    ['A\n```\n</think>\n```\nB\n```js\n1\n```', '', 'A\n```\n</think>\n```\nB\n```js\n1\n```'],
    // Cut off in a later block: nothing says that it were a thought.
    ['A\n```\n</think>\n```\nB\n```js\n1', '', 'A\n```\n</think>\n```\nB\n```js\n1'],
    // Thoughts about it end all the same.
    ['They want\n```\n</think>\n```\n</think>\nb', 'They want\n```\n</think>\n```\n', 'b'],
    [
      'It begins with `<think>`,\n```\n<think>\n```\n</think>\nb',
      'It begins with `<think>`,\n```\n<think>\n```\n',
      'b',
    ],
    ['It ends with `</think>`.\n</think>\n\nb', 'It ends with `</think>`.\n', 'b'],
    // A budget for thoughts ends them wherever they are, in code too.
    ['I write\n```py\ndef\n</think>\n\nb', 'I write\n```py\ndef\n', 'b'],
    ['I write\n```py\ndef\n</think>\n\n```py\nx\n```', 'I write\n```py\ndef\n', '```py\nx\n```'],
    ['I write\n```py\ndef\n</think>\n\n```\nx\n```\nb', 'I write\n```py\ndef\n', '```\nx\n```\nb'],
  ])('thoughts that never began: %j', async (whole, thought, text) => {
    const profile = { ...DEFAULT_PROFILE, thinkTags: PAIRS }
    const pieces = Array.from(whole, (content) => ({ content }))
    const { answer, chunks } = await readText(streamOf(deltas(pieces, 'stop')), profile)
    expect(answer).toMatchObject({ thought, text })
    expect(chunks.map((chunk) => ('text' in chunk ? chunk.text : '')).join('')).toContain(whole.trim())
    expect((await readText(streamOf(deltas(pieces, 'stop')))).answer).toMatchObject({ text: whole })
  })

  const line = fc.constantFrom('', 'So it is.', 'Then `</think>` follows.', '- `<think>`, and', '<br>')
  const block = fc
    .tuple(
      fc.constantFrom('```', '~~~', '````'),
      fc.constantFrom('', 'xml'),
      fc.array(fc.constantFrom('x', '</think>', '<think>')),
    )
    .map(([fence, language, lines]) => [`${fence}${language}`, ...lines, fence].join('\n'))
  const words = fc
    .array(fc.oneof(line, block), { maxLength: 6 })
    .map((lines) => ['Well.', ...lines].join('\n'))

  test('property: an end that never began ends what stood before, code is code, and no cut of the bytes changes that', async () => {
    const profile = { ...DEFAULT_PROFILE, thinkTags: PAIRS }
    await fc.assert(
      fc.asyncProperty(
        words,
        fc.option(words),
        fc.array(fc.nat()),
        fc.nat(),
        async (first, second, cuts, cut) => {
          const whole = second === null ? first : `${first}\n</think>\n\n${second}`
          const expected =
            second === null ? { thought: '', text: first } : { thought: `${first}\n`, text: second }
          const places = cuts.map((at) => at % (whole.length + 1))
          const pieces = cutAt(whole, places).map((content) => ({ content }))
          const bytes = Buffer.from(streamOf(deltas(pieces, 'stop')))
          const inTwo = [bytes.subarray(0, cut % bytes.length), bytes.subarray(cut % bytes.length)]
          const { answer } = await readPieces(inTwo, profile)
          expect(answer).toMatchObject(expected)
        },
      ),
    )
  })

  test('a closing tag that slipped through behind thoughts that were told apart', async () => {
    const profile = { ...DEFAULT_PROFILE, thinkTags: PAIRS }
    const pieces = [
      { reasoning_content: 'hm' },
      { content: '</th' },
      { content: 'ink>\n\n' },
      { content: 'b' },
    ]
    const { answer, chunks } = await readText(streamOf(deltas(pieces, 'stop')), profile)
    expect(answer).toMatchObject({ thought: 'hm', text: 'b' })
    expect(chunks).toEqual([
      { type: 'thought', text: 'hm' },
      { type: 'text', text: 'b' },
    ])
  })

  test('without a profile it is text', async () => {
    const stream = streamOf(deltas([{ content: '<think>a</think>b' }], 'stop'))
    expect((await readText(stream)).answer).toMatchObject({ text: '<think>a</think>b', thought: '' })
    const asked = { ...DEFAULT_PROFILE, thinkTags: PAIRS }
    expect((await readText(stream, asked)).answer).toMatchObject({ text: 'b', thought: 'a' })
  })

  test.each([
    ['http://127.0.0.1:8000/v1', 'deepseek-r1:8b', true],
    ['http://127.0.0.1:8000/v1', 'Qwen/QwQ-32B', true],
    ['http://127.0.0.1:8000/v1', 'llama-3.3', false],
    ['https://api.openai.com/v1', 'gpt-5', false],
    ['https://api.deepseek.com/v1', 'deepseek-reasoner', false],
    ['https://api.groq.com/openai/v1', 'qwen/qwen3-32b', true],
  ])('%s %s: %j', (baseUrl, model, expected) => {
    expect(profileFor(new URL(baseUrl), model).thinkTags.length > 0).toBe(expected)
  })

  test('the deployment knows better', () => {
    const profile = profileFor(new URL('https://api.openai.com/v1'), 'gpt-5', { thinkTags: PAIRS })
    expect(profile).toMatchObject({ thinkTags: PAIRS, reasoning: { when: 'never' } })
  })

  test('what it leaves undefined is as it is known', () => {
    const openAi = new URL('https://api.openai.com/v1')
    const profile = profileFor(openAi, 'gpt-5', { thinkTags: undefined, images: undefined })
    expect(profile).toEqual(profileFor(openAi, 'gpt-5'))
  })
})

describe('cumulative deltas, only by profile', () => {
  const take = (cumulative: boolean, pieces: readonly string[]): string => {
    const increments = new Increments(cumulative)
    return [...pieces.map((piece) => increments.take(piece)), increments.end()].join('')
  }

  test('property: a text that grows is the text, cut anywhere', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.array(fc.nat(30)), (text, cuts) => {
        const ends = [...cuts.map((cut) => Math.min(cut, text.length)).toSorted((a, b) => a - b), text.length]
        expect(
          take(
            true,
            ends.map((end) => text.slice(0, end)),
          ),
        ).toBe(text)
        expect(take(false, cutAt(text, ends))).toBe(text)
      }),
    )
  })

  test('an ordinary stream is known by its first delta that does not repeat', () => {
    expect(take(true, ['1', '10', '1', '!'])).toBe('1101!')
    expect(take(true, ['\n', '\n', 'a'])).toBe('\n\na')
    expect(take(true, ['The sky', ' is', ' blue'])).toBe('The sky is blue')
  })
})
