/** OpenAI, Azure, and the proxies that speak their dialect. */
import { call, chunk, completion, events, piece, tools, wireCall } from './answer.ts'
import type { DocumentedAnswers } from './answer.ts'

const openai = { baseUrl: 'https://api.openai.com/v1', model: 'gpt-5' }
const azure = { baseUrl: 'https://unit.openai.azure.com/openai/v1', model: 'gpt-4o' }
const litellm = { baseUrl: 'http://litellm:4000/v1', model: 'claude' }
const oneApi = { baseUrl: 'http://one-api:3000/v1', model: 'any' }
const usage = {
  prompt_tokens: 20,
  completion_tokens: 9,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 16 },
  completion_tokens_details: { reasoning_tokens: 4 },
}

export const CLOUDS: DocumentedAnswers = {
  'OpenAI: two calls, usage in a last chunk without choices': {
    ...openai,
    rows: [3, 14],
    stream: events(
      chunk({ role: 'assistant', content: null, refusal: null }),
      chunk(tools(piece(0, '', { id: 'call_a', type: 'function' }, 'read_file'))),
      chunk(tools(piece(0, '{"path"'))),
      chunk(tools(piece(0, ':"ä.txt"}'))),
      chunk(tools(piece(1, '', { id: 'call_b', type: 'function' }, 'read_file'))),
      chunk(tools(piece(1, '{"path":"b.txt"}'))),
      chunk({}, 'tool_calls'),
      { id: 'chatcmpl-1', object: 'chat.completion.chunk', choices: [], usage },
    ),
    whole: completion(
      {
        content: null,
        tool_calls: [
          wireCall('call_a', 'read_file', '{"path":"ä.txt"}'),
          wireCall('call_b', 'read_file', '{"path":"b.txt"}'),
        ],
      },
      'tool_calls',
      { usage },
    ),
    gives: {
      text: '',
      calls: [call('call_a', 'read_file', { path: 'ä.txt' }), call('call_b', 'read_file', { path: 'b.txt' })],
      finish: 'tool_calls',
      usage: { input: 20, output: 9, cached: 16, reasoning: 4 },
    },
  },
  'OpenAI: a literal <think> stays': {
    ...openai,
    rows: [13],
    stream: events(chunk({ content: '<think> is a' }), chunk({ content: ' tag</think>.' }, 'stop')),
    whole: completion({ content: '<think> is a tag</think>.' }, 'stop'),
    gives: { text: '<think> is a tag</think>.', thought: '', finish: 'stop' },
  },
  'OpenAI: function_call, from before there were several': {
    ...openai,
    rows: [3],
    stream: events(
      chunk({ role: 'assistant', content: null, function_call: { name: 'list', arguments: '' } }),
      chunk({ function_call: { arguments: '{"path"' } }),
      chunk({ function_call: { arguments: ':"."}' } }),
      chunk({}, 'function_call'),
    ),
    whole: completion(
      { content: null, function_call: { name: 'list', arguments: '{"path":"."}' } },
      'function_call',
    ),
    gives: { calls: [call('call_1', 'list', { path: '.' })], finish: 'tool_calls' },
  },
  'OpenAI: a refusal is shown': {
    ...openai,
    rows: [2],
    stream: events(chunk({ refusal: 'I ' }), chunk({ refusal: 'cannot.' }), chunk({}, 'stop')),
    whole: completion({ content: null, refusal: 'I cannot.' }, 'stop'),
    gives: { text: 'I cannot.', finish: 'stop' },
  },
  'OpenAI: the error of a stream that went on': {
    ...openai,
    rows: [16],
    stream: events(chunk({ content: 'half' }), {
      error: {
        message: 'The server had an error while processing your request. Sorry about that!',
        type: 'server_error',
        param: null,
        code: null,
      },
    }),
    gives: { class: 'server_error', retryable: true },
  },
  'Azure: a first chunk without choices, filter results everywhere': {
    ...azure,
    rows: [14, 16],
    stream: events(
      {
        choices: [],
        created: 0,
        id: '',
        model: '',
        object: '',
        prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }],
      },
      chunk({ role: 'assistant', content: '' }),
      {
        choices: [
          {
            index: 0,
            delta: { content: 'Hello' },
            finish_reason: null,
            content_filter_results: { hate: { filtered: false, severity: 'safe' } },
          },
        ],
      },
      {
        choices: [
          {
            index: 0,
            finish_reason: null,
            content_filter_result: {
              error: { code: 'content_filter_error', message: 'The contents are not filtered' },
            },
            content_filter_offsets: { check_offset: 35 },
          },
        ],
      },
      chunk({}, 'stop'),
      { choices: [], usage },
    ),
    gives: {
      text: 'Hello',
      finish: 'stop',
      usage: { input: 20, output: 9, cached: 16, reasoning: 4 },
    },
  },
  'Azure: filtered in the middle': {
    ...azure,
    rows: [8],
    stream: events(chunk({ content: 'Well' }), chunk({}, 'content_filter')),
    whole: completion({ content: 'Well' }, 'content_filter'),
    gives: { text: 'Well', finish: 'content_filter', calls: [] },
  },
  'LiteLLM: an index from 1, an error as text with its status, half an answer before': {
    ...litellm,
    rows: [3, 16],
    stream: events(chunk(tools(piece(1, '{"a"', { id: 'toolu_1' }, 'one'))), {
      error: {
        message: 'litellm.RateLimitError: RateLimitError: too many. Please try again in 20s.',
        type: 'None',
        param: 'None',
        code: '429',
      },
    }),
    gives: { class: 'rate_limit', retryable: true, waitMs: 20_000 },
  },
  'LiteLLM: thinking blocks with signatures, index from 1': {
    ...litellm,
    rows: [3, 11],
    stream: events(
      chunk({
        reasoning_content: 'I ',
        thinking_blocks: [{ type: 'thinking', thinking: 'I ', signature: null }],
      }),
      chunk({
        reasoning_content: 'see',
        thinking_blocks: [{ type: 'thinking', thinking: 'see', signature: null }],
      }),
      chunk({ thinking_blocks: [{ type: 'thinking', thinking: '', signature: 'sig' }] }),
      chunk(tools(piece(1, '', { id: 'toolu_1', type: 'function' }, 'one'))),
      chunk(tools(piece(1, '{"a":1}'))),
      chunk({}, 'tool_calls'),
    ),
    whole: completion(
      {
        content: null,
        reasoning_content: 'I see',
        thinking_blocks: [{ type: 'thinking', thinking: 'I see', signature: 'sig' }],
        tool_calls: [wireCall('toolu_1', 'one', '{"a":1}')],
      },
      'tool_calls',
    ),
    gives: {
      thought: 'I see',
      calls: [call('toolu_1', 'one', { a: 1 })],
      replay: [
        {
          raw: {
            reasoning_content: 'I see',
            thinking_blocks: [{ type: 'thinking', thinking: 'I see', signature: 'sig' }],
          },
        },
      ],
    },
  },
  'one-api: zeros after the real usage, an id for every delta, a finish word on every chunk': {
    ...oneApi,
    rows: [4, 8, 14],
    stream: events(
      chunk(tools(piece(0, '{"pa', { id: 'x1' }, 'read_file')), 'stop', {
        usage: { prompt_tokens: 4, completion_tokens: 2 },
      }),
      chunk(tools(piece(0, 'th":', { id: 'x2' }, 'read_file')), 'stop'),
      chunk(tools(piece(0, '"a"}', { id: 'x3' }, 'read_file')), 'stop', {
        usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      }),
    ),
    gives: {
      calls: [call('x1', 'read_file', { path: 'a' })],
      usage: { input: 4, output: 2 },
      finish: 'stop',
    },
  },
  'one-api: function_call beside tool_calls says it once': {
    ...oneApi,
    rows: [7, 10],
    stream: events(
      chunk({
        ...tools(piece(0, '{"a"', { id: 'x' }, 'one')),
        function_call: { name: 'one', arguments: '{"a"' },
      }),
      chunk({ ...tools(piece(0, ':1}')), function_call: { arguments: ':1}' } }),
      chunk({}, 'tool_calls'),
    ),
    gives: { calls: [call('x', 'one', { a: 1 })] },
  },
  'one-api: a JSON error under 200': {
    ...oneApi,
    rows: [16],
    stream: JSON.stringify({
      error: { message: '当前分组上游负载已饱和，请稍后再试', type: 'new_api_error', param: '', code: null },
    }),
    gives: { class: 'overloaded', retryable: true },
  },
  'a Bedrock gateway: an index for every delta': {
    baseUrl: 'http://gateway:8000/api/v1',
    model: 'anthropic.claude',
    rows: [3],
    stream: events(
      chunk(tools(piece(0, '', { id: 'tooluse_1', type: 'function' }, 'one'))),
      chunk(tools(piece(1, '{"a"'))),
      chunk(tools(piece(2, ':1}'))),
      chunk({}, 'tool_calls'),
    ),
    gives: { calls: [call('tooluse_1', 'one', { a: 1 })] },
  },
}
