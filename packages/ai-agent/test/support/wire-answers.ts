/**
 * The provider's side of each wire, for suites that hold for all of them: a neutral answer in the form in which this
 * wire sends it, and a request of this wire in a neutral form.
 */
import type { WireName } from '@sandlot/shared/account/models-api'
import { deltaChunk, sse } from './fake-provider.ts'

export interface NeutralAnswer {
  thought?: string
  text?: string
  /** `args`: as the model writes them. */
  calls?: readonly { id: string; name: string; args: string }[]
  /** Default: as the calls say. */
  finish?: 'length' | 'content_filter'
  /** Tokens. */
  usage?: { input: number; output: number; cached?: number; reasoning?: number }
}

/** A message of a request. `images`: how many. */
export interface NeutralMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  text: string
  /** Reasoning that was sent back before the text and the calls, as this wire has it. */
  reasoning?: readonly unknown[]
  calls?: readonly { id: string; name: string; args: string }[]
  /** Set on a result. */
  callId?: string
  images?: number
}

export interface WireAnswers {
  /** The path of its requests, below `/v1`. */
  path: string
  /** The events of a stream, each with its blank line. `size`: characters of a delta. */
  events(answer: NeutralAnswer, size?: number): string[]
  /** The body without a stream. */
  whole(answer: NeutralAnswer): Record<string, unknown>
  /** An error in the middle of a stream, under its code. */
  failure(code: string, message: string): string
  /** The messages of a request's body, in order; items of one answer are one message. */
  messages(body: Record<string, unknown>): NeutralMessage[]
}

/** Pieces of `size` characters, never half a surrogate pair. */
function cut(text: string, size: number): string[] {
  const chars = Array.from(text)
  return Array.from({ length: Math.ceil(chars.length / size) }, (_, at) =>
    chars.slice(at * size, (at + 1) * size).join(''),
  )
}

const objectsIn = (list: unknown): Record<string, unknown>[] =>
  Array.isArray(list) ? list.filter((one) => typeof one === 'object' && one !== null) : []
const word = (value: unknown): string => (typeof value === 'string' ? value : '')
/** The texts of a content, and how many images it has. */
function contentOf(content: unknown): { text: string; images?: number } {
  if (typeof content === 'string') return { text: content }
  const parts = objectsIn(content)
  const images = parts.filter(({ type }) => /image/.test(word(type))).length
  return { text: parts.map(({ text }) => word(text)).join(''), ...(images === 0 ? {} : { images }) }
}

// ── Chat Completions ────────────────────────────────────────────────────────────────────────────────────

function chatUsage({ usage }: NeutralAnswer): object {
  const { input = 10, output = 5, cached = 0, reasoning = 0 } = usage ?? {}
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

const chatFinish = ({ finish, calls = [] }: NeutralAnswer): string =>
  finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')

const chatCall = ({ id, name, args }: { id: string; name: string; args: string }) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

const chat: WireAnswers = {
  path: '/chat/completions',
  events(answer, size = 12) {
    const { thought = '', text = '', calls = [] } = answer
    const deltas: object[] = [
      ...cut(thought, size).map((piece) => ({ reasoning_content: piece })),
      ...cut(text, size).map((piece) => ({ content: piece })),
      ...calls.flatMap((call, index) => [
        { tool_calls: [{ index, ...chatCall({ ...call, args: '' }) }] },
        ...cut(call.args, size).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ]),
    ]
    return [
      ...deltas.map((delta) => sse(deltaChunk(delta))),
      sse(deltaChunk({}, chatFinish(answer))),
      sse({ ...deltaChunk({}), choices: [], usage: chatUsage(answer) }),
      sse('[DONE]'),
    ]
  },
  whole(answer) {
    const { thought, text = '', calls = [] } = answer
    const message = {
      role: 'assistant',
      content: text,
      reasoning_content: thought,
      ...(calls.length === 0 ? {} : { tool_calls: calls.map(chatCall) }),
    }
    return {
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: chatFinish(answer) }],
      usage: chatUsage(answer),
    }
  },
  failure: (code, message) => sse({ error: { code, message } }),
  messages: (body) =>
    objectsIn(body['messages']).map((message): NeutralMessage => {
      const calls = objectsIn(message['tool_calls']).map(({ id, function: fn }) => {
        const { name, arguments: args } = fn as { name: string; arguments: string }
        return { id: word(id), name, args }
      })
      const reasoning = message['reasoning_content']
      return {
        role: message['role'] as NeutralMessage['role'],
        ...contentOf(message['content']),
        ...(reasoning === undefined ? {} : { reasoning: [reasoning] }),
        ...(calls.length === 0 ? {} : { calls }),
        ...(message['tool_call_id'] === undefined ? {} : { callId: word(message['tool_call_id']) }),
      }
    }),
}

