/** Calls as providers really stream them. Tests are named by the rows of the list of bugs that come back everywhere. */
import { describe, expect, test } from 'vitest'
import { ArgumentsBuffer, readArguments } from '../../src/model/arguments.ts'
import { callsOf, deltas, readText, streamOf } from './read-stream.ts'

const fn = (name: string | undefined, args?: unknown): unknown => ({ function: { name, arguments: args } })
const call = (id: string, name: string, args: unknown) => ({ id, name, args })

describe('bug 3: index missing, all 0, or from 1', () => {
  test('two calls interleaved by index', async () => {
    expect(
      await callsOf([
        { index: 0, id: 'a', function: { name: 'one', arguments: '' } },
        { index: 1, id: 'b', function: { name: 'two', arguments: '' } },
        { index: 0, function: { arguments: '{"x":' } },
        { index: 1, function: { arguments: '{"y":' } },
        { index: 0, function: { arguments: '1}' } },
        { index: 1, function: { arguments: '2}' } },
      ]),
    ).toEqual([call('a', 'one', { x: 1 }), call('b', 'two', { y: 2 })])
  })

  test('from 1', async () => {
    const calls = await callsOf([
      { index: 1, id: 'a', function: { name: 'one', arguments: '{}' } },
      { index: 2, id: 'b', function: { name: 'two', arguments: '{}' } },
    ])
    expect(calls.map((each) => each.name)).toEqual(['one', 'two'])
  })

  test('all 0 with ids of their own, whole or in pieces', async () => {
    expect(
      await callsOf([
        { index: 0, id: 'a', function: { name: 'same', arguments: '{"x":' } },
        { index: 0, function: { arguments: '1}' } },
        { index: 0, id: 'b', function: { name: 'same', arguments: '{"x":' } },
        { index: 0, function: { arguments: '2}' } },
      ]),
    ).toEqual([call('a', 'same', { x: 1 }), call('b', 'same', { x: 2 })])
  })

  test('all 0 without ids: complete arguments and a new name', async () => {
    const calls = await callsOf([
      { index: 0, ...(fn('one', '{"x":1}') as object) },
      { index: 0, ...(fn('two', '{"y"') as object) },
      { index: 0, ...(fn(undefined, ':2}') as object) },
      { index: 0, ...(fn('two', '{"y":3}') as object) },
    ])
    expect(calls).toEqual([
      call('call_1', 'one', { x: 1 }),
      call('call_2', 'two', { y: 2 }),
      call('call_3', 'two', { y: 3 }),
    ])
  })

  test('no index and no id, whole calls', async () => {
    const calls = await callsOf([fn('one', { x: 1 }), fn('two', '{"y":2}'), fn('two', '{"y":2,"z":1}')])
    expect(calls.map(({ name, args }) => ({ name, args }))).toEqual([
      { name: 'one', args: { x: 1 } },
      { name: 'two', args: { y: 2 } },
      { name: 'two', args: { y: 2, z: 1 } },
    ])
  })

  test('no index, id only at the beginning', async () => {
    expect(
      await callsOf([
        { id: 'a', function: { name: 'one', arguments: '' } },
        { function: { arguments: '{"x":1}' } },
        { id: 'b', function: { name: 'two', arguments: '{"y"' } },
        { function: { arguments: ':2}' } },
      ]),
    ).toEqual([call('a', 'one', { x: 1 }), call('b', 'two', { y: 2 })])
  })

  test('a number in a string', async () => {
    expect(
      await callsOf([
        { index: '0', id: 'a', function: { name: 'one', arguments: '{' } },
        { index: '0', function: { arguments: '}' } },
      ]),
    ).toEqual([call('a', 'one', {})])
  })

  test('an id that comes after the name', async () => {
    expect(
      await callsOf([
        { index: 0, ...(fn('one', '') as object) },
        { index: 0, id: 'late', function: { arguments: '{"x":1}' } },
      ]),
    ).toEqual([call('late', 'one', { x: 1 })])
  })
})

