import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ArgumentsBuffer, argumentsProblem, readArguments } from '../../src/model/arguments.ts'
import { parseLenient } from '../../src/model/lenient-json.ts'
import { readText } from './read-stream.ts'

const valueOf = (text: string): unknown => {
  const read = parseLenient(text)
  return read.ok ? read.value : read
}

describe('what is wrong in its syntax alone is mended, and runs', () => {
  test.each<[string, string, unknown]>([
    [
      'an escape that JSON does not have',
      String.raw`{"command": "sed 's/a\.b/HIT/g'"}`,
      { command: String.raw`sed 's/a\.b/HIT/g'` },
    ],
    ['a Windows path', String.raw`{"path": "C:\Users\x"}`, { path: String.raw`C:\Users\x` }],
    ['an escaped line end', '{"command": "ls \\\n -la"}', { command: 'ls \\\n -la' }],
    ['an escaped apostrophe', String.raw`{"text": "it\'s"}`, { text: String.raw`it\'s` }],
    ['raw line ends and tabs', '{"content": "a\r\n\tb\n"}', { content: 'a\r\n\tb\n' }],
    ['another raw control character', '{"content": "a\u001b[0m"}', { content: 'a\u001b[0m' }],
    ['trailing commas', '{"a": [1, 2, ], "b": {"c": 3,},}', { a: [1, 2], b: { c: 3 } }],
    ['unquoted keys', '{path: "a", $x_1: 2}', { path: 'a', $x_1: 2 }],
    ['single quotes', `{'path': 'a b', 'n': ['x']}`, { path: 'a b', n: ['x'] }],
    ['escapes in single quotes', String.raw`{'a': 'x\ny\.z'}`, { a: 'x\ny\\.z' }],
    ['words of Python', '{"a": True, "b": [False, None]}', { a: true, b: [false, null] }],
    ['a code fence', '```json\n{path: "a",}\n```', { path: 'a' }],
    ['a key that objects have of themselves', '{__proto__: 1,}', JSON.parse('{"__proto__": 1}')],
  ])('%s', (_, text, expected) => {
    expect(readArguments(text, false)).toEqual({ args: expected })
    // In a cut answer, nothing that had to be mended.
    expect(readArguments(text, true)).toEqual({ args: text, invalid: 'truncated' })
  })
})

describe('what could be read in two ways does not run, and says where', () => {
  test.each<[string, string, RegExp]>([
    ['a comment', '{"a": 1, // one\n"b": 2}', /column 10 .*double quotes/],
    ['a comment for a value', '{"a": /* one */ 1}', /no comments/],
    ['a comment behind a value', '{"a": 1 # one\n}', /comma or }/],
    ['an unquoted value', '{"command": curl http://x.y/z}', /column 13 \(at "curl http/],
    ['an unquoted value behind a word', '{"a": True.x}', /column 7/],
    ['inner double quotes', '{"command": "echo "a b""}', /column 20 .*\\"/],
    ['a double quote in single quotes', `{'command': 'echo "a"'}`, /double quotes/],
    ['an apostrophe in single quotes', `{'text': 'it's'}`, /comma or }/],
    ['an escaped apostrophe in single quotes', String.raw`{'text': 'it\'s'}`, /double quotes/],
    ['NaN', '{"a": NaN}', /column 7/],
    ['undefined', '{"a": undefined}', /column 7/],
    ['an octal number', '{"mode": 010}', /no JSON number/],
    ['a number that ends in a point', '{"a": 1.}', /no JSON number/],
    ['a hexadecimal number', '{"a": 0x10}', /no JSON number/],
    ['a plus sign', '{"a": +1}', /no JSON value/],
    [String.raw`\u without four digits`, String.raw`{"path": "C:\users\ada"}`, /four hexadecimal/],
    [String.raw`an illegal escape beside \b`, String.raw`{"pattern": "\bword\b\."}`, /two ways/],
    [String.raw`an illegal escape beside \f`, String.raw`{"path": "C:\foo\Bar"}`, /two ways/],
    ['a missing comma', '{"a": 1 "b": 2}', /comma or }/],
    ['two commas', '{"a": [1,,2]}', /column 10/],
    ['a missing colon', '{"a" 1}', /colon/],
    ['depth', `{"a": ${'['.repeat(300)}${']'.repeat(300)},}`, /200 deep/],
  ])('%s', (_, text, why) => {
    expect(readArguments(text, false)).toEqual({ args: text, invalid: 'malformed' })
    expect(argumentsProblem(text)).toMatch(why)
  })

  test.each(Object.getOwnPropertyNames(Object.prototype))('a name that every object has: %s', (name) => {
    const text = `{"a": ${name}}`
    expect(readArguments(text, false)).toEqual({ args: text, invalid: 'malformed' })
    expect(readArguments(`{${name}: 1}`, false)).toEqual({ args: JSON.parse(`{"${name}": 1}`) })
  })

  test('the line is counted, and what stands there is quoted', () => {
    expect(argumentsProblem('{\n  "a": 1,\n  "b": x\u001b\n}')).toBe(
      'Line 3, column 8 (at "x\\u001b\\n}"): this is no JSON value. Put text into double quotes; other values are numbers, true, false and null.',
    )
  })
})

