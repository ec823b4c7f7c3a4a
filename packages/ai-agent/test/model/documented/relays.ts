/** Members that relays pass on from the provider: names, counts, and state for the next request. */
import { call, chunk, completion, events, piece, tools, wireCall } from './answer.ts'
import type { DocumentedAnswers } from './answer.ts'

const relay = { baseUrl: 'http://relay:3000/v1', model: 'any' }
const copilot = { baseUrl: 'https://api.githubcopilot.com', model: 'claude-opus' }
const xai = { baseUrl: 'https://api.x.ai/v1', model: 'grok-4' }
const EMPTY_ERROR = { message: '', type: '', param: '', code: null }

export const RELAYS: DocumentedAnswers = {
  'one id under an index that grows with every delta, the name in each': {
    ...relay,
    rows: [3, 5, 7],
    stream: events(
      chunk(tools(piece(0, '{"x"', { id: 'a' }, 'one'))),
      chunk(tools(piece(1, ':1', { id: 'a' }, 'one'))),
      chunk(tools(piece(2, '}', { id: 'a' }, 'one')), 'tool_calls'),
    ),
    gives: { calls: [call('a', 'one', { x: 1 })] },
  },
  'an id that is a number': {
    ...relay,
    rows: [5],
    stream: events(
      chunk(tools({ index: 0, id: 17, function: { name: 'one', arguments: '{}' } }), 'tool_calls'),
    ),
    gives: { calls: [call('17', 'one', {})] },
  },
  'Gemini behind a gateway: its signature as Gemini writes it (earendil-works/pi#9443)': {
    ...relay,
    rows: [12],
    stream: events(
      chunk(tools({ ...wireCall('a', 'one', '{}'), index: 0, thoughtSignature: 'sig' }), 'tool_calls'),
    ),
    whole: completion(
      { content: null, tool_calls: [{ ...wireCall('a', 'one', '{}'), thoughtSignature: 'sig' }] },
      'tool_calls',
    ),
    gives: { calls: [{ ...call('a', 'one', {}), replay: { thoughtSignature: 'sig' } }] },
  },
  'Gemini: its own name for how it ended (jakobdylanc/llmcord#84)': {
    ...relay,
    rows: [8, 17],
    stream: events({
      choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null, finishReason: 'MAX_TOKENS' }],
    }).replace('data: [DONE]\n\n', ''),
    gives: { text: 'a', finish: 'length' },
  },
  "Claude's own name for how it ended (YumchaLabs/siumai#14)": {
    ...relay,
    rows: [8, 17],
    stream: events({
      choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null, stop_reason: 'end_turn' }],
    }).replace('data: [DONE]\n\n', ''),
    gives: { text: 'a', finish: 'stop' },
  },
  'OpenRouter: the native word says what the error was': {
    ...relay,
    rows: [8, 16],
    stream: events(chunk({ content: 'a' }), {
      choices: [
        {
          index: 0,
          delta: {},
          finish_reason: 'error',
          native_finish_reason: 'MALFORMED_FUNCTION_CALL',
        },
      ],
    }),
    gives: { class: 'malformed_tool_call', retryable: true },
  },
  'one-api: an error object whose members are all empty is none': {
    ...relay,
    rows: [16],
    stream: events(chunk({ content: 'ab' }, 'stop', { error: EMPTY_ERROR })),
    whole: completion({ content: 'ab' }, 'stop', { error: EMPTY_ERROR }),
    gives: { text: 'ab', finish: 'stop' },
  },
  'thoughts in an object, and in parts': {
    ...relay,
    rows: [11],
    stream: events(
      chunk({ reasoning: { content: 'Hm' } }),
      chunk({ reasoning: [{ type: 'text', text: ', yes' }] }),
      chunk({ content: 'ab' }, 'stop'),
    ),
    gives: { thought: 'Hm, yes', text: 'ab' },
  },
  'Copilot: what stands for the thoughts goes back with them (earendil-works/pi#1502)': {
    ...copilot,
    rows: [11],
    stream: events(
      chunk({ reasoning_text: 'Hm' }),
      chunk({ content: 'So: ', reasoning_opaque: 'blob' }),
      chunk(tools(piece(0, '{}', { id: 'a' }, 'one')), 'tool_calls'),
    ),
    whole: completion(
      {
        content: 'So: ',
        reasoning_text: 'Hm',
        reasoning_opaque: 'blob',
        tool_calls: [wireCall('a', 'one', '{}')],
      },
      'tool_calls',
    ),
    gives: {
      thought: 'Hm',
      text: 'So: ',
      replay: [{ raw: { reasoning_text: 'Hm', reasoning_opaque: 'blob' } }],
    },
  },
  'xAI: reasoning is counted beside the output (UKGovernmentBEIS/inspect_ai#5528)': {
    ...xai,
    rows: [14],
    stream: events(chunk({ content: 'ab' }, 'stop'), {
      choices: [],
      usage: {
        prompt_tokens: 32,
        completion_tokens: 9,
        total_tokens: 135,
        prompt_tokens_details: { cached_tokens: 6 },
        completion_tokens_details: { reasoning_tokens: 94 },
      },
    }),
    gives: { text: 'ab', usage: { input: 32, output: 103, cached: 6, reasoning: 94 } },
  },
  'where the total says that reasoning is in the output, it stays there': {
    ...xai,
    rows: [14],
    stream: events(chunk({ content: 'ab' }, 'stop'), {
      choices: [],
      usage: {
        prompt_tokens: 32,
        completion_tokens: 103,
        total_tokens: 135,
        completion_tokens_details: { reasoning_tokens: 94 },
      },
    }),
    gives: { text: 'ab', usage: { input: 32, output: 103, reasoning: 94 } },
  },
}
