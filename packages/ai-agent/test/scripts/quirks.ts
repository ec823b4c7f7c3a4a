/**
 * Odd forms that providers send, seen from the loop: the history of the next request has to be
 * valid.
 */
import type { Script } from './run-script.ts'
import { broken, call, calls, done, echo, says, stream, toolDelta } from './words.ts'

const fn = (name: string, args: unknown) => ({ name, arguments: args })

export const QUIRKS: readonly Script[] = [
  {
    name: 'one call',
    answers: [calls(echo('a')), done],
    ends: ['completed'],
    roles: 'suat',
    outcomes: ['completed'],
  },
  {
    name: 'text beside calls',
    answers: [
      stream(
        [{ content: 'I look.' }, toolDelta({ index: 0, id: 'a', function: fn('echo', '{"text":"x"}') })],
        'tool_calls',
      ),
      done,
    ],
    ends: ['completed'],
    roles: 'suat',
  },
  {
    name: 'ten calls at once',
    answers: [calls(...Array.from({ length: 10 }, (_, n) => echo(`c${n}`))), done],
    ends: ['completed'],
    roles: 'suatttttttttt',
  },
  {
    name: 'three rounds',
    answers: [calls(echo('a')), calls(echo('b')), calls(echo('c')), done],
    ends: ['completed'],
    roles: 'suatatat',
    requests: 4,
  },
  {
    name: 'bug 5: the same id in one answer',
    answers: [calls(echo('x', '1'), echo('x', '2')), done],
    ends: ['completed'],
    roles: 'suatt',
    outcomes: ['completed', 'completed'],
  },
  {
    name: 'bug 5: call_0 in every answer',
    answers: [calls(echo('call_0', '1')), calls(echo('call_0', '2')), calls(echo('call_0', '3')), done],
    ends: ['completed'],
    roles: 'suatatat',
  },
  {
    name: 'no id at all',
    answers: [stream([toolDelta({ index: 0, function: fn('echo', '{"text":"x"}') })], 'tool_calls'), done],
    ends: ['completed'],
    roles: 'suat',
  },
  {
    name: 'an empty id',
    answers: [
      stream([toolDelta({ index: 0, id: '', function: fn('echo', '{"text":"x"}') })], 'tool_calls'),
      done,
    ],
    ends: ['completed'],
    roles: 'suat',
  },
  {
    name: 'an id of a thousand characters',
    answers: [calls(echo('i'.repeat(1_000))), done],
    ends: ['completed'],
    roles: 'suat',
    check: ({ requests }) => {
      const id = requests[1]?.body.messages.at(-1)?.tool_call_id
      if (typeof id !== 'string' || id.length > 256) throw new Error(`the id is ${String(id)}`)
    },
  },
  {
    name: 'bug 6: arguments as an object',
    answers: [
      stream([toolDelta({ index: 0, id: 'a', function: fn('echo', { text: 'x' }) })], 'tool_calls'),
      done,
    ],
    ends: ['completed'],
    outcomes: ['completed'],
  },
  {
    name: 'bug 6: arguments that are a list',
    answers: [calls(call('a', 'echo', '[1,2]')), done],
    ends: ['completed'],
    outcomes: ['failed invalid_arguments'],
    roles: 'suat',
  },
  {
    name: 'bug 6: no arguments',
    answers: [calls(call('a', 'count', '')), done],
    ends: ['completed'],
    outcomes: ['completed'],
  },
  {
    name: 'bug 6: JSON in a string',
    answers: [calls(call('a', 'echo', JSON.stringify('{"text":"x"}'))), done],
    ends: ['completed'],
    outcomes: ['completed'],
  },
  {
    name: 'bug 8: stop although calls came',
    answers: [stream([toolDelta({ index: 0, id: 'a', function: fn('echo', '{"text":"x"}') })], 'stop'), done],
    ends: ['completed'],
    outcomes: ['completed'],
  },
  {
    name: 'bug 9: arguments cut by the length are not run',
    answers: [
      stream([toolDelta({ index: 0, id: 'a', function: fn('write', '{"text":"half') })], 'length'),
      done,
    ],
    ends: ['completed'],
    outcomes: ['failed invalid_arguments'],
    check: ({ ran }) => assertNot(ran['write']),
  },
  {
    name: 'bug 9: broken JSON is not run',
    answers: [calls(call('a', 'write', '{"text": {{{}')), done],
    ends: ['completed'],
    outcomes: ['failed invalid_arguments'],
    check: ({ ran }) => assertNot(ran['write']),
  },
  {
    name: 'bug 10: arguments flushed twice',
    answers: [calls(call('a', 'echo', '{"text":"x"}{"text":"x"}')), done],
    ends: ['completed'],
    outcomes: ['completed'],
  },
  {
    name: 'bug 7: the name in each delta',
    answers: [
      stream(
        [
          toolDelta({ index: 0, id: 'a', function: fn('echo', '{"text"') }),
          toolDelta({ index: 0, id: 'a', function: fn('echo', ':"x"}') }),
        ],
        'tool_calls',
      ),
      done,
    ],
    ends: ['completed'],
    outcomes: ['completed'],
  },
  {
    name: 'bug 25: a tool that does not exist',
    answers: [calls(call('a', 'ecko', {})), done],
    ends: ['completed'],
    outcomes: ['failed unknown_tool'],
    check: ({ requests }) => assertSays(requests[1]?.raw, 'echo'),
  },
  {
    name: 'bug 25: a name no provider would take',
    answers: [calls(call('a', 'functions.echo <x>', {})), done],
    ends: ['completed'],
    outcomes: ['failed unknown_tool'],
    roles: 'suat',
  },
  {
    name: 'bug 25: an unknown tool beside a known one',
    answers: [calls(call('a', 'nope'), echo('b')), done],
    ends: ['completed'],
    outcomes: ['failed unknown_tool', 'completed'],
    roles: 'suatt',
  },
  {
    name: 'an argument that nobody knows',
    answers: [calls(call('a', 'count', { what: 1 })), done],
    ends: ['completed'],
    outcomes: ['failed invalid_arguments'],
  },
  {
    name: 'a missing argument',
    answers: [calls(call('a', 'echo', {})), done],
    ends: ['completed'],
    outcomes: ['failed invalid_arguments'],
  },
  {
    name: 'a result without text',
    answers: [calls(call('a', 'empty')), done],
    ends: ['completed'],
    roles: 'suat',
  },
  {
    name: 'bug 22: NUL and half characters in a result',
    answers: [calls(call('a', 'dirty')), done],
    ends: ['completed'],
    roles: 'suat',
  },
  {
    name: 'bug 22: half characters in an answer and its arguments',
    answers: [
      stream(
        [
          { content: 'a\ud800b' },
          toolDelta({ index: 0, id: 'a', function: fn('echo', '{"text":"\\ud83d"}') }),
        ],
        'tool_calls',
      ),
      done,
    ],
    ends: ['completed'],
    roles: 'suat',
  },
  {
    name: 'a result of 60,000 characters',
    answers: [calls(call('a', 'big')), done],
    ends: ['completed'],
    check: ({ requests }) => assertShort(requests[1]?.raw, 20_000),
  },
  {
    name: 'ten results of 60,000 characters',
    answers: [calls(...Array.from({ length: 10 }, (_, n) => call(`c${n}`, 'big'))), done],
    ends: ['completed'],
    check: ({ requests }) => assertShort(requests[1]?.raw, 80_000),
  },
  {
    name: 'reasoning beside a call goes back',
    answers: [
      stream(
        [
          { reasoning_content: 'Hm.' },
          toolDelta({ index: 0, id: 'a', function: fn('echo', '{"text":"x"}') }),
        ],
        'tool_calls',
      ),
      done,
    ],
    ends: ['completed'],
    check: ({ requests }) => assertSays(requests[1]?.raw, '"reasoning_content":"Hm."'),
  },
  {
    name: 'bug 12: a signature on a call goes back',
    answers: [
      stream(
        [
          toolDelta({
            index: 0,
            id: 'a',
            extra_content: { google: { thought_signature: 'sig' } },
            function: fn('echo', '{"text":"x"}'),
          }),
        ],
        'tool_calls',
      ),
      done,
    ],
    ends: ['completed'],
    check: ({ requests }) => assertSays(requests[1]?.raw, '"thought_signature":"sig"'),
  },
  {
    name: 'only thoughts, then an answer',
    answers: [stream([{ reasoning_content: 'Hm.' }]), says('Here.')],
    ends: ['completed'],
    text: /Here/,
    requests: 2,
  },
  {
    name: 'bug 16: an error inside a stream',
    answers: [
      stream([{ content: 'Half' }], null, [JSON.stringify({ error: { message: 'overloaded', code: 503 } })]),
      says('Whole.'),
    ],
    ends: ['completed'],
    text: /^Whole\.$/,
    requests: 2,
  },
  {
    name: 'bug 17: an end without finish and [DONE]',
    answers: [stream([{ content: 'Half' }], null, []), says('Whole.')],
    ends: ['completed'],
    text: /^Whole\.$/,
    requests: 2,
  },
  {
    name: 'bug 17: an end with finish and without [DONE]',
    answers: [stream([{ content: 'Whole.' }], 'stop', [])],
    ends: ['completed'],
    text: /^Whole\.$/,
    requests: 1,
  },
  {
    name: 'mid-stream tool call interruption: a connection that breaks in the middle of a call',
    answers: [
      broken([toolDelta({ index: 0, id: 'a', function: fn('write', '{"text":"ha') })]),
      calls(call('a', 'write', { text: 'whole' })),
      done,
    ],
    ends: ['completed'],
    outcomes: ['completed'],
    check: ({ ran }) => assertOnce(ran['write']),
  },
  {
    name: 'an answer that is JSON although a stream was asked for',
    answers: [
      {
        headers: { 'content-type': 'application/json' },
        steps: [
          JSON.stringify({
            choices: [{ index: 0, message: { role: 'assistant', content: 'Whole.' }, finish_reason: 'stop' }],
          }),
        ],
      },
    ],
    ends: ['completed'],
    text: /^Whole\.$/,
  },
]

function assertNot(ran: number | undefined): void {
  if (ran !== undefined) throw new Error(`it ran ${ran} times`)
}
function assertOnce(ran: number | undefined): void {
  if (ran !== 1) throw new Error(`it ran ${ran} times`)
}
function assertSays(raw: string | undefined, words: string): void {
  if (raw?.includes(words) !== true) throw new Error(`${words} is not in ${raw}`)
}
function assertShort(raw: string | undefined, chars: number): void {
  if (raw === undefined || raw.length > chars) throw new Error(`${raw?.length} characters`)
}