describe('bug 3: relatives', () => {
  test('two named elements of one delta are two calls', async () => {
    const both = (names: string[]) =>
      readText(
        streamOf(
          deltas([{ tool_calls: names.map((name) => ({ index: 0, function: { name, arguments: '' } })) }]),
        ),
      )
    expect((await both(['now', 'list'])).answer.calls).toMatchObject([{ name: 'now' }, { name: 'list' }])
    expect((await both(['now', 'now'])).answer.calls).toHaveLength(2)
  })

  test('a name that comes after its arguments', async () => {
    expect(
      await callsOf([
        { index: 0, id: 'a', function: { arguments: '{"x":1}' } },
        { index: 0, function: { name: 'late' } },
      ]),
    ).toEqual([call('a', 'late', { x: 1 })])
  })

  test('an id of our own is never one of theirs', async () => {
    const calls = await callsOf([
      { index: 0, function: { name: 'one', arguments: '{}' } },
      { index: 1, id: 'call_1', function: { name: 'two', arguments: '{}' } },
    ])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
  })

  test('a whole message completes calls that were streamed in part', async () => {
    const part = { index: 0, id: 'a', function: { name: 'one', arguments: '{"x"' } }
    const message = { tool_calls: [{ id: 'a', function: { name: 'one', arguments: '{"x":1}' } }] }
    const chunks = [
      ...deltas([{ tool_calls: [part] }], null),
      { choices: [{ message, finish_reason: 'stop' }] },
    ]
    expect((await readText(streamOf(chunks))).answer.calls).toEqual([call('a', 'one', { x: 1 })])
  })
})

describe('bug 4: empty never overwrites', () => {
  test.each(['', null])('%j as id and name in later deltas', async (empty) => {
    expect(
      await callsOf([
        { index: 0, id: 'a', function: { name: 'one', arguments: '{"x"' } },
        { index: 0, id: empty, function: { name: empty, arguments: ':1' } },
        { index: 0, id: empty, type: empty, function: { name: empty, arguments: '}' } },
      ]),
    ).toEqual([call('a', 'one', { x: 1 })])
  })
})

describe('bug 5: the same id for two calls', () => {
  test('both are kept; the session makes the ids unique', async () => {
    expect(
      await callsOf([
        { index: 0, id: 'call_0', function: { name: 'read', arguments: '{"path":"a"}' } },
        { index: 1, id: 'call_0', function: { name: 'read', arguments: '{"path":"b"}' } },
      ]),
    ).toEqual([call('call_0', 'read', { path: 'a' }), call('call_0', 'read', { path: 'b' })])
  })

  test('in pieces too', async () => {
    const calls = await callsOf([
      { index: 0, id: 'call_0', function: { name: 'read', arguments: '' } },
      { index: 1, id: 'call_0', function: { name: 'list', arguments: '' } },
      { index: 0, id: 'call_0', function: { arguments: '{"path":"a"}' } },
      { index: 1, id: 'call_0', function: { arguments: '{"path":"b"}' } },
    ])
    expect(calls).toEqual([call('call_0', 'read', { path: 'a' }), call('call_0', 'list', { path: 'b' })])
  })
})

describe('bug 6: arguments in odd forms', () => {
  test.each<[string, unknown, unknown]>([
    ['nothing', undefined, {}],
    ['empty text', '', {}],
    ['spaces', '  \n', {}],
    ['null', null, {}],
    ['the text null', 'null', {}],
    ['an object', { x: 1 }, { x: 1 }],
    ['a JSON string in a string', JSON.stringify('{"x":"\\"1\\""}'), { x: '"1"' }],
    ['an empty string in a string', '""', {}],
    ['a block of code', '```json\n{"x":1}\n```', { x: 1 }],
  ])('%s', async (_, args, expected) => {
    expect(await callsOf([{ index: 0, id: 'a', function: { name: 'one', arguments: args } }])).toEqual([
      call('a', 'one', expected),
    ])
  })

  test.each<[string, unknown]>([
    ['an array', '[1]'],
    ['a number', '42'],
    ['a boolean', 'true'],
    ['an array that is no text', [1]],
    ['a number that is no text', 42],
    ['an array in a string', '"[1]"'],
  ])('%s is flagged, not run', async (_, args) => {
    expect(await callsOf([{ index: 0, id: 'a', function: { name: 'one', arguments: args } }])).toMatchObject([
      { invalid: 'not_object' },
    ])
  })

  test('decoded once, not twice', () => {
    expect(readArguments(JSON.stringify(JSON.stringify('{"x":1}')), false)).toMatchObject({
      invalid: 'not_object',
    })
  })

  test('syntax is mended when the stream ended properly', async () => {
    const repair = (args: string) =>
      callsOf([{ index: 0, id: 'a', function: { name: 'one', arguments: args } }])
    expect(await repair(`{'x': 1, y: "two",}`)).toEqual([call('a', 'one', { x: 1, y: 'two' })])
    expect(await repair('{"x": "a\nb"}')).toEqual([call('a', 'one', { x: 'a\nb' })])
    expect(await repair('run ls -la')).toMatchObject([{ args: 'run ls -la', invalid: 'malformed' }])
  })
})