test.each([
  '{"a": 1',
  '{"a": "x',
  `{'a': 'x`,
  '{"a": [1, 2,',
  '{"a',
  '{"a":',
  String.raw`{"a": "x\ `.trim(),
  String.raw`{"a": "\u00`,
  '{a',
  '{"a": b',
])('what was never closed is truncated: %j', (text) => {
  expect(readArguments(text, false)).toEqual({ args: text, invalid: 'truncated' })
})

describe('a call is read as its text is', () => {
  const read = (...pieces: unknown[]): unknown => {
    const buffer = new ArgumentsBuffer()
    for (const piece of pieces) buffer.push(piece)
    return buffer.read(false)
  }

  test('brackets within single quotes end nothing', () => {
    expect(read(`{'a': '}`, ` x}', 'b': 1}`)).toEqual({ args: { a: '} x}', b: 1 } })
  })

  test('a text in a text is mended as any other, and no more', () => {
    const twice = JSON.stringify('{"command": "a\nb\\.c",}')
    expect(read(twice)).toEqual({ args: { command: 'a\nb\\.c' } })
    const comment = JSON.stringify('{"a": 1, // one\n}')
    expect(read(comment)).toEqual({ args: comment, invalid: 'malformed' })
    expect(argumentsProblem(comment)).toMatch(/In the text that was sent: Line 1, column 10 /)
    const cut = JSON.stringify('{"path": "/tmp')
    expect(read(cut)).toEqual({ args: cut, invalid: 'truncated' })
  })

  test.each(['```\n{a: 1}\n```', '```JSON\n{a: 1}```', '```python\n{"a": 1}\n```\n', '```json {"a": 1} ```'])(
    'a code fence: %j',
    (text) => {
      expect(read(text)).toEqual({ args: { a: 1 } })
    },
  )

  test('many line ends in a code fence cost no more than others', () => {
    const text = `\`\`\`json\n{"a": "x"${'\n'.repeat(1_000_000)}`
    expect(read(text)).toMatchObject({ invalid: 'malformed' })
  })

  test.each([String.raw`{"a":"\u1"}`, String.raw`{"a":"\u"}`, '{"text": "say "hi"}'])(
    'a bracket that was closed is no cut: %j',
    (text) => {
      expect(read(text)).toEqual({ args: text, invalid: 'malformed' })
      expect(argumentsProblem(text)).toMatch(/^Line 1, column/)
    },
  )

  test.each([
    '{"command":"ls"} // {"command":"rm"}',
    '{"command":"ls"} /* cwd */',
    '{"command":"ls"} # list',
  ])('a comment behind the arguments may hold some: %j', (text) => {
    expect(read(text)).toEqual({ args: text, invalid: 'malformed' })
  })

  test('NaN in arguments that are no text is not made null', async () => {
    const event = (args: string): string =>
      `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":${args}}}]},"logprobs":{"x":NaN},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n`
    expect((await readText(event('{"n":NaN}'))).answer.calls).toEqual([
      { id: 'a', name: 'one', args: '{"n":NaN}', invalid: 'malformed' },
    ])
    expect((await readText(event('{"n":null}'))).answer.calls).toEqual([
      { id: 'a', name: 'one', args: { n: null } },
    ])
  })
})

