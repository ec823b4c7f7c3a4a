/** Event streams that are not quite event streams, and the same message in other shapes. */
import { call, chunk, completion, events, piece, tools, wireCall } from './answer.ts'
import type { DocumentedAnswers } from './answer.ts'

const proxy = { baseUrl: 'http://proxy:8000/v1', model: 'any' }
const a = '{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}'
const b = '{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}'
const DONE = 'data: [DONE]\n\n'
const ab = { text: 'ab', finish: 'stop' } as const
const lines = (value: unknown): string => JSON.stringify(value, null, 2)

export const ODD_BYTES: DocumentedAnswers = {
  'field names in capitals, behind spaces, and a tab behind them': {
    ...proxy,
    rows: [15],
    stream: `Data: ${a}\n\n data:\t${b}\n\nDATA: "[DONE]"\n\n`,
    gives: ab,
  },
  'chunks glued together, with and without `data:` between, a comma and [DONE] behind': {
    ...proxy,
    rows: [15],
    stream: `data: ${a}data: {"choices":[]},\n\ndata: {"choices":[]}${b}[DONE]\n\n`,
    gives: ab,
  },
  'no blank line between events': {
    ...proxy,
    rows: [15],
    stream: `data: ${a}\ndata: ${b}\ndata: [DONE]\n`,
    gives: ab,
  },
  'words in place of a stream': {
    ...proxy,
    rows: [16],
    stream: 'upstream connect error or disconnect/reset before headers. reset reason: overflow\n',
    gives: { class: 'provider_error', retryable: true },
  },
  'words in place of a stream that say what it was': {
    ...proxy,
    rows: [16],
    stream: ': ping\n\nToo Many Requests. Try again in 3s',
    gives: { class: 'rate_limit', retryable: true, waitMs: 3_000 },
  },
  'the page of a proxy, with the status in its title': {
    ...proxy,
    rows: [16],
    stream: '<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>',
    gives: { class: 'server_error', retryable: true },
  },
  'Gemini: a prompt that was blocked is a completion without choices': {
    ...proxy,
    rows: [16],
    stream: JSON.stringify({ id: 'x', object: 'chat.completion', usage: { prompt_tokens: 3 } }),
    gives: { class: 'provider_error', retryable: true },
  },
  'a list of chunks as one body': {
    ...proxy,
    rows: [15],
    stream: `[${a},\n${b}]`,
    gives: ab,
  },
  'an answer printed over several lines behind signs of life': {
    ...proxy,
    rows: [15],
    stream: `: processing\n\n: processing\n\n${lines(completion({ content: 'ab' }, 'stop'))}\n`,
    gives: ab,
  },
  'an error printed over several lines in the middle': {
    ...proxy,
    rows: [15, 16, 19],
    stream: `data: ${a}\n\n${lines({ error: { message: 'Too many requests. Try again in 3s', code: 429 } })}\n\n`,
    gives: { class: 'rate_limit', retryable: true, waitMs: 3_000 },
  },
  'an error on the line behind an event that it cut off (Wei-Shaw/sub2api#1471)': {
    ...proxy,
    rows: [15, 16],
    stream: `data: ${a}\n\ndata: {"choices":[{"delta":{"con\ndata: {"type":"error","error":{"type":"upstream_error","message":"Overloaded"}}\n\n${DONE}`,
    gives: { class: 'overloaded', retryable: true },
  },
  'an error in words, and then the end of a good answer': {
    ...proxy,
    rows: [16, 17],
    stream: `data: ${a}\n\ndata: Internal Server Error\n\n${DONE}`,
    gives: { class: 'server_error', retryable: true },
  },
  'an error in words behind a whole answer': {
    ...proxy,
    rows: [16, 17],
    stream: `data: ${a}\n\ndata: ${b}\n\ndata: retrying after timeout\n\n${DONE}`,
    gives: ab,
  },
  'signs of life in words': {
    ...proxy,
    rows: [15],
    stream: `data: keep-alive\n\ndata: : ping\n\ndata: null\n\ndata: ${a}\n\ndata: PROCESSING\n\ndata: ${b}\n\n${DONE}`,
    gives: ab,
  },
  'Python writes what JSON has no name for': {
    ...proxy,
    rows: [15],
    stream: `data: {"choices":[{"delta":{"content":"a \\"NaN\\" "},"logprobs":{"x":NaN,"y":-Infinity},"finish_reason":null}]}\n\ndata: ${b}\n\n${DONE}`,
    gives: { text: 'a "NaN" b' },
  },
  'a tab that is not escaped': {
    ...proxy,
    rows: [15],
    stream: `data: {"choices":[{"delta":{"content":"a\t\\\\"}}]}\n\ndata: ${b}\n\n${DONE}`,
    gives: { text: 'a\t\\b' },
  },
  'a chunk that is cut, and the stream goes on': {
    ...proxy,
    rows: [15, 17],
    stream: `data: ${a}\n\ndata: {"choices":[{"delta":{"content":"lost\n\ndata: ${b}\n\n${DONE}`,
    gives: { class: 'protocol', retryable: true },
  },
  'Databricks: thoughts as a summary in a part': {
    ...proxy,
    rows: [13],
    stream: events(
      chunk({ content: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm' }] }] }),
      chunk({ content: [{ type: 'text', text: 'ab' }] }, 'stop'),
    ),
    whole: completion(
      {
        content: [
          { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm' }] },
          { type: 'text', text: 'ab' },
        ],
      },
      'stop',
    ),
    gives: { thought: 'Hm', ...ab },
  },
  'a refusal as a part': {
    ...proxy,
    rows: [2],
    stream: events(chunk({ content: [{ type: 'refusal', refusal: 'I cannot.' }] }, 'stop')),
    gives: { text: 'I cannot.' },
  },
  'CLIProxyAPI: thoughts under one more name': {
    ...proxy,
    rows: [11],
    stream: events(
      chunk({ thinking_content: 'Hm' }),
      chunk(tools(piece(0, '{}', { id: 'a' }, 'one')), 'tool_calls'),
    ),
    whole: completion({ thinking_content: 'Hm', tool_calls: [wireCall('a', 'one', '{}')] }, 'tool_calls'),
    gives: { thought: 'Hm', calls: [call('a', 'one', {})], replay: [{ raw: { thinking_content: 'Hm' } }] },
  },
  'new-api before Claude: the input is counted at the beginning, the output at the end': {
    ...proxy,
    rows: [14],
    stream: events(
      chunk({ content: 'ab' }, null, {
        usage: { prompt_tokens: 30, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 8 } },
      }),
      chunk({}, 'stop', {
        usage: { prompt_tokens: 0, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 0 } },
      }),
    ),
    gives: { ...ab, usage: { input: 30, output: 9, cached: 8 } },
  },
  "Claude's own names: the cache is counted beside the input": {
    ...proxy,
    rows: [14],
    stream: events(
      chunk({ content: 'ab' }, 'stop', {
        usage: {
          input_tokens: 3,
          cache_creation_input_tokens: 5,
          cache_read_input_tokens: 6,
          output_tokens: 4,
        },
      }),
    ),
    gives: { ...ab, usage: { input: 14, output: 4, cached: 6, cacheWritten: 5 } },
  },
}