describe('what follows whole arguments', () => {
  const read = (text: string, cut = false): unknown => {
    const buffer = new ArgumentsBuffer()
    buffer.push(text)
    return buffer.read(cut)
  }

  test.each([
    '{"x":1}}',
    '{"x":1}\n]}',
    '{"x":1}<|im_end|>',
    '{"x":1}} <|tool_call_end|>, and so on',
    '{"x":1} Done.',
    '{"x":1}\n</tool_call>',
  ])('a remark is left out, unless the answer was cut: %j', (text) => {
    expect(read(text)).toEqual({ args: { x: 1 } })
    expect(read(text, true)).toEqual({ args: text, invalid: 'truncated' })
  })

  test.each([
    '{"path":"/w"}, dry_run: true}',
    '{"path":"/w"}} , dry_run',
    '{"path":"/w"} dry_run: true}',
    '{"path":"/w"} dry_run=true',
    `{"command":"make clean"}, 'cwd': '/sub'}`,
    `{"command":"make clean"} 'cwd': '/sub'}`,
  ])('more arguments behind a bracket set too early run nothing: %j', (text) => {
    expect(read(text)).toEqual({ args: text, invalid: 'malformed' })
  })
})

describe('bug 7: names', () => {
  test('repeated in each delta', async () => {
    const name = 'read_file'
    expect(
      await callsOf([
        { index: 0, id: 'a', function: { name, arguments: '' } },
        { index: 0, id: 'a', function: { name, arguments: '{"p":' } },
        { index: 0, id: 'a', function: { name, arguments: '"x"}' } },
        { index: 0, id: 'a', function: { name, arguments: '' } },
      ]),
    ).toEqual([call('a', 'read_file', { p: 'x' })])
  })

  test('in fragments, and cumulative', async () => {
    const split = (names: string[]) =>
      callsOf([
        ...names.map((name, index) => ({
          index: 0,
          ...(index === 0 ? { id: 'a' } : {}),
          function: { name, arguments: '' },
        })),
        { index: 0, function: { arguments: '{}' } },
      ])
    expect(await split(['read_', 'fi', 'le'])).toEqual([call('a', 'read_file', {})])
    expect(await split(['read', 'read_file'])).toEqual([call('a', 'read_file', {})])
  })
})

describe('bug 8: calls decide, not the word', () => {
  test.each(['stop', 'tool_use', 'STOP', 'whatever'])('finish_reason %j', async (finish) => {
    expect(
      await callsOf([{ index: 0, id: 'a', function: { name: 'one', arguments: '{}' } }], finish),
    ).toHaveLength(1)
  })

  test('an empty word, and [DONE]', async () => {
    const stream = streamOf([
      {
        choices: [
          {
            delta: { tool_calls: [{ index: 0, id: 'a', function: { name: 'one', arguments: '{}' } }] },
            finish_reason: '',
          },
        ],
      },
    ])
    expect((await readText(stream)).answer).toMatchObject({
      calls: [call('a', 'one', {})],
      finish: 'unknown',
    })
  })
})

describe('bug 9: arguments that were cut are never run', () => {
  const cut = '{"path":"a.txt","content":"half of i'
  test.each(['length', 'tool_calls', 'stop'])('with finish_reason %j', async (finish) => {
    expect(
      await callsOf([{ index: 0, id: 'a', function: { name: 'write', arguments: cut } }], finish),
    ).toEqual([{ id: 'a', name: 'write', args: cut, invalid: 'truncated' }])
  })

  test('cut before the first argument', async () => {
    expect(
      await callsOf([{ index: 0, id: 'a', function: { name: 'write', arguments: '' } }], 'length'),
    ).toMatchObject([{ invalid: 'truncated' }])
  })

  test('calls that were complete before the cut may run', async () => {
    const calls = await callsOf(
      [
        { index: 0, id: 'a', function: { name: 'read', arguments: '' } },
        { index: 1, id: 'b', function: { name: 'write', arguments: cut } },
      ],
      'length',
    )
    expect(calls).toMatchObject([
      { id: 'a', args: {} },
      { id: 'b', invalid: 'truncated' },
    ])
    expect(calls[0]).not.toHaveProperty('invalid')
  })
})

