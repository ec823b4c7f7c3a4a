/** Answers over Messages, from Anthropic's documentation and from public reports of 2025 and 2026. */
import type { DocumentedAnswer, DocumentedAnswers } from './answer.ts'
import { call } from './answer.ts'

/** An answer of a provider: the rows of the list, its stream, what it gives, and the whole body. */
const at =
  (baseUrl: string, model: string) =>
  (
    rows: readonly number[],
    stream: string,
    gives: DocumentedAnswer['gives'],
    whole?: object,
  ): DocumentedAnswer => ({ wire: 'anthropic', rows, baseUrl, model, stream, whole, gives })
const claude = at('https://api.anthropic.com', 'claude-opus-5')
const gateway = at('http://gateway:4000/v1', 'any')

type Event = Record<string, unknown>
type Events = readonly (Event | readonly Event[])[]

/** Events with their names, as Anthropic sends them. */
const stream = (...events: Events): string =>
  written(events, (event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`)
/** The same without their names. */
const nameless = (...events: Events): string =>
  written(events, (event) => `data: ${JSON.stringify(event)}\n\n`)
const written = (events: Events, write: (event: Event) => string): string => events.flat().map(write).join('')

const MESSAGE = { id: 'msg_01', type: 'message', role: 'assistant', content: [], model: 'claude-opus-5' }
const start = (usage: object = { input_tokens: 25, output_tokens: 1 }, message: object = MESSAGE): Event => ({
  type: 'message_start',
  message: { ...message, stop_reason: null, stop_sequence: null, usage },
})
const begin = (index: number, content_block: object): Event => ({
  type: 'content_block_start',
  index,
  content_block,
})
const delta = (index: number, one: object): Event => ({ type: 'content_block_delta', index, delta: one })
const stop = (index: number): Event => ({ type: 'content_block_stop', index })
const block = (index: number, content: object, ...deltas: readonly object[]): Event[] => [
  begin(index, content),
  ...deltas.map((one) => delta(index, one)),
  stop(index),
]
const text = (index: number, ...pieces: readonly string[]): Event[] =>
  block(index, { type: 'text', text: '' }, ...pieces.map((piece) => ({ type: 'text_delta', text: piece })))
const thinking = (index: number, signature: string | undefined, ...pieces: readonly string[]): Event[] =>
  block(
    index,
    { type: 'thinking', thinking: '', signature: '' },
    ...pieces.map((piece) => ({ type: 'thinking_delta', thinking: piece })),
    ...(signature === undefined ? [] : [{ type: 'signature_delta', signature }]),
  )
const args = (partial_json: unknown) => ({ type: 'input_json_delta', partial_json })
const tool = (index: number, id: string, name: string, ...pieces: readonly unknown[]): Event[] =>
  block(index, { type: 'tool_use', id, name, input: {} }, ...pieces.map(args))
const end = (
  stop_reason: string | null,
  usage: object = { output_tokens: 15 },
  more: object = {},
): Event[] => [
  { type: 'message_delta', delta: { stop_reason, stop_sequence: null, ...more }, usage },
  { type: 'message_stop' },
]
const ping: Event = { type: 'ping' }
const failed = (type: string, message: string): Event => ({ type: 'error', error: { type, message } })
const whole = (content: readonly object[], stop_reason: string, usage: object): object => ({
  ...MESSAGE,
  content,
  stop_reason,
  usage,
})
const used = { input_tokens: 25, output_tokens: 15 }
const thought = (words: string, signature: string) => ({ type: 'thinking', thinking: words, signature })

/** An answer that ends so, with 25 tokens in and 15 out. */
const said = (stop_reason: string, ...events: Events): string => stream(start(), ...events, end(stop_reason))

const DOCUMENTED: DocumentedAnswers = {
  // platform.claude.com/docs/build-with-claude/streaming
  'text, with pings': claude(
    [],
    said(
      'end_turn',
      begin(0, { type: 'text', text: '' }),
      ping,
      delta(0, { type: 'text_delta', text: 'Hello' }),
      delta(0, { type: 'text_delta', text: '!' }),
      stop(0),
    ),
    { text: 'Hello!', thought: '', calls: [], finish: 'stop', usage: { input: 25, output: 15 } },
    whole([{ type: 'text', text: 'Hello!' }], 'end_turn', used),
  ),
  'a call behind text': claude(
    [],
    said(
      'tool_use',
      ping,
      text(0, "Okay, let's", ' check'),
      tool(1, 'toolu_01T1', 'get_weather', '', '{"location":', ' "San', ' Francisco, CA"}'),
    ),
    {
      text: "Okay, let's check",
      calls: [call('toolu_01T1', 'get_weather', { location: 'San Francisco, CA' })],
      finish: 'tool_calls',
    },
    whole(
      [
        { type: 'text', text: "Okay, let's check" },
        { type: 'tool_use', id: 'toolu_01T1', name: 'get_weather', input: { location: 'San Francisco, CA' } },
      ],
      'tool_use',
      used,
    ),
  ),
  'a thought with its signature': claude(
    [],
    said('end_turn', thinking(0, 'EqQBCg==', 'I need to find the GCD', ' of 1071 and 462'), text(1, '21.')),
    {
      thought: 'I need to find the GCD of 1071 and 462',
      text: '21.',
      replay: [{ raw: thought('I need to find the GCD of 1071 and 462', 'EqQBCg==') }, { chars: 3 }],
    },
    whole(
      [thought('I need to find the GCD of 1071 and 462', 'EqQBCg=='), { type: 'text', text: '21.' }],
      'end_turn',
      used,
    ),
  ),
  'a search by the provider, with a citation': claude(
    [],
    said(
      'end_turn',
      block(
        0,
        { type: 'server_tool_use', id: 'srvtoolu_014h', name: 'web_search', input: {} },
        args(''),
        args('{"query":'),
        args(' "weather"}'),
      ),
      block(1, {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_014h',
        content: [{ type: 'web_search_result', url: 'https://x', encrypted_content: 'Ev0D' }],
      }),
      block(
        2,
        { type: 'text', text: '', citations: [] },
        {
          type: 'citations_delta',
          citation: { type: 'web_search_result_location', encrypted_index: 'Eo8B' },
        },
        { type: 'text_delta', text: 'Sunny.' },
      ),
    ),
    {
      text: 'Sunny.',
      calls: [],
      replay: [
        {
          raw: {
            type: 'server_tool_use',
            id: 'srvtoolu_014h',
            name: 'web_search',
            input: { query: 'weather' },
          },
        },
        {
          raw: {
            type: 'web_search_tool_result',
            tool_use_id: 'srvtoolu_014h',
            content: [{ type: 'web_search_result', url: 'https://x', encrypted_content: 'Ev0D' }],
          },
        },
        { chars: 6, raw: { citations: [{ type: 'web_search_result_location', encrypted_index: 'Eo8B' }] } },
      ],
    },
  ),
  // docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-thinking-encryption.html
  'a redacted thought': claude(
    [],
    said(
      'end_turn',
      thinking(0, 'sig', 'Let me'),
      block(1, { type: 'redacted_thinking', data: 'EmwKAhgBEgy3' }),
      text(2, 'So.'),
    ),
    {
      thought: 'Let me',
      text: 'So.',
      replay: [
        { raw: thought('Let me', 'sig') },
        { raw: { type: 'redacted_thinking', data: 'EmwKAhgBEgy3' } },
        { chars: 3 },
      ],
    },
    whole(
      [
        thought('Let me', 'sig'),
        { type: 'redacted_thinking', data: 'EmwKAhgBEgy3' },
        { type: 'text', text: 'So.' },
      ],
      'end_turn',
      used,
    ),
  ),
  // platform.claude.com/docs/build-with-claude/thinking: omitted by default since Opus 4.7
  'a thought whose words are left out': claude(
    [],
    said('tool_use', thinking(0, 'EosnCkYICx'), tool(1, 'toolu_1', 'read', '{}')),
    {
      thought: '',
      calls: [call('toolu_1', 'read', {})],
      replay: [{ raw: thought('', 'EosnCkYICx') }, { call: 0 }],
    },
  ),
  // platform.claude.com/docs/build-with-claude/thinking-tool-workflows
  'thoughts between texts and calls': claude(
    [],
    said(
      'tool_use',
      thinking(0, 's1', 'First.'),
      text(1, 'I look.'),
      thinking(2, 's2', 'Second.'),
      tool(3, 'toolu_1', 'read', '{"a":1}'),
    ),
    {
      thought: 'First.\n\nSecond.',
      text: 'I look.',
      replay: [
        { raw: thought('First.', 's1') },
        { chars: 7 },
        { raw: thought('Second.', 's2') },
        { call: 0 },
      ],
    },
    whole(
      [
        thought('First.', 's1'),
        { type: 'text', text: 'I look.' },
        thought('Second.', 's2'),
        { type: 'tool_use', id: 'toolu_1', name: 'read', input: { a: 1 } },
      ],
      'tool_use',
      used,
    ),
  ),
  // platform.claude.com/docs/agents-and-tools/tool-use
  'calls side by side': claude(
    [],
    said(
      'tool_use',
      tool(0, 'toolu_1', 'read', '{"path":"a"}'),
      tool(1, 'toolu_2', 'read', '{"path":', '"b"}'),
    ),
    { calls: [call('toolu_1', 'read', { path: 'a' }), call('toolu_2', 'read', { path: 'b' })] },
  ),
  'a call without arguments': claude([], said('tool_use', tool(0, 'toolu_1', 'now', '')), {
    calls: [call('toolu_1', 'now', {})],
  }),
  // platform.claude.com/docs/build-with-claude/handling-stop-reasons
  'cut in a call': claude(
    [9],
    said('max_tokens', text(0, 'I write.'), tool(1, 'toolu_1', 'write', '{"path":"a","text":"hal')),
    {
      finish: 'length',
      calls: [{ id: 'toolu_1', name: 'write', args: '{"path":"a","text":"hal', invalid: 'truncated' }],
    },
  ),
  'cut in a thought, which has no signature then': claude(
    [],
    said('max_tokens', thinking(0, 's1', 'hm'), text(1, 'Yes'), thinking(2, undefined, 'So I')),
    {
      finish: 'length',
      thought: 'hm\n\nSo I',
      text: 'Yes',
      replay: [{ raw: thought('hm', 's1') }, { chars: 3 }],
    },
  ),
  'a stop sequence': claude(
    [],
    stream(start(), text(0, 'Yes'), end('stop_sequence', { output_tokens: 2 }, { stop_sequence: 'END' })),
    { finish: 'stop', text: 'Yes' },
  ),
  'a paused turn': claude(
    [],
    said(
      'pause_turn',
      text(0, 'I search.'),
      begin(1, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
    ),
    { finish: 'unknown', text: 'I search.', calls: [] },
  ),
  'a refusal, with its category': claude(
    [],
    stream(
      start(),
      text(0, 'Sure, first'),
      end(
        'refusal',
        { output_tokens: 4 },
        { stop_details: { type: 'refusal', category: 'cyber', explanation: 'no' } },
      ),
    ),
    { finish: 'content_filter', text: 'Sure, first' },
  ),
  'nothing, after results of tools': claude(
    [2],
    stream(start(), end('end_turn', { output_tokens: 3 })),
    { finish: 'stop', text: '', calls: [] },
    whole([], 'end_turn', { input_tokens: 25, output_tokens: 3 }),
  ),
  // turnstonelabs/turnstone#1162, earendil-works/pi#1868
  'the window is full in the middle': claude(
    [],
    said('model_context_window_exceeded', text(0, 'The first')),
    { finish: 'length', text: 'The first' },
  ),
  'the window is full at once': claude(
    [],
    stream(start(), end('model_context_window_exceeded', { output_tokens: 0 })),
    { class: 'context_overflow', retryable: false },
  ),
  // platform.claude.com/docs/build-with-claude/prompt-caching
  'reads and writes of the cache': claude(
    [14],
    stream(
      start({
        input_tokens: 21,
        cache_creation_input_tokens: 188,
        cache_read_input_tokens: 2_000,
        cache_creation: { ephemeral_5m_input_tokens: 88, ephemeral_1h_input_tokens: 100 },
        output_tokens: 1,
      }),
      text(0, 'Hi'),
      end('end_turn', { output_tokens: 393 }),
    ),
    { usage: { input: 2_209, output: 393, cached: 2_000, cacheWritten: 188, cacheWrittenHour: 100 } },
  ),
  'counts of thought': claude(
    [],
    stream(
      start({
        input_tokens: 25,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
        output_tokens: 1,
      }),
      text(0, 'Hi'),
      end('end_turn', { output_tokens: 50, output_tokens_details: { thinking_tokens: 40 } }),
    ),
    { usage: { input: 25, output: 50, cached: 0, cacheWritten: 0, reasoning: 40 } },
  ),
  // platform.claude.com/docs/api/errors
  'overloaded, in the middle': claude(
    [16],
    stream(start(), text(0, 'Hel'), failed('overloaded_error', 'Overloaded')),
    { class: 'overloaded', retryable: true },
  ),
  'an error of theirs, before all': claude([16], stream(failed('api_error', 'Internal server error')), {
    class: 'server_error',
    retryable: true,
  }),
  'a rate limit, in the middle': claude(
    [16],
    stream(
      start(),
      failed(
        'rate_limit_error',
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
      ),
    ),
    { class: 'rate_limit', retryable: true },
  ),
  'a wrong key, under a 200': claude(
    [],
    JSON.stringify({ ...failed('authentication_error', 'invalid x-api-key'), request_id: 'req_011' }),
    { class: 'auth', retryable: false },
  ),
  'too long a prompt, under a 200': claude(
    [20],
    stream(failed('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum')),
    { class: 'context_overflow', retryable: false },
  ),
  // platform.claude.com/docs/api/versioning: new events and blocks may come at any time
  'events, deltas and blocks of tomorrow': claude(
    [],
    said(
      'end_turn',
      { type: 'message_hint', hint: 1 },
      block(
        0,
        { type: 'plan', steps: '' },
        { type: 'plan_delta', steps: 'a' },
        { type: 'plan_delta', steps: 'b' },
      ),
      block(
        1,
        { type: 'text', text: '' },
        { type: 'mood_delta', mood: 'fine' },
        { type: 'text_delta', text: 'Hi' },
      ),
    ),
    { text: 'Hi', replay: [{ raw: { type: 'plan', steps: 'ab' } }, { chars: 2 }] },
  ),
}

const REPORTED: Record<string, DocumentedAnswer> = {
  'openclaw/openclaw#37571: no names of events': gateway(
    [15],
    nameless(start(), text(0, 'Hi'), end('end_turn')),
    { text: 'Hi', finish: 'stop' },
  ),
  'no types in the data, only names of events': gateway(
    [],
    written(
      [start(), text(0, 'Hi'), end('end_turn')],
      ({ type, ...rest }) => `event: ${String(type)}\ndata: ${JSON.stringify(rest)}\n\n`,
    ),
    { text: 'Hi', finish: 'stop' },
  ),
  // Captured from LiteLLM 1.106.6.
  'LiteLLM: counts at the end, a thought without a signature': gateway(
    [14],
    stream(
      start({
        input_tokens: 0,
        output_tokens: 0,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
      }),
      thinking(0, undefined, 'hm'),
      text(1, 'Hello there'),
      end('end_turn', { input_tokens: 11, output_tokens: 5 }),
    ),
    {
      thought: 'hm',
      text: 'Hello there',
      usage: { input: 11, output: 5 },
      replay: [{ raw: thought('hm', '') }, { chars: 11 }],
    },
  ),
  'zai-org/GLM-5#139: no counts at the start, the cache at the end': gateway(
    [14],
    stream(
      start({ input_tokens: 0, output_tokens: 0 }),
      text(0, 'OK'),
      end('end_turn', { input_tokens: 14, output_tokens: 2, cache_read_input_tokens: 64 }),
    ),
    { usage: { input: 78, output: 2, cached: 64 } },
  ),
  'sgl-project/sglang#20830: counts at the start, zero at the end': gateway(
    [14],
    stream(
      start({ input_tokens: 123, output_tokens: 0 }),
      text(0, 'OK'),
      end('end_turn', { input_tokens: 0, output_tokens: 45 }),
    ),
    { usage: { input: 123, output: 45 } },
  ),
  'envoyproxy/ai-gateway#2239: the same counts twice': gateway(
    [14],
    stream(
      start({ input_tokens: 9, cache_read_input_tokens: 5, output_tokens: 1 }),
      text(0, 'OK'),
      end('end_turn', { input_tokens: 9, cache_read_input_tokens: 5, output_tokens: 16 }),
    ),
    { usage: { input: 14, output: 16, cached: 5 } },
  ),
  'BerriAI/litellm#33859, MoonshotAI/Kimi-K2.5#33: it starts twice': gateway(
    [],
    said('end_turn', start(), text(0, 'OK'), start()),
    { text: 'OK', finish: 'stop' },
  ),
  'NousResearch/hermes-agent#72833: blocks before the start': gateway(
    [],
    stream(text(0, 'OK'), start(), end('end_turn')),
    { text: 'OK', usage: { input: 25, output: 15 } },
  ),
  'tombii/better-ccflare#307: an end without message_stop': gateway(
    [17],
    stream(start(), text(0, 'OK'), end('end_turn').slice(0, 1), ping, ping),
    { text: 'OK', finish: 'stop' },
  ),
  'charmbracelet/fantasy#245: no end at all': gateway([17], stream(start(), text(0, 'half')), {
    class: 'stream_interrupted',
    retryable: true,
  }),
  'katanemo/plano#898: message_stop alone': gateway(
    [2, 17],
    stream(start(), text(0, 'OK'), { type: 'message_stop' }, { type: 'message_stop' }),
    { text: 'OK', finish: 'unknown' },
  ),
  'Wei-Shaw/sub2api#4286: a late thought, and more of a block that never began': gateway(
    [],
    said(
      'tool_use',
      text(0, 'So'),
      thinking(1, undefined, 'late'),
      tool(2, 'a', 'read', '{"x":1}'),
      delta(3, args('{"x":1}')),
    ),
    { text: 'So', thought: 'late', calls: [call('a', 'read', { x: 1 })] },
  ),
  'invergent-ai/surogate#113: blocks that do not end': gateway(
    [],
    said(
      'tool_use',
      begin(0, { type: 'thinking', thinking: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'hm' }),
      begin(1, { type: 'text', text: '' }),
      delta(1, { type: 'text_delta', text: 'OK' }),
      begin(2, { type: 'tool_use', id: 'a', name: 'read', input: {} }),
      delta(2, args('{"x":1}')),
    ),
    { thought: 'hm', text: 'OK', calls: [call('a', 'read', { x: 1 })] },
  ),
  'PostHog/posthog#72287: deltas of another type than their block': gateway(
    [],
    said(
      'end_turn',
      begin(0, { type: 'text', text: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'hm' }),
      delta(0, { type: 'text_delta', text: 'OK' }),
      delta(0, args('{"x":1}')),
      stop(0),
    ),
    { thought: 'hm', text: 'OK', calls: [call('call_1', '', { x: 1 })] },
  ),
  'headroomlabs-ai/headroom#3543: all in the beginnings of blocks': gateway(
    [],
    said(
      'tool_use',
      block(0, thought('hm', 'sig'), { type: 'signature_delta', signature: 'sig' }),
      block(1, { type: 'text', text: 'OK' }),
      block(2, { type: 'tool_use', id: 'a', name: 'read', input: { x: 1 } }),
    ),
    {
      thought: 'hm',
      text: 'OK',
      calls: [call('a', 'read', { x: 1 })],
      replay: [{ raw: thought('hm', 'sig') }, { chars: 2 }, { call: 0 }],
    },
  ),
  'SaladDay/cc-switch-cli#320: a start without its members': gateway(
    [],
    stream(
      { type: 'message_start', message: { id: 'm', role: 'assistant' } },
      text(0, 'OK'),
      end('end_turn'),
    ),
    { text: 'OK', finish: 'stop' },
  ),
  'anomalyco/opencode#3596: a thought before all': gateway(
    [],
    stream(
      delta(0, { type: 'thinking_delta', thinking: 'hm' }),
      start(),
      delta(0, { type: 'thinking_delta', thinking: '!' }),
      text(1, 'OK'),
      end('end_turn'),
    ),
    { thought: 'hm!', text: 'OK' },
  ),
  'a call that begins twice': gateway(
    [5],
    said('tool_use', begin(0, { type: 'tool_use', id: 'a', name: 'read' }), tool(0, 'a', 'read', '{"x":1}')),
    { calls: [call('a', 'read', { x: 1 })] },
  ),
  '[DONE] at the end': gateway([15], `${stream(start(), text(0, 'OK'))}data: [DONE]\n\n`, {
    text: 'OK',
    finish: 'unknown',
  }),
  'every block at index 0': gateway(
    [3],
    said('tool_use', text(0, 'I '), tool(0, 'a', 'read', '{"x":1}'), tool(0, 'b', 'read', '{"x":2}')),
    { text: 'I ', calls: [call('a', 'read', { x: 1 }), call('b', 'read', { x: 2 })] },
  ),
  'no index, and no types of deltas': gateway(
    [],
    nameless(
      start(),
      { type: 'content_block_start', content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', delta: { text: 'OK' } },
      { type: 'content_block_start', content_block: { type: 'tool_use', id: 'a', name: 'read', input: {} } },
      { type: 'content_block_delta', delta: { partial_json: '{"x":' } },
      { type: 'content_block_delta', delta: { partial_json: '1}' } },
      end('tool_use'),
    ),
    { text: 'OK', calls: [call('a', 'read', { x: 1 })] },
  ),
  'arguments that are flushed twice': gateway(
    [10],
    said('tool_use', tool(0, 'a', 'read', '{"x":', '1}', '{"x":1}')),
    { calls: [call('a', 'read', { x: 1 })] },
  ),
  'arguments as an object': gateway([6], said('tool_use', tool(0, 'a', 'read', { x: 1 })), {
    calls: [call('a', 'read', { x: 1 })],
  }),
  'a call that is sent twice': gateway(
    [5],
    said('tool_use', tool(0, 'a', 'read', '{"x":1}'), tool(1, 'a', 'read', '{"x":1}')),
    { calls: [call('a', 'read', { x: 1 })] },
  ),
  'a call that was announced and did not come': gateway([8], said('tool_use'), {
    class: 'malformed_tool_call',
    retryable: true,
  }),
  'a whole message at the end, once more': gateway(
    [],
    nameless(
      start(),
      text(0, 'OK'),
      end('end_turn').slice(0, 1),
      whole([{ type: 'text', text: 'OK' }], 'end_turn', used) as Event,
    ),
    { text: 'OK', usage: { input: 25, output: 15 } },
  ),
  'digits of large numbers': gateway(
    [],
    said('tool_use', tool(0, 'a', 'read', '{"id":12345678901', '23456789}')),
    { calls: [call('a', 'read', { id: { 'sandlot/number': '1234567890123456789' } })] },
  ),
  'lines that end in CR LF, with comments': gateway(
    [15],
    `: hello\r\n\r\n${said('end_turn', text(0, 'Grüße 👋')).replaceAll('\n', '\r\n')}`,
    { text: 'Grüße 👋' },
  ),
  'Chat Completions on this address': gateway(
    [],
    nameless({
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    }),
    { class: 'stream_interrupted', retryable: true },
  ),
}

export const ANTHROPIC: DocumentedAnswers = { ...DOCUMENTED, ...REPORTED }