// ── Responses ───────────────────────────────────────────────────────────────────────────────────────────

function responsesItems({ thought = '', text = '', calls = [] }: NeutralAnswer): Record<string, unknown>[] {
  const summary = [{ type: 'summary_text', text: thought }]
  return [
    ...(thought === ''
      ? []
      : [{ id: 'rs_1', type: 'reasoning', summary, encrypted_content: `sealed:${thought}` }]),
    ...(text === ''
      ? []
      : [
          {
            id: 'msg_1',
            type: 'message',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ]),
    ...calls.map(({ id, name, args }) => ({
      id: `fc_${id}`,
      type: 'function_call',
      status: 'completed',
      call_id: id,
      name,
      arguments: args,
    })),
  ]
}

function responsesWhole(answer: NeutralAnswer): Record<string, unknown> {
  const { finish, usage } = answer
  const { input = 10, output = 5, cached = 0, reasoning = 0 } = usage ?? {}
  return {
    id: 'resp_1',
    object: 'response',
    status: finish === undefined ? 'completed' : 'incomplete',
    error: null,
    incomplete_details:
      finish === undefined ? null : { reason: finish === 'length' ? 'max_output_tokens' : finish },
    output: responsesItems(answer),
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + output,
    },
  }
}

/** The deltas of an item, as `[event, member of it]`. */
const DELTAS: Record<string, (item: Record<string, unknown>) => [string, string]> = {
  reasoning: ({ summary }) => ['reasoning_summary_text.delta', contentOf(summary).text],
  message: ({ content }) => ['output_text.delta', contentOf(content).text],
  function_call: ({ arguments: args }) => ['function_call_arguments.delta', word(args)],
}

/** The parts of an item, by its type: a client of OpenAI's own misses them. */
const PARTS: Record<string, { name: string; empty: object } | undefined> = {
  message: { name: 'content_part', empty: { type: 'output_text', annotations: [] } },
  reasoning: { name: 'reasoning_summary_part', empty: { type: 'summary_text' } },
}

const responses: WireAnswers = {
  path: '/responses',
  events(answer, size = 12) {
    const response = responsesWhole(answer)
    const events: string[] = []
    const add = (type: string, members: object): void => {
      const data = { type: `response.${type}`, sequence_number: events.length, ...members }
      events.push(`event: response.${type}\ndata: ${JSON.stringify(data)}\n\n`)
    }
    add('created', { response: { ...response, status: 'in_progress', output: [], usage: null } })
    for (const [output_index, item] of objectsIn(response['output']).entries()) {
      const empty = { summary: [], content: [], arguments: '', status: 'in_progress' }
      const begun = Object.fromEntries(Object.entries({ ...item, ...empty }).filter(([name]) => name in item))
      add('output_item.added', { output_index, item: begun })
      const [type, text] = DELTAS[word(item['type'])]?.(item) ?? ['', '']
      const at = { item_id: item['id'], output_index, summary_index: 0, content_index: 0 }
      const part = PARTS[word(item['type'])]
      if (part !== undefined) add(`${part.name}.added`, { ...at, part: { ...part.empty, text: '' } })
      for (const delta of cut(text, size)) add(type, { ...at, delta })
      if (part !== undefined) add(`${part.name}.done`, { ...at, part: { ...part.empty, text } })
      add('output_item.done', { output_index, item })
    }
    add(word(response['status']), { response })
    return events
  },
  whole: responsesWhole,
  failure: (code, message) =>
    `event: response.failed\ndata: ${JSON.stringify({
      type: 'response.failed',
      response: { object: 'response', status: 'failed', output: [], error: { code, message } },
    })}\n\n`,
  messages(body) {
    const found: NeutralMessage[] = []
    const system = word(body['instructions'])
    if (system !== '') found.push({ role: 'system', text: system })
    let answer: NeutralMessage | undefined
    for (const item of objectsIn(body['input'])) {
      const { type, role } = item
      if (type === 'function_call_output') {
        answer = undefined
        found.push({ role: 'tool', callId: word(item['call_id']), ...contentOf(item['output']) })
        continue
      }
      if (type === 'message' && role !== 'assistant') {
        answer = undefined
        found.push({ role: role as NeutralMessage['role'], ...contentOf(item['content']) })
        continue
      }
      if (answer === undefined) found.push((answer = { role: 'assistant', text: '' }))
      if (type === 'message') answer.text += contentOf(item['content']).text
      else if (type === 'function_call') {
        const call = { id: word(item['call_id']), name: word(item['name']), args: word(item['arguments']) }
        answer.calls = [...(answer.calls ?? []), call]
      } else answer.reasoning = [...(answer.reasoning ?? []), item]
    }
    return found
  },
}

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────