test('calls are in the order of their indices, however they arrive', async () => {
  const late = [
    { index: 1, id: 'b', function: { name: 'two', arguments: '{"y":' } },
    { index: 0, id: 'a', function: { name: 'one', arguments: '{"x":1}' } },
    { index: 1, function: { arguments: '2}' } },
  ]
  expect(await callsOf(late)).toEqual([call('a', 'one', { x: 1 }), call('b', 'two', { y: 2 })])
  const cut = [
    { index: 1, id: 'b', function: { name: 'two', arguments: '{"y":2}' } },
    { index: 0, id: 'a', function: { name: 'one', arguments: '' } },
  ]
  // The one that came last is the one that was cut.
  expect(await callsOf(cut, 'length')).toMatchObject([
    { id: 'a', invalid: 'truncated' },
    { id: 'b', args: { y: 2 } },
  ])
})

test('a call that is repeated with its id, name and arguments runs once', async () => {
  const element = (index: number, id: string, args: string): object => ({
    index,
    id,
    function: { name: 'pay', arguments: args },
  })
  expect(await callsOf([element(0, 'a', '{"x":1}'), element(1, 'a', '{ "x": 1 }')])).toEqual([
    call('a', 'pay', { x: 1 }),
  ])
  const turned = [element(0, 'a', '{"x":1,"y":2}'), element(1, 'a', '{"y":2,"x":1}')]
  expect(await callsOf(turned)).toEqual([call('a', 'pay', { x: 1, y: 2 })])
  // Deeper than text can be made of.
  const deep = `{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  expect(await callsOf([element(0, 'a', deep)])).toHaveLength(1)
  // Another id or other arguments are another call.
  expect(await callsOf([element(0, 'a', '{"x":1}'), element(1, 'b', '{"x":1}')])).toHaveLength(2)
  expect(await callsOf([element(0, 'a', '{"x":1}'), element(1, 'a', '{"x":2}')])).toHaveLength(2)
})

describe('bug 10: flushed twice', () => {
  const whole = '{"x":1,"y":[{"z":"}"}]}'
  test.each([
    ['as one delta', [whole]],
    ['in pieces', [whole.slice(0, 5), whole.slice(5)]],
    ['spelt another way', [' {"x": 1, "y": [{"z": "}"}]} ']],
    ['with an empty object', ['{}']],
  ])('%s', async (_, again) => {
    const first = { index: 0, id: 'a', function: { name: 'one', arguments: whole } }
    const rest = again.map((args) => ({ index: 0, function: { arguments: args } }))
    expect(await callsOf([first, ...rest])).toEqual([call('a', 'one', JSON.parse(whole))])
  })

  test('the whole call again', async () => {
    const element = { index: 0, id: 'a', function: { name: 'one', arguments: whole } }
    expect(await callsOf([element, element])).toHaveLength(1)
  })

  test('an empty object as a placeholder before the real one', async () => {
    expect(
      await callsOf([
        { index: 0, id: 'a', function: { name: 'one', arguments: '{}' } },
        { index: 0, function: { arguments: '{"x"' } },
        { index: 0, function: { arguments: ':1}' } },
      ]),
    ).toEqual([call('a', 'one', { x: 1 })])
  })

  test('two different values are malformed', async () => {
    expect(
      await callsOf([{ index: 0, id: 'a', function: { name: 'one', arguments: '{"x":1}{"x":2}' } }]),
    ).toMatchObject([{ invalid: 'malformed' }])
  })
})

test('bug 12: what the provider put on a call goes back to it', async () => {
  const extra_content = { google: { thought_signature: 'sig' } }
  expect(
    await callsOf([{ index: 0, id: 'a', extra_content, function: { name: 'one', arguments: '{}' } }]),
  ).toEqual([{ ...call('a', 'one', {}), replay: { extra_content } }])
})

test('bug 30: long arguments in many deltas are not parsed at each', () => {
  const buffer = new ArgumentsBuffer()
  const piece = 'x'.repeat(100)
  buffer.push('{"content":"')
  for (let n = 0; n < 20_000; n++) {
    buffer.push(piece)
    expect(buffer.complete).toBe(false)
  }
  buffer.push('"}')
  expect(buffer.complete).toBe(true)
  expect(buffer.read(false).args).toMatchObject({ content: expect.stringMatching(/^x+$/) })
})

test('function_call, from before there were several; elements that are none are ignored', async () => {
  const stream = streamOf(
    deltas(
      [{ function_call: { name: 'one', arguments: '{"x"' } }, { function_call: { arguments: ':1}' } }],
      'function_call',
    ),
  )
  expect((await readText(stream)).answer.calls).toEqual([call('call_1', 'one', { x: 1 })])
  const none = [null, 'x', {}, { index: 0 }, { index: 0, id: 'a', function: null }]
  expect(await callsOf(none, 'stop')).toEqual([])
})
