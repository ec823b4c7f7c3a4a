/** Servers for open models. */
import { call, chunk, completion, events, piece, tools, wireCall } from './answer.ts'
import type { DocumentedAnswers } from './answer.ts'

const vllm = { baseUrl: 'http://vllm:8000/v1', model: 'Qwen/Qwen3-8B' }
const ollama = { baseUrl: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' }
const llamaCpp = { baseUrl: 'http://127.0.0.1:8080/v1', model: 'model.gguf' }
const lmStudio = { baseUrl: 'http://127.0.0.1:1234/v1', model: 'deepseek-r1-distill-qwen-7b' }

export const LOCAL: DocumentedAnswers = {
  'vLLM: arguments flushed once more at the end, usage on every chunk': {
    ...vllm,
    rows: [10, 14],
    stream: events(
      chunk(tools(piece(0, '', { id: 'chatcmpl-tool-1', type: 'function' }, 'write')), null, {
        usage: { prompt_tokens: 9, completion_tokens: 1 },
      }),
      chunk(tools(piece(0, '{"path": "a", ')), null, { usage: { prompt_tokens: 9, completion_tokens: 5 } }),
      chunk(tools(piece(0, '"text": "x"}')), null, { usage: { prompt_tokens: 9, completion_tokens: 9 } }),
      chunk(tools(piece(0, '{"path": "a", "text": "x"}')), 'tool_calls', {
        usage: { prompt_tokens: 9, completion_tokens: 10 },
      }),
    ),
    gives: {
      calls: [call('chatcmpl-tool-1', 'write', { path: 'a', text: 'x' })],
      usage: { input: 9, output: 10 },
    },
  },
  'vLLM: the last delta is the whole, what came before was only a part': {
    ...vllm,
    rows: [10],
    stream: events(
      chunk(tools(piece(0, '{"path": ', { id: 't1' }, 'write'))),
      chunk(tools(piece(0, '"a"'))),
      chunk(tools(piece(0, '{"path": "a"}')), 'tool_calls'),
    ),
    gives: { calls: [call('t1', 'write', { path: 'a' })] },
  },
  'vLLM: thoughts in tags, cut anywhere': {
    ...vllm,
    rows: [13],
    stream: events(
      ...['\n<th', 'ink>\nFirst', ' <b', '>x</', 'b></thi', 'nk>\n', '\nThen <think>', ' literally.'].map(
        (content) => chunk({ content }),
      ),
      chunk({}, 'stop'),
    ),
    whole: completion({ content: '\n<think>\nFirst <b>x</b></think>\n\nThen <think> literally.' }, 'stop'),
    gives: { thought: 'First <b>x</b>', text: 'Then <think> literally.' },
  },
  'vLLM: with reasoning of its own, a tag is text': {
    ...vllm,
    rows: [13],
    stream: events(
      chunk({ reasoning: 'hm' }),
      chunk({ content: '<think>' }),
      chunk({ content: ' is a tag' }, 'stop'),
    ),
    whole: completion({ reasoning: 'hm', content: '<think> is a tag' }, 'stop'),
    gives: { thought: 'hm', text: '<think> is a tag' },
  },
  'vLLM: an error object under 200, and one that was aborted': {
    ...vllm,
    rows: [16, 20],
    stream: events(chunk({ content: 'a' }), {
      object: 'error',
      message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
      type: 'BadRequestError',
      param: null,
      code: 400,
    }),
    gives: { class: 'context_overflow', retryable: false },
  },
  'vLLM: aborted': {
    ...vllm,
    rows: [8, 17],
    stream: events(chunk({ content: 'half' }), chunk({}, 'abort')),
    gives: { class: 'stream_interrupted', retryable: true },
  },
  'Ollama: all calls index 0, finish_reason stop': {
    ...ollama,
    rows: [3, 8],
    stream: events(
      chunk({
        role: 'assistant',
        content: '',
        ...tools({ index: 0, ...wireCall('call_o1', 'read', '{"p":"a"}') }),
      }),
      chunk({
        role: 'assistant',
        content: '',
        ...tools({ index: 0, ...wireCall('call_o2', 'read', '{"p":"a"}') }),
      }),
      chunk({ role: 'assistant', content: '' }, 'stop'),
    ),
    whole: completion(
      {
        content: '',
        tool_calls: [
          { index: 0, ...wireCall('call_o1', 'read', '{"p":"a"}') },
          { index: 0, ...wireCall('call_o2', 'read', '{"p":"a"}') },
        ],
      },
      'stop',
    ),
    gives: {
      calls: [call('call_o1', 'read', { p: 'a' }), call('call_o2', 'read', { p: 'a' })],
      finish: 'stop',
    },
  },
  'Ollama: an old one, arguments as objects, no index, no ids, two in one delta': {
    ...ollama,
    rows: [3, 6],
    stream: events(
      chunk({
        content: '',
        tool_calls: [
          { function: { name: 'now', arguments: {} } },
          { function: { name: 'now', arguments: {} } },
        ],
      }),
      chunk({ content: '' }, 'stop'),
    ),
    whole: completion(
      {
        content: '',
        tool_calls: [
          { function: { name: 'now', arguments: {} } },
          { function: { name: 'now', arguments: {} } },
        ],
      },
      'stop',
    ),
    gives: { calls: [call('call_1', 'now', {}), call('call_2', 'now', {})] },
  },
  'Ollama: an error as text': {
    ...ollama,
    rows: [16],
    stream: events(chunk({ content: 'a' }), {
      error: 'an error was encountered while running the model: unexpected EOF',
    }),
    gives: { class: 'stream_interrupted', retryable: true },
  },
  'llama.cpp: an error field, not data': {
    ...llamaCpp,
    rows: [15, 16],
    stream:
      'data: {"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":null}]}\n\nerror: {"code":500,"message":"the request exceeds the available context size","type":"server_error"}\n\n',
    gives: { class: 'context_overflow', retryable: false },
  },
  'llama.cpp: name in fragments, timings for usage': {
    ...llamaCpp,
    rows: [7, 14],
    stream: events(
      chunk({ role: 'assistant', content: null }),
      chunk(tools(piece(0, '', { id: 'l1', type: 'function' }, 'read_'))),
      chunk(tools(piece(0, '', {}, 'file'))),
      chunk(tools(piece(0, '{"path":'))),
      chunk(tools(piece(0, '"a"}'))),
      chunk({}, 'tool_calls', { timings: { prompt_n: 4, cache_n: 6, predicted_n: 5, predicted_ms: 12 } }),
    ),
    gives: { calls: [call('l1', 'read_file', { path: 'a' })], usage: { input: 10, output: 5, cached: 6 } },
  },
  'llama.cpp: cut by its length': {
    ...llamaCpp,
    rows: [9],
    stream: events(
      chunk(tools(piece(0, '{"path":"a","text":"half', { id: 'l1' }, 'write'))),
      chunk({}, 'length'),
    ),
    whole: completion(
      { content: null, tool_calls: [wireCall('l1', 'write', '{"path":"a","text":"half')] },
      'length',
    ),
    gives: {
      calls: [{ id: 'l1', name: 'write', args: '{"path":"a","text":"half', invalid: 'truncated' }],
      finish: 'length',
    },
  },
  'LM Studio: thoughts in tags, an answer behind them': {
    ...lmStudio,
    rows: [13, 15],
    stream: events(
      chunk({ content: '<think>' }),
      chunk({ content: 'so' }),
      chunk({ content: '</think>\n\nHi' }, 'stop'),
    )
      .replaceAll('data: ', 'data:')
      .replaceAll('\n\n', '\r\n\r\n'),
    whole: completion({ content: '<think>so</think>\n\nHi' }, 'stop'),
    gives: { thought: 'so', text: 'Hi' },
  },
  'LM Studio: an event called error': {
    ...lmStudio,
    rows: [16, 20],
    stream: `${events(chunk({ content: 'a' })).replace('data: [DONE]\n\n', '')}event: error\ndata: {"error":{"message":"The number of tokens to keep from the initial prompt is greater than the context length."}}\n\n`,
    gives: { class: 'context_overflow', retryable: false },
  },
  'LM Studio: neither finish nor [DONE]': {
    ...lmStudio,
    rows: [17],
    stream: events(chunk({ content: 'Hello' })).replace('data: [DONE]\n\n', ''),
    gives: { class: 'stream_interrupted', retryable: true },
  },
  'a raw NUL-free answer with a lone surrogate escape in its arguments': {
    ...vllm,
    rows: [22],
    stream: events(
      chunk(tools(piece(0, '{"text":"\\ud83d"}', { id: 's' }, 'echo'))),
      chunk({}, 'tool_calls'),
    ),
    gives: { calls: [call('s', 'echo', { text: '\ud83d' })] },
  },
}
