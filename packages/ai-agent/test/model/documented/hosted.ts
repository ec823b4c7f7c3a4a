/** Hosted models with dialects of their own. */
import { call, chunk, completion, events, piece, tools, wireCall } from './answer.ts'
import type { DocumentedAnswers } from './answer.ts'

const qwen = { baseUrl: 'https://dashscope.aliyuncs.com/compatible-mode/v1', model: 'qwen-max' }
const deepseek = { baseUrl: 'https://api.deepseek.com/v1', model: 'deepseek-v4' }
const kimi = { baseUrl: 'https://api.moonshot.ai/v1', model: 'kimi-k2.5' }
const mistral = { baseUrl: 'https://api.mistral.ai/v1', model: 'magistral-medium' }
const groq = { baseUrl: 'https://api.groq.com/openai/v1', model: 'llama-3.3-70b-versatile' }
const gemini = {
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
  model: 'gemini-3-pro',
}
const openrouter = { baseUrl: 'https://openrouter.ai/api/v1', model: 'x/y' }
const signed = (sig: string) => ({ extra_content: { google: { thought_signature: sig } } })

export const HOSTED: DocumentedAnswers = {
  'DashScope: empty ids and names in later deltas, the text null as finish word': {
    ...qwen,
    rows: [4, 8, 14],
    stream: events(
      chunk({ role: 'assistant', content: null }, 'null'),
      chunk({ content: null, ...tools(piece(0, '', { id: 'call_q', type: 'function' }, 'list')) }, 'null'),
      chunk(tools({ index: 0, id: '', type: 'function', function: { name: '', arguments: '{"path"' } })),
      chunk(tools({ index: 0, id: '', type: '', function: { name: null, arguments: ': "."}' } })),
      chunk({ content: '' }, 'tool_calls'),
      {
        choices: [],
        usage: { prompt_tokens: 5, completion_tokens: 6, prompt_tokens_details: { cached_tokens: 0 } },
      },
    ),
    whole: completion(
      { content: '', tool_calls: [{ index: 0, ...wireCall('call_q', 'list', '{"path": "."}') }] },
      'tool_calls',
      { usage: { prompt_tokens: 5, completion_tokens: 6, prompt_tokens_details: { cached_tokens: 0 } } },
    ),
    gives: { calls: [call('call_q', 'list', { path: '.' })], usage: { input: 5, output: 6, cached: 0 } },
  },
  'DashScope: text that repeats itself from the start': {
    ...qwen,
    rows: [10],
    stream: events(
      chunk({ reasoning_content: 'Hm' }),
      chunk({ reasoning_content: 'Hm, yes' }),
      chunk({ content: 'The' }),
      chunk({ content: 'The answer' }),
      chunk({ content: 'The answer' }),
      chunk({ content: 'The answer is 4' }),
      chunk({ content: 'The answer is 4.' }, 'stop'),
    ),
    gives: { text: 'The answer is 4.', thought: 'Hm, yes', finish: 'stop' },
  },
  'DashScope: ordinary text that only looks so': {
    ...qwen,
    rows: [10],
    stream: events(
      chunk({ content: '哈' }),
      chunk({ content: '哈' }),
      chunk({ content: '哈哈' }),
      chunk({ content: '!' }, 'stop'),
    ),
    gives: { text: '哈哈哈哈!' },
  },
  'DeepSeek: reasoning goes back also without calls, keep-alive comments, cache hits': {
    ...deepseek,
    rows: [11, 14, 15],
    stream: `: keep-alive\n\n: keep-alive\n\n${events(
      chunk({ role: 'assistant', content: null, reasoning_content: '' }),
      chunk({ content: null, reasoning_content: 'Let me' }),
      chunk({ content: null, reasoning_content: ' see' }),
      chunk({ content: '42', reasoning_content: null }),
      chunk({ content: '' }, 'stop', {
        usage: {
          prompt_tokens: 10,
          completion_tokens: 5,
          prompt_cache_hit_tokens: 8,
          prompt_cache_miss_tokens: 2,
          completion_tokens_details: { reasoning_tokens: 3 },
        },
      }),
    )}`,
    gives: {
      text: '42',
      thought: 'Let me see',
      replay: [{ raw: { reasoning_content: 'Let me see' } }],
      usage: { input: 10, output: 5, cached: 8, reasoning: 3 },
    },
  },
  'DeepSeek: no resources any more': {
    ...deepseek,
    rows: [8, 16],
    stream: events(chunk({ content: 'half' }), chunk({ content: '' }, 'insufficient_system_resource')),
    gives: { class: 'overloaded', retryable: true },
  },
  'Kimi: usage in the choice, ids of its own form': {
    ...kimi,
    rows: [5, 11, 14],
    stream: events(
      chunk({ role: 'assistant', content: '', reasoning_content: 'I look' }),
      chunk(tools(piece(0, '', { id: 'functions.read:0', type: 'function' }, 'read'))),
      chunk(tools(piece(0, '{"p":1}'))),
      {
        choices: [
          {
            index: 0,
            delta: {},
            finish_reason: 'tool_calls',
            usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, cached_tokens: 1 },
          },
        ],
      },
    ),
    whole: completion(
      {
        content: '',
        reasoning_content: 'I look',
        tool_calls: [{ index: 0, ...wireCall('functions.read:0', 'read', '{"p":1}') }],
      },
      'tool_calls',
      { usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, cached_tokens: 1 } },
    ),
    gives: {
      thought: 'I look',
      calls: [call('functions.read:0', 'read', { p: 1 })],
      replay: [{ raw: { reasoning_content: 'I look' } }],
      usage: { input: 3, output: 2, cached: 1 },
    },
  },
  'Mistral: thinking as parts, whole calls without index in one delta': {
    ...mistral,
    rows: [3, 6, 13],
    stream: events(
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Two ' }] }] }),
      chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'files' }], closed: true }] }),
      chunk({ content: [{ type: 'text', text: 'Reading.' }] }),
      chunk(
        {
          content: '',
          tool_calls: [
            { id: 'D681PevKs', function: { name: 'read', arguments: '{"p": "a"}' } },
            { id: 'E681PevKs', function: { name: 'read', arguments: '{"p": "b"}' } },
          ],
        },
        'tool_calls',
        { usage: { prompt_tokens: 3, completion_tokens: 2 } },
      ),
    ),
    whole: completion(
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Two files' }] },
          { type: 'text', text: 'Reading.' },
        ],
        tool_calls: [
          wireCall('D681PevKs', 'read', '{"p": "a"}'),
          wireCall('E681PevKs', 'read', '{"p": "b"}'),
        ],
      },
      'tool_calls',
      { usage: { prompt_tokens: 3, completion_tokens: 2 } },
    ),
    gives: {
      text: 'Reading.',
      thought: 'Two files',
      calls: [call('D681PevKs', 'read', { p: 'a' }), call('E681PevKs', 'read', { p: 'b' })],
    },
  },
  'Groq: usage in x_groq, whole calls': {
    ...groq,
    rows: [14],
    stream: events(
      chunk({ role: 'assistant', content: null }, null, { x_groq: { id: 'req_1' } }),
      chunk({ reasoning: 'Now', channel: 'analysis' }),
      chunk(tools({ index: 0, ...wireCall('fc_1', 'echo', '{"text":"x"}') })),
      chunk({}, 'tool_calls', { x_groq: { id: 'req_1', usage: { prompt_tokens: 8, completion_tokens: 1 } } }),
    ),
    whole: completion(
      { content: null, reasoning: 'Now', tool_calls: [wireCall('fc_1', 'echo', '{"text":"x"}')] },
      'tool_calls',
      { x_groq: { id: 'req_1', usage: { prompt_tokens: 8, completion_tokens: 1 } } },
    ),
    gives: { thought: 'Now', calls: [call('fc_1', 'echo', { text: 'x' })], usage: { input: 8, output: 1 } },
  },
  'Groq: failed_generation in the middle': {
    ...groq,
    rows: [16],
    stream: `${events(chunk({ content: '' })).replace('data: [DONE]\n\n', '')}event: error\ndata: ${JSON.stringify(
      {
        error: {
          message:
            "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
          type: 'invalid_request_error',
          code: 'tool_use_failed',
          failed_generation: '<function=echo{"text": "x"}</function>',
          status_code: 400,
        },
      },
    )}\n\n`,
    gives: { class: 'tool_use_failed', retryable: true },
  },
  'Groq: an error in x_groq': {
    ...groq,
    rows: [16],
    stream: events(
      chunk({ content: 'a' }),
      chunk({}, 'stop', { x_groq: { id: 'r', error: 'over capacity' } }),
    ),
    gives: { class: 'overloaded', retryable: true },
  },
  'Gemini: index 0 for all, empty ids, signatures on calls and messages': {
    ...gemini,
    rows: [3, 5, 8, 12],
    stream: events(
      chunk({ role: 'assistant', content: '<thought>I', extra_content: { google: { thought: true } } }),
      chunk({ content: ' plan', extra_content: { google: { thought: true } } }),
      chunk({ content: '</thought>' }),
      chunk(tools({ index: 0, ...wireCall('', 'read', '{"p":"a"}'), ...signed('s1') })),
      chunk(tools({ index: 0, ...wireCall('', 'read', '{"p":"b"}') })),
      chunk({ content: '', ...signed('s2') }, 'stop'),
    ),
    whole: completion(
      {
        content: '<thought>I plan</thought>',
        tool_calls: [
          { ...wireCall('', 'read', '{"p":"a"}'), ...signed('s1') },
          wireCall('', 'read', '{"p":"b"}'),
        ],
        ...signed('s2'),
      },
      'stop',
    ),
    gives: {
      text: '',
      thought: 'I plan',
      calls: [
        { ...call('call_1', 'read', { p: 'a' }), replay: signed('s1') },
        call('call_2', 'read', { p: 'b' }),
      ],
      replay: [{ raw: signed('s2') }],
      finish: 'stop',
    },
  },
  'Gemini: a call that it could not make': {
    ...gemini,
    rows: [8, 16],
    stream: events(chunk({ content: 'a' }), chunk({}, 'function_call_filter: MALFORMED_FUNCTION_CALL')),
    gives: { class: 'malformed_tool_call', retryable: true },
  },
  'Gemini: an error in a list, with its delay': {
    ...gemini,
    rows: [16, 19],
    stream: events(chunk({ content: 'a' }), [
      {
        error: {
          code: 429,
          message: 'You exceeded your current quota, please check your plan and billing details.',
          status: 'RESOURCE_EXHAUSTED',
          details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34s' }],
        },
      },
    ]),
    gives: { class: 'rate_limit', retryable: true, waitMs: 34_000 },
  },
  'OpenRouter: comments, reasoning details, no [DONE]': {
    ...openrouter,
    rows: [11, 15, 17],
    stream: `: OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n${events(
      chunk({
        content: '',
        reasoning: 'Sure',
        reasoning_details: [{ type: 'reasoning.text', text: 'Sure', index: 0, format: 'f' }],
      }),
      chunk({
        content: '',
        reasoning: ' thing',
        reasoning_details: [{ type: 'reasoning.text', text: ' thing', index: 0, format: 'f' }],
      }),
      chunk({
        content: '',
        reasoning: null,
        reasoning_details: [{ type: 'reasoning.text', signature: 'sig', index: 0, format: 'f' }],
      }),
      chunk(tools(piece(0, '{"a":1}', { id: 'toolu', type: 'function' }, 'one'))),
      chunk({ content: '' }, 'tool_calls', { usage: { prompt_tokens: 2, completion_tokens: 3, cost: 0.1 } }),
    ).replace('data: [DONE]\n\n', '')}`,
    whole: completion(
      {
        content: null,
        reasoning: 'Sure thing',
        reasoning_details: [
          { type: 'reasoning.text', text: 'Sure thing', index: 0, format: 'f', signature: 'sig' },
        ],
        tool_calls: [{ index: 0, ...wireCall('toolu', 'one', '{"a":1}') }],
      },
      'tool_calls',
      { usage: { prompt_tokens: 2, completion_tokens: 3 } },
    ),
    gives: {
      text: '',
      thought: 'Sure thing',
      calls: [call('toolu', 'one', { a: 1 })],
      replay: [
        {
          raw: {
            reasoning: 'Sure thing',
            reasoning_details: [
              { type: 'reasoning.text', text: 'Sure thing', index: 0, format: 'f', signature: 'sig' },
            ],
          },
        },
      ],
    },
  },
  'OpenRouter: an error object in the middle': {
    ...openrouter,
    rows: [16],
    stream: events(
      chunk({ content: 'half' }),
      chunk({ content: '' }, 'error', {
        error: {
          code: 502,
          message: 'Provider returned error',
          metadata: { raw: 'upstream connect error', provider_name: 'X' },
        },
      }),
    ),
    gives: { class: 'server_error', retryable: true },
  },
}
