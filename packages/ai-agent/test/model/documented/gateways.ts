/**
 * Middlemen: proxies and gateways that translate other dialects, and servers that parse calls out
 * of text.
 */
import { call, chunk, completion, events, piece, tools, wireCall } from './answer.ts'
import type { DocumentedAnswers } from './answer.ts'

const gateway = { baseUrl: 'http://gateway:8000/v1', model: 'any' }
const one = (args: string, head: object = { id: 'a' }, name: string | undefined = 'one'): unknown =>
  chunk(tools(piece(0, args, head, name)))
const more = (args: string): unknown => chunk(tools(piece(0, args)))
const ended = chunk({}, 'tool_calls')
const gives = (args: object, name = 'one') => ({ calls: [call('a', name, args)] })

export const GATEWAYS: DocumentedAnswers = {
  'the head of the second call at the index of the first (agno-agi/agno#8879)': {
    ...gateway,
    rows: [3],
    stream: events(
      one(''),
      more('{"x":1}'),
      one('', { id: 'b' }, 'two'),
      chunk(tools(piece(1, '{"y":'))),
      chunk(tools(piece(1, '2}'))),
      ended,
    ),
    gives: { calls: [call('a', 'one', { x: 1 }), call('b', 'two', { y: 2 })] },
  },
  'a new id and the name in every delta, and no index': {
    ...gateway,
    rows: [3, 5, 7],
    stream: events(
      chunk(tools({ ...wireCall('a', 'one', '{"x"') })),
      chunk(tools({ ...wireCall('b', 'one', ':1') })),
      chunk(tools({ ...wireCall('c', 'one', '}') })),
      ended,
    ),
    gives: gives({ x: 1 }),
  },
  'calls known only by their places in the delta (SamSaffron/term-llm#314)': {
    ...gateway,
    rows: [3],
    stream: events(
      chunk(
        tools(
          { function: { name: 'one', arguments: '{"x"' } },
          { function: { name: 'two', arguments: '{' } },
        ),
      ),
      chunk(tools({ function: { arguments: ':1}' } }, { function: { arguments: '"y":2}' } })),
      ended,
    ),
    gives: { calls: [call('call_1', 'one', { x: 1 }), call('call_2', 'two', { y: 2 })] },
  },
  'Kimi for coding behind a gateway: an empty object, then the arguments (BenedictKing/ccx#183)': {
    ...gateway,
    rows: [6, 10],
    stream: events(one('{}'), more('{"cmd"'), more(':"ls"}'), ended),
    gives: gives({ cmd: 'ls' }),
  },
  'the same, with id and name in every delta': {
    ...gateway,
    rows: [6, 7, 10],
    stream: events(one('{}'), one('{"cmd"'), one(':"ls"}'), ended),
    gives: gives({ cmd: 'ls' }),
  },
  'the same, as an object that is no text': {
    ...gateway,
    rows: [6, 10],
    stream: events(
      chunk(tools({ index: 0, id: 'a', function: { name: 'one', arguments: {} } })),
      more('{"cmd":"ls"}'),
      ended,
    ),
    gives: gives({ cmd: 'ls' }),
  },
  'Bedrock: the empty object and the arguments in one (openai/openai-agents-js#712)': {
    ...gateway,
    rows: [6, 10],
    stream: events(one('{}{"cmd":"ls"}'), ended),
    whole: completion({ content: '', tool_calls: [wireCall('a', 'one', '{}{"cmd":"ls"}')] }, 'tool_calls'),
    gives: gives({ cmd: 'ls' }),
  },
  'null, then the arguments': {
    ...gateway,
    rows: [6],
    stream: events(one('null'), more('{"x":1}'), ended),
    gives: gives({ x: 1 }),
  },
  'the arguments three times': {
    ...gateway,
    rows: [10],
    stream: events(one('{"x":1}{"x":1}{"x": 1}'), ended),
    whole: completion(
      { content: '', tool_calls: [wireCall('a', 'one', '{"x":1}{"x":1}{"x": 1}')] },
      'tool_calls',
    ),
    gives: gives({ x: 1 }),
  },
  'Ollama: a remark behind the arguments (librefang/librefang#2975)': {
    ...gateway,
    rows: [6],
    stream: events(one('{"query":"TO-DO"}\n\n'), more("I'll now search…"), ended),
    gives: gives({ query: 'TO-DO' }),
  },
  'a remark behind the arguments, with the name in every delta': {
    ...gateway,
    rows: [6, 7],
    stream: events(one('{"x":1}'), one(' Now', {}), one(' I wait.', {}), ended),
    gives: gives({ x: 1 }),
  },
  'a control token behind the arguments, and one bracket too many': {
    ...gateway,
    rows: [6],
    stream: events(one('{"x":"}"}}\n</tool_call><|tool_call_end|>'), ended),
    gives: gives({ x: '}' }),
  },
  'a bracket too early: what follows is more of the arguments, and nothing is run': {
    ...gateway,
    rows: [6, 9],
    stream: events(one('{"path":"a"}, "text": "b"}'), ended),
    gives: { calls: [{ id: 'a', name: 'one', args: '{"path":"a"}, "text": "b"}', invalid: 'malformed' }] },
  },
  'a bracket too early, and no quotes behind it': {
    ...gateway,
    rows: [6, 9],
    stream: events(one('{"path":"/w"}, dry_run: true}'), ended),
    gives: { calls: [{ id: 'a', name: 'one', args: '{"path":"/w"}, dry_run: true}', invalid: 'malformed' }] },
  },
  'gpt-oss: control tokens behind the name': {
    ...gateway,
    rows: [7],
    stream: events(one('{"x":1}', { id: 'a' }, 'one<|channel|>commentary'), ended),
    whole: completion(
      { content: '', tool_calls: [wireCall('a', ' one<|channel|>commentary', '{"x":1}')] },
      'tool_calls',
    ),
    gives: gives({ x: 1 }),
  },
  'arguments under the name that the schema has': {
    ...gateway,
    rows: [6],
    stream: events(
      chunk(tools({ index: 0, id: 'a', function: { name: 'one', parameters: { x: 1 } } })),
      ended,
    ),
    gives: gives({ x: 1 }),
  },
  'the same, and a null under the usual name': {
    ...gateway,
    rows: [6],
    stream: events(
      chunk(tools({ index: 0, id: 'a', function: { name: 'one', arguments: null, parameters: { x: 1 } } })),
      ended,
    ),
    gives: gives({ x: 1 }),
  },
  "Claude's own form of a call": {
    ...gateway,
    rows: [6],
    stream: events(chunk(tools({ id: 'a', type: 'tool_use', name: 'one', input: { x: 1 } })), ended),
    gives: gives({ x: 1 }),
  },
  'Copilot: text in one choice, calls in another (HKUDS/nanobot#1555)': {
    ...gateway,
    rows: [8],
    stream: JSON.stringify({
      choices: [
        { finish_reason: 'tool_calls', message: { role: 'assistant', content: 'I look.' } },
        {
          finish_reason: 'tool_calls',
          message: { role: 'assistant', tool_calls: [wireCall('a', 'one', '{"x":1}')] },
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
    }),
    gives: { text: 'I look.', ...gives({ x: 1 }), usage: { input: 3, output: 2 } },
  },
  'a choice that is the only one and has the number 1': {
    ...gateway,
    rows: [3],
    stream: events(
      { choices: [{ index: 1, delta: { content: 'a' }, finish_reason: null }] },
      { choices: [{ index: 1, delta: { content: 'b' }, finish_reason: 'stop' }] },
    ),
    gives: { text: 'ab', finish: 'stop' },
  },
}
