/**
 * Responses streams, from OpenAI's reference and guides and from public reports of 2025 and 2026. `source` is where the
 * shape stands; identifiers, texts and counts are ours.
 */
import { type DocumentedAnswer, call } from './answer.ts'

export interface ResponsesAnswer extends DocumentedAnswer {
  wire: 'responses'
  source: string
}

const openai = {
  wire: 'responses',
  rows: [],
  baseUrl: 'https://api.openai.com/v1',
  model: 'gpt-5.2',
} as const
const azure = { ...openai, baseUrl: 'https://res.openai.azure.com/openai/v1' } as const
const copilot = { ...openai, baseUrl: 'https://api.githubcopilot.com', model: 'gpt-5.3-codex' } as const
const litellm = { ...openai, baseUrl: 'http://127.0.0.1:4000/v1', model: 'custom_openai/m' } as const
const relay = { ...openai, baseUrl: 'https://relay.example/v1' } as const
const vllm = { ...openai, baseUrl: 'http://vllm:8000/v1', model: 'openai/gpt-oss-20b' } as const
const openrouter = { ...openai, baseUrl: 'https://openrouter.ai/api/v1', model: 'anthropic/claude' } as const
const reference = 'platform.openai.com/docs/api-reference/responses-streaming'

/** No report shows it; it is one of the things that a provider may send all the same. */
const MADE = 'made up'

const ev = (type: string, members: object = {}): string =>
  `event: response.${type}\ndata: ${JSON.stringify({ type: `response.${type}`, ...members })}\n\n`
/** Without a name in the stream, as LiteLLM sends it. */
const bare = (type: string, members: object = {}): string =>
  `data: ${JSON.stringify({ type: `response.${type}`, ...members })}\n\n`