/** `args` that are no JSON cannot stand in a whole message, where the provider has parsed them. */
function messageBlocks({ thought = '', text = '', calls = [] }: NeutralAnswer): Record<string, unknown>[] {
  return [
    ...(thought === '' ? [] : [{ type: 'thinking', thinking: thought, signature: `signed:${thought}` }]),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...calls.map(({ id, name, args }) => ({
      type: 'tool_use',
      id,
      name,
      input: JSON.parse(args) as unknown,
    })),
  ]
}

function messageOf(answer: NeutralAnswer): Record<string, unknown> {
  const { finish, calls = [], usage } = answer
  const { input = 10, output = 5, cached = 0, reasoning = 0 } = usage ?? {}
  const stopped = finish === 'length' ? 'max_tokens' : finish === undefined ? 'end_turn' : 'refusal'
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    stop_reason: calls.length > 0 && finish === undefined ? 'tool_use' : stopped,
    stop_sequence: null,
    usage: {
      input_tokens: input - cached,
      cache_read_input_tokens: cached,
      output_tokens: output,
      output_tokens_details: { thinking_tokens: reasoning },
    },
  }
}

const anthropic: WireAnswers = {
  path: '/messages',
  events(answer, size = 12) {
    const { thought = '', calls = [] } = answer
    const message = messageOf(answer)
    const { stop_reason, usage } = message
    const event = (type: string, members: object = {}): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
    const blocks = messageBlocks({ ...answer, calls: calls.map((call) => ({ ...call, args: '{}' })) })
    const pieces = (block: Record<string, unknown>, index: number): object[] => {
      const { type } = block
      if (type === 'text') return cut(word(block['text']), size).map((text) => ({ type: 'text_delta', text }))
      if (type === 'tool_use')
        return cut(calls[index - blocks.length + calls.length]?.args ?? '', size).map((partial_json) => ({
          type: 'input_json_delta',
          partial_json,
        }))
      const thoughts = cut(thought, size).map((thinking) => ({ type: 'thinking_delta', thinking }))
      return [...thoughts, { type: 'signature_delta', signature: block['signature'] }]
    }
    return [
      event('message_start', { message: { ...message, content: [], stop_reason: null } }),
      ...blocks.flatMap((block, index) => {
        const empty = { text: '', thinking: '', signature: '', input: {} }
        const begun = Object.entries({ ...block, ...empty }).filter(([name]) => name in block)
        return [
          event('content_block_start', { index, content_block: Object.fromEntries(begun) }),
          ...pieces(block, index).map((delta) => event('content_block_delta', { index, delta })),
          event('content_block_stop', { index }),
        ]
      }),
      event('message_delta', { delta: { stop_reason }, usage }),
      event('message_stop'),
    ]
  },
  whole: (answer) => ({ ...messageOf(answer), content: messageBlocks(answer) }),
  failure: (code, message) =>
    `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: code, message } })}\n\n`,
  messages(body) {
    const system = contentOf(body['system']).text
    const said = objectsIn(body['messages']).flatMap(({ role, content }): NeutralMessage[] => {
      const blocks = objectsIn(content)
      if (role === 'assistant') {
        const reasoning = blocks.filter(({ type }) => /thinking/.test(word(type)))
        const calls = blocks.flatMap(({ type, id, name, input }) =>
          type === 'tool_use' ? [{ id: word(id), name: word(name), args: JSON.stringify(input) }] : [],
        )
        return [
          {
            role,
            text: contentOf(blocks).text,
            ...(reasoning.length === 0 ? {} : { reasoning }),
            ...(calls.length === 0 ? {} : { calls }),
          },
        ]
      }
      const results = blocks.filter(({ type }) => type === 'tool_result')
      const rest = blocks.filter(({ type }) => type !== 'tool_result')
      return [
        ...results.map((block): NeutralMessage => {
          const { tool_use_id, content: result } = block
          return { role: 'tool', callId: word(tool_use_id), ...contentOf(result ?? '') }
        }),
        ...(rest.length === 0 ? [] : [{ role: 'user', ...contentOf(rest) } as const]),
      ]
    })
    return [...(system === '' ? [] : [{ role: 'system', text: system } as const]), ...said]
  },
}

export const WIRE_ANSWERS: Record<WireName, WireAnswers> = { chat, responses, anthropic }
