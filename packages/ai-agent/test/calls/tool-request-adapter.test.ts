import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isRefused, type RawToolCall, ToolRequestAdapter } from '../../src/calls/tool-request-adapter.ts'
import { ArgumentsBuffer } from '../../src/model/arguments.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { createRegistry } from '../../src/tools/registry.ts'
import type { Tool } from '../../src/tools/tool.ts'

const registry = createRegistry()
registry.register(...builtinTools())

function normalize(call: Partial<RawToolCall>) {
  const [request] = new ToolRequestAdapter(registry).normalizeBatch([{ id: 'c1', name: 'echo', ...call }])
  if (request === undefined) throw new Error('there was no request')
  return request
}
const argsOf = (call: Partial<RawToolCall>) => {
  const request = normalize(call)
  return isRefused(request) ? request.refusal : request.args
}

describe('arguments', () => {
  test.each(['args', 'parameters', 'input', 'arguments'] as const)(
    'are read from %s, as an object and as JSON text',
    (key) => {
      expect(argsOf({ [key]: { text: 'hi' } })).toEqual({ text: 'hi' })
      expect(argsOf({ [key]: '{"text":"hi"}' })).toEqual({ text: 'hi' })
    },
  )

  test.each([undefined, null, '', '  \n', 'null', {}])('%j is no arguments', (args) => {
    expect(argsOf({ args })).toEqual({})
  })

  test('a call that was found malformed says where, from its text alone', () => {
    expect(argsOf({ args: '{"text": ls}', invalid: 'malformed' })).toEqual({
      reason: 'invalid_arguments',
      message: expect.stringMatching(/not valid JSON.* column 10 .* Nothing was run\.$/),
    })
  })

  test('JSON text is decoded once', () => {
    const once = JSON.stringify('{"text":"hi"}')
    expect(argsOf({ args: once })).toEqual({ text: 'hi' })
    expect(argsOf({ args: JSON.stringify(once) })).toMatchObject({ reason: 'invalid_arguments' })
    expect(argsOf({ args: '{"text":"{\\"a\\":1}"}' })).toEqual({ text: '{"a":1}' })
  })

  test.each([
    ['[1]', /an array/],
    ['5', /a number/],
    [[1], /an array/],
    [true, /a boolean/],
    ['{"text":', /cut off/],
    ['```json\n{"text": ls}\n```', /not valid JSON.* column 10/],
    ['{"text": ls -la}', /not valid JSON.* column 10 \(at "ls -la}"\)/],
  ])('%j is refused with what is wrong', (args, why) => {
    expect(argsOf({ args })).toEqual({ reason: 'invalid_arguments', message: expect.stringMatching(why) })
  })

  test('arguments that were cut off are not run, even when they parse', () => {
    expect(argsOf({ args: { text: 'half' }, invalid: 'truncated' })).toEqual({
      reason: 'invalid_arguments',
      message: expect.stringMatching(/cut off.*Split/s),
    })
  })

  test('are read as the model client reads them, whatever text they come in', () => {
    const wraps: ((text: string) => string)[] = [
      (text) => text,
      (text) => `\`\`\`json\n${text}\n\`\`\``,
      (text) => JSON.stringify(text),
      (text) => `null${text}`,
      (text) => `${text}${text}`,
      (text) => `${text}<|im_end|>`,
      (text) => text.slice(1),
      (text) => text.slice(0, -1),
    ]
    const value = fc.oneof(fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue()), fc.jsonValue())
    fc.assert(
      fc.property(value, fc.array(fc.constantFrom(...wraps), { maxLength: 2 }), (args, around) => {
        const text = around.reduce((inner, wrap) => wrap(inner), JSON.stringify(args))
        const buffer = new ArgumentsBuffer()
        buffer.push(text)
        const read = buffer.read(false)
        const request = normalize({ args: text })
        expect(isRefused(request)).toBe(read.invalid !== undefined)
        if (!isRefused(request)) expect(request.args).toEqual(read.args)
      }),
    )
  })

  test('every object that is sent as JSON text arrives as it was', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (args) => {
        const text = JSON.stringify(args)
        expect(JSON.stringify(argsOf({ arguments: text }))).toBe(JSON.stringify(JSON.parse(text)))
      }),
    )
  })

  test('anything at all gives a request or a refusal', () => {
    fc.assert(
      fc.property(fc.anything(), fc.string(), (args, name) => {
        const [request] = new ToolRequestAdapter(registry).normalizeBatch([{ id: 'x', name, args }])
        expect(request?.callId).toBe('x')
      }),
    )
  })
})

describe('names', () => {
  test.each([
    ['read_fil', 'read_file'],
    ['Read_File', 'read_file'],
    ['run_shell_comand', 'run_shell_command'],
  ])('%s is unknown; %s is offered', (name, near) => {
    const request = normalize({ name })
    expect(isRefused(request) && request.refusal).toEqual({
      reason: 'unknown_tool',
      message: expect.stringContaining(`Did you mean ${near}?`),
    })
  })

  test.each([
    ['functions.read_file', 'read_file'],
    ['default_api.read_file', 'read_file'],
    ['functions.read_file:0', 'read_file'],
    ['read_file:12', 'read_file'],
    ['tools/read_file', 'read_file'],
    [' read_file<|channel|>commentary', 'read_file'],
    ['functions.look', 'look'],
    ['web::other', 'web_other'],
    ['mcp.web.other:3', 'web_other'],
    ['functions.find', undefined],
    ['notes.other', undefined],
    ['functions.', undefined],
    ['read_file.more', undefined],
  ])('%s means %s', (name, meant) => {
    const several = createRegistry()
    const [one] = builtinTools()
    if (one === undefined) throw new Error('there are no tools')
    const ofServer = (id: string, as: string): Tool => ({ ...one, name: as, runs: { as: { id } } })
    several.register(
      ...builtinTools(),
      ofServer('web::look', 'look'),
      ofServer('web::other', 'web_other'),
      ofServer('web::find', 'web_find'),
      ofServer('notes::find', 'notes_find'),
    )
    const request = new ToolRequestAdapter(several).normalize({ id: 'c', name, args: {} })
    expect(isRefused(request) ? undefined : request.name).toBe(meant)
  })

  test('a name like no other gets the list, and is not repeated whole', () => {
    const request = normalize({ name: 'z'.repeat(100_000) })
    const message = isRefused(request) ? request.refusal.message : ''
    expect(message).not.toContain('Did you mean')
    expect(message).toContain('update_plan')
    expect(message.length).toBeLessThan(500)
  })

  test('a batch keeps its order, good and bad', () => {
    const calls = ['echo', 'nope', 'echo'].map((name, index) => ({
      id: `c${index}`,
      name,
      args: { text: '' },
    }))
    const batch = new ToolRequestAdapter(registry).normalizeBatch(calls)
    expect(batch.map((request) => [request.callId, isRefused(request)])).toEqual([
      ['c0', false],
      ['c1', true],
      ['c2', false],
    ])
  })
})