const raw = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`
const DONE = 'data: [DONE]\n\n'

const text = (words: string): object => ({ type: 'output_text', text: words, annotations: [] })
const msg = (id: string, words: string, more: object = {}): object => ({
  id,
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: words === '' ? [] : [text(words)],
  ...more,
})
const fn = (id: string, call_id: string, name: string, args: unknown): object => ({
  id,
  type: 'function_call',
  status: 'completed',
  call_id,
  name,
  arguments: args,
})
const thought = (id: string, summaries: string[], more: object = {}): object => ({
  id,
  type: 'reasoning',
  summary: summaries.map((words) => ({ type: 'summary_text', text: words })),
  ...more,
})
const added = (output_index: number, item: object): string => ev('output_item.added', { output_index, item })
const itemDone = (output_index: number, item: object): string =>
  ev('output_item.done', { output_index, item })
const say = (item_id: string, output_index: number, delta: string): string =>
  ev('output_text.delta', { item_id, output_index, content_index: 0, delta })
const args = (item_id: string, output_index: number, delta: string): string =>
  ev('function_call_arguments.delta', { item_id, output_index, delta })
const usage = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 14,
}
const counted = { input: 9, output: 5, cached: 4, reasoning: 2 }
const response = (status: string, output: readonly object[], more: object = {}): object => ({
  id: 'resp_1',
  object: 'response',
  status,
  error: null,
  incomplete_details: null,
  output,
  usage,
  ...more,
})
const created = ev('created', { response: response('in_progress', [], { usage: null }) })
const completed = (...output: object[]): string =>
  ev('completed', { response: response('completed', output) })
const ended = (status: string, output: readonly object[], more: object): string =>
  ev(status, { response: response(status, output, more) })
const failed = (error: unknown): string => ended('failed', [], { error, usage: null })

const hello = msg('msg_1', 'Hello')
const begun = created + added(0, msg('msg_1', ''))
const half = begun + say('msg_1', 0, 'half')
const weather = fn('fc_1', 'call_1', 'weather', '{"city":"Oslo"}')
const weatherCall = call('call_1', 'weather', { city: 'Oslo' })

export const RESPONSES: Record<string, ResponsesAnswer> = {
  'OpenAI: text, with every event': {
    ...openai,
    source: reference,
    stream:
      created +
      ev('in_progress', { sequence_number: 1, response: response('in_progress', []) }) +
      added(0, msg('msg_1', '')) +
      ev('content_part.added', { item_id: 'msg_1', output_index: 0, content_index: 0, part: text('') }) +
      say('msg_1', 0, 'Hel') +
      say('msg_1', 0, 'lo') +
      ev('output_text.done', { item_id: 'msg_1', output_index: 0, content_index: 0, text: 'Hello' }) +
      ev('content_part.done', { item_id: 'msg_1', output_index: 0, content_index: 0, part: text('Hello') }) +
      itemDone(0, hello) +
      completed(hello),
    whole: response('completed', [hello]),
    gives: { text: 'Hello', thought: '', calls: [], finish: 'stop', usage: counted },
  },
  'OpenAI: a call': {
    ...openai,
    source: 'platform.openai.com/docs/guides/function-calling#streaming',
    stream:
      added(0, fn('fc_1', 'call_1', 'weather', '')) +
      args('fc_1', 0, '{"ci') +
      args('fc_1', 0, 'ty":"Oslo"}') +
      ev('function_call_arguments.done', { item_id: 'fc_1', output_index: 0, arguments: '{"city":"Oslo"}' }) +
      itemDone(0, weather) +
      completed(weather),
    whole: response('completed', [weather]),
    gives: { text: '', calls: [weatherCall], finish: 'tool_calls' },
  },
  'OpenAI: parallel calls, in turns': {
    ...openai,
    source: reference,
    stream:
      added(0, fn('fc_1', 'call_1', 'read', '')) +
      added(1, fn('fc_2', 'call_2', 'read', '')) +
      args('fc_2', 1, '{"p":') +
      args('fc_1', 0, '{"p":1}') +
      args('fc_2', 1, '2}') +
      completed(),
    gives: { calls: [call('call_1', 'read', { p: 1 }), call('call_2', 'read', { p: 2 })] },
  },
  'OpenAI: reasoning with its call': {
    ...openai,
    source: 'platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items',
    stream:
      added(0, thought('rs_1', [], { encrypted_content: 'gA' })) +
      ev('reasoning_summary_part.added', { item_id: 'rs_1', output_index: 0, summary_index: 0 }) +
      ev('reasoning_summary_text.delta', {
        item_id: 'rs_1',
        output_index: 0,
        summary_index: 0,
        delta: 'Look',
      }) +
      ev('reasoning_summary_text.done', {
        item_id: 'rs_1',
        output_index: 0,
        summary_index: 0,
        text: 'Look',
      }) +
      itemDone(0, thought('rs_1', ['Look'], { encrypted_content: 'gAAAB' })) +
      itemDone(1, weather) +
      completed(thought('rs_1', ['Look'], { encrypted_content: 'gAAAB' }), weather),
    whole: response('completed', [thought('rs_1', ['Look'], { encrypted_content: 'gAAAB' }), weather]),
    gives: {
      thought: 'Look',
      calls: [weatherCall],
      replay: [
        {
          raw: {
            type: 'reasoning',
            id: 'rs_1',
            summary: [{ type: 'summary_text', text: 'Look' }],
            encrypted_content: 'gAAAB',
          },
        },
        { call: 0 },
      ],
    },
  },
  'OpenAI: a summary in two parts': {
    ...openai,
    source: reference,
    stream:
      added(0, thought('rs_1', [])) +
      ev('reasoning_summary_text.delta', {
        item_id: 'rs_1',
        output_index: 0,
        summary_index: 0,
        delta: '**A**',
      }) +
      ev('reasoning_summary_text.delta', {
        item_id: 'rs_1',
        output_index: 0,
        summary_index: 1,
        delta: '**B**',
      }) +
      itemDone(0, thought('rs_1', ['**A**', '**B**'])) +
      itemDone(1, hello) +
      completed(),
    whole: response('completed', [thought('rs_1', ['**A**', '**B**']), hello]),
    gives: { thought: '**A**\n\n**B**', text: 'Hello' },
  },
  'OpenAI: a refusal': {
    ...openai,
    source: reference,
    stream:
      begun +
      ev('refusal.delta', { item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'I can' }) +
      ev('refusal.delta', { item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'not.' }) +
      ev('refusal.done', { item_id: 'msg_1', output_index: 0, content_index: 0, refusal: 'I cannot.' }) +
      completed(msg('msg_1', '', { content: [{ type: 'refusal', refusal: 'I cannot.' }] })),
    whole: response('completed', [
      msg('msg_1', '', { content: [{ type: 'refusal', refusal: 'I cannot.' }] }),
    ]),
    gives: { text: 'I cannot.', finish: 'content_filter' },
  },
  'OpenAI: the limit of the answer': {
    ...openai,
    source: reference,
    stream:
      half +
      ended('incomplete', [msg('msg_1', 'half')], { incomplete_details: { reason: 'max_output_tokens' } }),
    whole: response('incomplete', [msg('msg_1', 'half')], {
      incomplete_details: { reason: 'max_output_tokens' },
    }),
    gives: { text: 'half', finish: 'length' },
  },
  'OpenAI: the limit of the answer in a call': {
    ...openai,
    source: MADE,
    stream:
      added(0, fn('fc_1', 'call_1', 'write', '')) +
      args('fc_1', 0, '{"text":"ha') +
      ended('incomplete', [fn('fc_1', 'call_1', 'write', '{"text":"ha')], {
        incomplete_details: { reason: 'max_output_tokens' },
      }),
    gives: {
      finish: 'length',
      calls: [{ id: 'call_1', name: 'write', args: '{"text":"ha', invalid: 'truncated' }],
    },
  },
  'Azure: the content filter, in the middle': {
    ...azure,
    source: 'learn.microsoft.com/azure/ai-foundry/openai/how-to/responses',
    stream: half + ended('incomplete', [], { incomplete_details: { reason: 'content_filter' } }),
    gives: { text: 'half', finish: 'content_filter' },
  },
  'Azure: a rate limit in the stream': {
    ...azure,
    source: 'github.com/earendil-works/pi/pull/1458',
    stream:
      created +
      failed({
        code: 'rate_limit_exceeded',
        message: 'Requests to the Operation have exceeded token rate limit. Please retry after 7 seconds.',
      }),
    gives: { class: 'rate_limit', retryable: true, waitMs: 7_000 },
  },
  'OpenAI: an error event, flat': {
    ...openai,
    source: reference,
    stream:
      half +
      'event: error\ndata: {"type":"error","code":"server_error","message":"The server had an error.","param":null,"sequence_number":4}\n\n',
    gives: { class: 'server_error', retryable: true },
  },
  'OpenAI: an error event, nested': {
    ...openai,
    source: 'github.com/openai/openai-dotnet/issues/881',
    stream: raw({
      type: 'error',
      sequence_number: 2,
      error: {
        type: 'insufficient_quota',
        code: 'insufficient_quota',
        message: 'You exceeded your current quota',
      },
    }),
    gives: { class: 'quota', retryable: false },
  },
  'OpenAI: the window is full': {
    ...openai,
    source: 'github.com/openai/codex/issues/4116',
    stream:
      created +
      failed({
        code: 'context_length_exceeded',
        message:
          'Your input exceeds the context window of this model. Please adjust your input and try again.',
      }),
    whole: response('failed', [], {
      error: {
        code: 'context_length_exceeded',
        message:
          'Your input exceeds the context window of this model. Please adjust your input and try again.',
      },
    }),
    gives: { class: 'context_overflow', retryable: false },
  },
  'OpenAI: reasoning that is refused in the stream': {
    ...openai,
    source: 'github.com/openai/codex/issues/8128',
    stream:
      created +
      failed({
        code: 'invalid_encrypted_content',
        message: 'The encrypted content gAAA...ng== could not be verified.',
      }),
    gives: { class: 'replay_refused', retryable: false },
  },
  'OpenAI: codex, two messages with their phases': {
    ...openai,
    model: 'gpt-5.3-codex',
    source: 'github.com/anomalyco/opencode/issues/15528',
    stream:
      added(0, msg('msg_1', '', { phase: 'commentary' })) +
      say('msg_1', 0, 'Looking.') +
      itemDone(0, msg('msg_1', 'Looking.', { phase: 'commentary' })) +
      added(1, msg('msg_2', '', { phase: 'final_answer' })) +
      say('msg_2', 1, 'Found.') +
      completed(),
    whole: response('completed', [
      msg('msg_1', 'Looking.', { phase: 'commentary' }),
      msg('msg_2', 'Found.', { phase: 'final_answer' }),
    ]),
    gives: {
      text: 'Looking.\n\nFound.',
      replay: [
        { chars: 10, raw: { phase: 'commentary' } },
        { chars: 6, raw: { phase: 'final_answer' } },
      ],
    },
  },
  'OpenAI: a search of its own, and its notes': {
    ...openai,
    source: 'platform.openai.com/docs/guides/tools-web-search',
    stream:
      itemDone(0, { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search' } }) +
      ev('web_search_call.completed', { output_index: 0, item_id: 'ws_1' }) +
      added(1, msg('msg_1', '')) +
      say('msg_1', 1, 'Hello') +
      ev('output_text.annotation.added', { item_id: 'msg_1', output_index: 1, annotation: { title: 'x' } }) +
      completed(),
    gives: { text: 'Hello', calls: [], finish: 'stop' },
  },
  'OpenAI: keep-alive events, and an event that nobody knows': {
    ...openai,
    source: 'github.com/openai/openai-node/issues/1964',
    stream:
      'event: keepalive\ndata: {"type":"keepalive","sequence_number":3}\n\n' +
      begun +
      ev('brand_new.delta', { delta: 'no', output_index: 0 }) +
      say('msg_1', 0, 'Hello') +
      completed(),
    gives: { text: 'Hello' },
  },
  'OpenAI: a compacted context goes back': {
    ...openai,
    source: 'platform.openai.com/docs/guides/compaction',
    stream:
      itemDone(0, { id: 'cmp_1', type: 'compaction', encrypted_content: 'gC' }) +
      itemDone(1, hello) +
      completed(),
    gives: {
      text: 'Hello',
      replay: [{ raw: { id: 'cmp_1', type: 'compaction', encrypted_content: 'gC' } }, { chars: 5 }],
    },
  },
  'OpenAI: numbers keep their digits': {
    ...openai,
    source: MADE,
    stream: itemDone(0, fn('fc_1', 'call_1', 'get', '{"id":12345678901234567890}')) + completed(),
    whole: response('completed', [fn('fc_1', 'call_1', 'get', '{"id":12345678901234567890}')]),
    gives: { finish: 'tool_calls' },
  },
  'OpenAI: no arguments': {
    ...openai,
    source: reference,
    stream:
      added(0, fn('fc_1', 'call_1', 'now', '')) + itemDone(0, fn('fc_1', 'call_1', 'now', '')) + completed(),
    gives: { calls: [call('call_1', 'now', {})] },
  },
  'OpenAI: cancelled': {
    ...openai,
    source: 'platform.openai.com/docs/guides/background',
    stream: half + ended('cancelled', [], {}),
    whole: response('cancelled', []),
    gives: { class: 'stream_interrupted', retryable: true },
  },
  'OpenAI: failed without a reason': {
    ...openai,
    source: 'github.com/microsoft/agent-framework-go/pull/546',
    stream: half + failed(null),
    gives: { class: 'provider_error', retryable: true },
  },
  'Codex: the end has no items': {
    ...openai,
    baseUrl: 'https://chatgpt.com/backend-api/codex',
    source: 'github.com/BerriAI/litellm/pull/32724',
    stream: itemDone(0, thought('rs_1', ['Hm'])) + itemDone(1, hello) + itemDone(2, weather) + completed(),
    gives: { thought: 'Hm', text: 'Hello', calls: [weatherCall] },
  },
  'Codex: `response.done` is the end': {
    ...openai,
    baseUrl: 'https://chatgpt.com/backend-api/codex',
    source: 'github.com/can1357/oh-my-pi/pull/4692',
    stream: half + ev('done', { response: { id: 'resp_1', usage } }),
    gives: { text: 'half', finish: 'stop', usage: counted },
  },
  'Relay: everything in the end alone': {
    ...relay,
    source: 'github.com/NVIDIA-NeMo/Switchyard/pull/777',
    stream: created + completed(thought('rs_1', ['Hm']), hello, weather),
    gives: { thought: 'Hm', text: 'Hello', calls: [weatherCall], finish: 'tool_calls' },
  },
  'Relay: arguments in `done` alone': {
    ...relay,
    source: 'github.com/lidge-jun/opencodex/pull/4652',
    stream:
      added(0, fn('fc_1', 'call_1', 'weather', '')) +
      ev('function_call_arguments.done', { item_id: 'fc_1', output_index: 0, arguments: '{"city":"Oslo"}' }) +
      completed(),
    gives: { calls: [weatherCall] },
  },
  'Relay: the name in `done` alone': {
    ...relay,
    source: 'github.com/voocel/litellm/pull/4',
    stream:
      args('fc_1', 0, '{"city":"Oslo"}') +
      ev('function_call_arguments.done', {
        item_id: 'fc_1',
        call_id: 'call_1',
        name: 'weather',
        output_index: 0,
        arguments: '{"city":"Oslo"}',
      }) +
      completed(),
    gives: { calls: [weatherCall] },
  },
  'Relay: the end has other arguments than the pieces': {
    ...relay,
    source: 'github.com/MoonshotAI/kimi-code/issues/1455',
    stream:
      added(0, fn('fc_1', 'call_1', 'weather', '')) + args('fc_1', 0, '{"city":"Os') + completed(weather),
    gives: { calls: [weatherCall] },
  },
  'Relay: the end has arguments that cannot be read, the pieces could': {
    ...relay,
    source: MADE,
    stream:
      added(0, fn('fc_1', 'call_1', 'weather', '')) +
      args('fc_1', 0, '{"city":"Oslo"}') +
      completed(fn('fc_1', 'call_1', 'weather', '{"city":')),
    gives: { calls: [weatherCall] },
  },
  'Relay: the end has an empty object for the arguments': {
    ...relay,
    source: MADE,
    stream:
      added(0, fn('fc_1', 'call_1', 'weather', '{}')) +
      args('fc_1', 0, '{"city":"Oslo"}') +
      completed(fn('fc_1', 'call_1', 'weather', '{}')),
    gives: { calls: [weatherCall] },
  },
  'Relay: the last words in the end alone, and other words': {
    ...relay,
    source: 'github.com/Oaklight/llm-rosetta/issues/56',
    stream: half + completed(msg('msg_1', 'half and half')),
    gives: { text: 'half and half' },
  },
  'Relay: an end that contradicts the text: what was shown stands': {
    ...relay,
    source: MADE,
    stream: half + completed(msg('msg_1', 'something else')),
    gives: { text: 'half', finish: 'stop' },
  },
  'Relay: pieces before their item': {
    ...relay,
    source: 'github.com/Oaklight/llm-rosetta/issues/56',
    stream: say('msg_1', 0, 'Hel') + added(0, msg('msg_1', '')) + say('msg_1', 0, 'lo') + completed(hello),
    gives: { text: 'Hello' },
  },
  'Relay: items out of order': {
    ...relay,
    source: 'github.com/BerriAI/litellm/pull/36375',
    stream:
      itemDone(1, weather) + itemDone(0, thought('rs_1', [], { encrypted_content: 'gA' })) + completed(),
    gives: {
      calls: [weatherCall],
      replay: [{ raw: { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'gA' } }, { call: 0 }],
    },
  },
  'Relay: neither indices nor items': {
    ...relay,
    source: 'github.com/Oaklight/llm-rosetta/issues/56',
    stream:
      bare('output_text.delta', { delta: 'Hel' }) +
      bare('output_text.delta', { delta: 'lo' }) +
      bare('completed', { response: { usage } }),
    gives: { text: 'Hello', finish: 'stop', usage: counted },
  },
  'Relay: the response itself is the event': {
    ...relay,
    source: 'github.com/pjq/sap-ai-core-llm-proxy/pull/35',
    stream:
      `event: response.created\ndata: ${JSON.stringify(response('in_progress', []))}\n\n` +
      `event: response.output_text.delta\ndata: {"item_id":"msg_1","output_index":0,"delta":"Hello"}\n\n` +
      `event: response.completed\ndata: ${JSON.stringify(response('completed', [hello]))}\n\n`,
    gives: { text: 'Hello', finish: 'stop', usage: counted },
  },
  'Relay: the index of the part is that of the item': {
    ...relay,
    source: 'github.com/tombii/better-ccflare/pull/233',
    stream:
      added(1, msg('msg_1', '')) +
      ev('output_text.delta', { item_id: 'msg_1', output_index: 1, content_index: 1, delta: 'Hello' }) +
      ev('output_text.done', { item_id: 'msg_1', output_index: 1, content_index: 1, text: 'Hello' }) +
      itemDone(1, hello) +
      completed(),
    gives: { text: 'Hello' },
  },
  'Relay: a rate limit with a code alone': {
    ...relay,
    source: 'github.com/QuantumNous/new-api/issues/6643',
    stream: raw({ error: { message: 'rate limited', code: 'rate_limit_exceeded' } }),
    gives: { class: 'rate_limit', retryable: true },
  },
  'Relay: its upstream failed': {
    ...relay,
    source: 'github.com/Wei-Shaw/sub2api/issues/3038',
    stream: failed({ code: 'upstream_error', message: 'Upstream request failed' }),
    gives: { class: 'provider_error', retryable: true },
  },
  'Relay: Chat Completions on the path of Responses': {
    ...relay,
    source: 'github.com/praxis-proxy/ai/issues/36',
    stream: raw({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { content: 'a' } }],
    }),
    gives: { class: 'protocol', retryable: false },
  },
  'Copilot: another id in every event': {
    ...copilot,
    source: 'github.com/vercel/ai/pull/18548',
    stream:
      added(0, thought('a1', [])) +
      ev('reasoning_summary_text.delta', { item_id: 'a2', output_index: 0, summary_index: 0, delta: 'H' }) +
      ev('reasoning_summary_text.delta', { item_id: 'a3', output_index: 0, summary_index: 0, delta: 'm' }) +
      itemDone(0, thought('a4', ['Hm'], { encrypted_content: 'gA' })) +
      added(1, msg('b1', '')) +
      say('b2', 1, 'Hel') +
      say('b3', 1, 'lo') +
      itemDone(1, msg('b4', 'Hello')) +
      completed(thought('a5', ['Hm'], { encrypted_content: 'gA' }), msg('b5', 'Hello')),
    gives: { thought: 'Hm', text: 'Hello' },
  },
  'Copilot: a call whose ids change': {
    ...copilot,
    source: 'github.com/caozhiyuan/copilot-api/pull/72',
    stream:
      added(0, fn('a1', 'call_1', 'weather', '')) +
      args('a2', 0, '{"city":') +
      args('a3', 0, '"Oslo"}') +
      itemDone(0, fn('a4', 'call_1', 'weather', '{"city":"Oslo"}')) +
      completed(fn('a5', 'call_1', 'weather', '{"city":"Oslo"}')),
    gives: { calls: [weatherCall] },
  },
  'LiteLLM: no names, no numbers, [DONE]': {
    ...litellm,
    source: 'LiteLLM 1.106.6, as it ran in front of a Chat Completions server',
    stream:
      bare('created', { model: 'm', response: response('in_progress', []) }) +
      bare('output_item.added', { model: 'm', output_index: 0, item: msg('msg_bGl0ZWxsbTpjdXN0b20', '') }) +
      bare('output_text.delta', {
        model: 'm',
        item_id: 'msg_bGl0ZWxsbTpjdXN0b20',
        output_index: 0,
        delta: 'Hello',
      }) +
      bare('output_text.done', {
        model: 'm',
        item_id: 'msg_bGl0ZWxsbTpjdXN0b20',
        output_index: 0,
        text: 'Hello',
      }) +
      bare('completed', { model: 'm', response: response('completed', [hello]) }) +
      DONE,
    gives: { text: 'Hello', finish: 'stop' },
  },
  'LiteLLM: a message that only ends, and a call': {
    ...litellm,
    source: 'github.com/BerriAI/litellm/issues/37852',
    stream:
      bare('output_item.added', { output_index: 0, item: fn('fc_1', 'call_1', 'weather', '') }) +
      bare('function_call_arguments.delta', { item_id: 'fc_1', output_index: 0, delta: '{"city":"Oslo"}' }) +
      bare('output_text.done', { item_id: 'chatcmpl-1', output_index: 0, content_index: 0, text: '' }) +
      bare('output_item.done', { output_index: 0, item: msg('chatcmpl-1', '') }) +
      bare('completed', { response: response('completed', [msg('chatcmpl-1', ''), weather]) }) +
      DONE,
    gives: { text: '', calls: [weatherCall], finish: 'tool_calls' },
  },
  'LiteLLM: one index for all items': {
    ...litellm,
    source: 'github.com/BerriAI/litellm/pull/36375',
    stream:
      bare('reasoning_summary_text.delta', { item_id: 'r1', output_index: 0, delta: 'H' }) +
      bare('reasoning_summary_text.delta', { item_id: 'r2', output_index: 0, delta: 'm' }) +
      bare('output_text.delta', { item_id: 'm1', output_index: 0, content_index: 0, delta: 'Hello' }) +
      bare('output_item.added', { output_index: 0, item: fn('fc_1', 'call_1', 'read', '') }) +
      bare('output_item.added', { output_index: 0, item: fn('fc_2', 'call_2', 'read', '') }) +
      bare('function_call_arguments.delta', { item_id: 'fc_1', output_index: 0, delta: '{"p":1}' }) +
      bare('function_call_arguments.delta', { item_id: 'fc_2', output_index: 0, delta: '{"p":2}' }) +
      bare('completed', { response: response('completed', []) }) +
      DONE,
    gives: {
      thought: 'Hm',
      text: 'Hello',
      calls: [call('call_1', 'read', { p: 1 }), call('call_2', 'read', { p: 2 })],
    },
  },
  'LiteLLM: pieces under one index, with the right ids': {
    ...litellm,
    source: 'github.com/BerriAI/litellm/pull/36375',
    stream:
      added(0, fn('fc_1', 'call_1', 'read', '')) +
      added(1, fn('fc_2', 'call_2', 'read', '')) +
      args('fc_1', 0, '{"p":1}') +
      args('fc_2', 0, '{"p":2}') +
      completed(),
    gives: { calls: [call('call_1', 'read', { p: 1 }), call('call_2', 'read', { p: 2 })] },
  },
  'LiteLLM: two messages under one index': {
    ...litellm,
    source: 'github.com/BerriAI/litellm/pull/36375',
    stream:
      added(0, msg('msg_1', '')) +
      say('msg_1', 0, 'One.') +
      added(0, msg('msg_2', '')) +
      say('msg_2', 0, 'Two.') +
      completed(),
    gives: { text: 'One.\n\nTwo.' },
  },
  'Relay: a summary, and the thought itself': {
    ...relay,
    source: MADE,
    stream:
      ev('reasoning_summary_text.delta', {
        item_id: 'rs_1',
        output_index: 0,
        summary_index: 0,
        delta: 'Hm',
      }) +
      ev('reasoning_text.delta', { item_id: 'rs_1', output_index: 0, content_index: 0, delta: 'Hm, well' }) +
      completed(hello),
    gives: { thought: 'Hm', text: 'Hello' },
  },
  'OpenAI: the limit of the answer before the arguments': {
    ...openai,
    source: MADE,
    stream:
      added(0, fn('fc_1', 'call_1', 'now', '')) +
      ended('incomplete', [], { incomplete_details: { reason: 'max_output_tokens' } }),
    gives: { finish: 'length', calls: [{ id: 'call_1', name: 'now', args: '', invalid: 'truncated' }] },
  },
  'LiteLLM: a summary that is a message in the end': {
    ...litellm,
    source: 'LiteLLM 1.106.6, as it ran in front of a Chat Completions server',
    stream:
      bare('output_item.added', { output_index: 0, item: { id: 'rs_1', type: 'reasoning' } }) +
      bare('reasoning_summary_text.delta', { item_id: 'rs_1', output_index: 0, delta: 'Hm' }) +
      bare('output_item.done', { output_index: 0, item: thought('rs_1', ['Hm']) }) +
      bare('output_item.done', { output_index: 1, item: hello }) +
      bare('completed', {
        response: response('completed', [
          { id: 'rs_1', type: 'reasoning', role: 'assistant', content: [text('Hm')] },
          hello,
        ]),
      }) +
      DONE,
    whole: response('completed', [
      { id: 'rs_1', type: 'reasoning', role: 'assistant', content: [text('Hm')] },
      hello,
    ]),
    gives: { thought: 'Hm', text: 'Hello', replay: undefined },
  },
  'LiteLLM: an overflow comes as an answer of nothing': {
    ...litellm,
    source: 'LiteLLM 1.106.6, in front of llama.cpp',
    stream:
      bare('created', { response: response('in_progress', []) }) +
      bare('completed', { response: response('completed', [msg('m', '')], { usage: null }) }) +
      DONE,
    gives: { text: '', calls: [], finish: 'stop' },
  },
  'LlamaStack: no `output_text.done`': {
    ...relay,
    baseUrl: 'http://127.0.0.1:8321/v1',
    source: 'github.com/ogx-ai/ogx/issues/5309',
    stream: begun + say('msg_1', 0, 'Hello') + itemDone(0, hello) + completed(hello),
    gives: { text: 'Hello', finish: 'stop' },
  },
  'vLLM: the thoughts themselves': {
    ...vllm,
    source: 'github.com/vllm-project/vllm/pull/25719',
    stream:
      added(0, thought('rs_1', [])) +
      ev('reasoning_text.delta', { item_id: 'rs_1', output_index: 0, content_index: 0, delta: 'Hm' }) +
      ev('reasoning_text.done', { item_id: 'rs_1', output_index: 0, content_index: 0, text: 'Hm' }) +
      itemDone(
        0,
        thought('rs_1', [], {
          content: [{ type: 'reasoning_text', text: 'Hm' }],
          encrypted_content: null,
          status: 'completed',
        }),
      ) +
      itemDone(1, weather) +
      completed(),
    whole: response('completed', [
      thought('rs_1', [], { content: [{ type: 'reasoning_text', text: 'Hm' }], encrypted_content: null }),
      weather,
    ]),
    gives: {
      thought: 'Hm',
      calls: [weatherCall],
      replay: [
        {
          raw: {
            id: 'rs_1',
            type: 'reasoning',
            summary: [],
            content: [{ type: 'reasoning_text', text: 'Hm' }],
          },
        },
        { call: 0 },
      ],
    },
  },
  'vLLM: the older name of thoughts': {
    ...vllm,
    source: 'github.com/vllm-project/vllm/pull/25719',
    stream:
      ev('reasoning.delta', { item_id: 'rs_1', output_index: 0, content_index: 0, delta: 'Hm' }) +
      itemDone(1, hello) +
      completed(),
    gives: { thought: 'Hm', text: 'Hello' },
  },
  'vLLM: the end never comes': {
    ...vllm,
    source: 'github.com/vllm-project/vllm/pull/25719',
    stream: half + itemDone(0, msg('msg_1', 'half')),
    gives: { class: 'stream_interrupted', retryable: true },
  },
  'Ollama: arguments as an object': {
    ...relay,
    baseUrl: 'http://127.0.0.1:11434/v1',
    source: 'github.com/BerriAI/litellm/pull/24095',
    stream: itemDone(0, fn('fc_1', 'call_1', 'weather', { city: 'Oslo' })) + completed(),
    whole: response('completed', [fn('fc_1', 'call_1', 'weather', { city: 'Oslo' })]),
    gives: { calls: [weatherCall] },
  },
  'OpenRouter: comments, thoughts with a signature': {
    ...openrouter,
    source: 'openrouter.ai/docs/api/reference/responses/reasoning',
    stream:
      ': OPENROUTER PROCESSING\n\n' +
      bare('reasoning_text.delta', { item_id: 'rs_1', output_index: 0, content_index: 0, delta: 'Hm' }) +
      bare('output_item.done', {
        output_index: 0,
        item: thought('rs_1', [], { content: [{ type: 'reasoning_text', text: 'Hm' }], signature: 'sig' }),
      }) +
      bare('output_item.done', { output_index: 1, item: hello }) +
      bare('completed', { response: response('completed', []) }) +
      DONE,
    gives: {
      thought: 'Hm',
      text: 'Hello',
      replay: [{ raw: { signature: 'sig', content: [{ text: 'Hm' }] } }, { chars: 5 }],
    },
  },
  'OpenRouter: an error in the stream': {
    ...openrouter,
    source: 'openrouter.ai/docs/api/reference/responses/error-handling',
    stream: half + bare('error', { code: 'server_error', message: 'Provider returned error: Overloaded' }),
    gives: { class: 'overloaded', retryable: true },
  },
  'OpenAI: asked in the background it has not ended': {
    ...openai,
    source: 'platform.openai.com/docs/guides/background',
    stream: JSON.stringify(response('queued', [], { usage: null })),
    gives: { class: 'provider_error', retryable: true },
  },
}