// ── Whatever the value, and however it is written ───────────────────────────────────────────────────────────

const word = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,6}$/)
const anyText = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc
    .array(fc.constantFrom('a', '\n', '\t', '\r', ' ', '}', ']', ',', ':', '//', '#', 'True', 'é', '😀'), {
      maxLength: 8,
    })
    .map((parts) => parts.join('')),
)
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    anyText,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
    fc.constantFrom(true, false, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(word, anyText), tie('value'), { maxKeys: 3 }),
  ),
}))

/** `value` as a careless model may write it; `toss` decides at each place. */
function carelessly(value: unknown, toss: () => boolean): string {
  const space = (): string => (toss() ? ' \n' : '')
  const items = (open: string, parts: string[], close: string): string =>
    open +
    space() +
    parts.join(`,${space()}`) +
    (parts.length > 0 && toss() ? `${space()},` : '') +
    space() +
    close
  if (typeof value === 'string') return carelessText(value, toss)
  if (value === null) return toss() ? 'None' : 'null'
  if (value === true) return toss() ? 'True' : 'true'
  if (value === false) return toss() ? 'False' : 'false'
  if (Array.isArray(value))
    return items(
      '[',
      value.map((item) => carelessly(item, toss)),
      ']',
    )
  if (typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).map(([name, item]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) && toss() ? name : carelessText(name, toss)
    return `${key}${space()}:${space()}${carelessly(item, toss)}`
  })
  return items('{', members, '}')
}

function carelessText(text: string, toss: () => boolean): string {
  if (!/["'\\]/.test(text) && toss()) return `'${text}'`
  const raw = toss()
  return raw ? `"${text.replaceAll(/["\\]/g, '\\$&')}"` : JSON.stringify(text)
}

test('a value that was written carelessly is that value', () => {
  let mended = 0
  fc.assert(
    fc.property(anyValue, fc.infiniteStream(fc.boolean()), (value, tosses) => {
      const text = carelessly(value, () => tosses.next().value === true)
      try {
        JSON.parse(text)
      } catch {
        mended++
      }
      expect(valueOf(text)).toEqual(JSON.parse(JSON.stringify(value)))
    }),
    { numRuns: 2_000 },
  )
  expect(mended, 'most of them are no JSON').toBeGreaterThan(500)
})

test('a mended value has every character of the text that is not syntax, in its order, and no other', () => {
  const pieces = [
    '\\',
    '\\',
    '"',
    "'",
    ',',
    ':',
    '{',
    '}',
    '[',
    ']',
    '/',
    '//',
    '#',
    ' ',
    'b',
    'f',
    'n',
    'x',
    '1',
    '0',
    'é',
  ]
  const text = fc
    .tuple(
      fc.constantFrom(['{"k":"', '"}'], ["{'k':'", "'}"], ['{k:', '}'], ['[', ',]'], ['{"k":["', '",]}']),
      fc.shuffledSubarray(pieces),
    )
    .map(([[open, close], inner]) => `${open}${inner.join('')}${close}`)
  // Quotes, brackets, commas, colons and backslashes may be syntax or text; all else must come through.
  const contents = (json: string): string => json.replaceAll(/["'{}[\]:,\\\s]/g, '')
  let mended = 0
  fc.assert(
    fc.property(text, (raw) => {
      const read = parseLenient(raw)
      if (!read.ok) return
      mended++
      expect(contents(JSON.stringify(read.value))).toBe(contents(raw))
    }),
    { numRuns: 20_000 },
  )
  expect(mended).toBeGreaterThan(500)
})

test('any text at all has a value or a problem', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    '\\',
    'u00',
    '4',
    ',',
    ':',
    'True',
    'None',
    'a',
    '1',
    '.',
    '-',
    '\n',
    '\u0000',
    ' ',
    '\ud800',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 20 }), (parts) => {
      const read = parseLenient(parts.join(''))
      expect(read.ok || read.problem.length > 0).toBe(true)
    }),
    { numRuns: 20_000 },
  )
})
