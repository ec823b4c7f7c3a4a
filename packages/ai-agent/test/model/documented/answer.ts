/** Answers as provider families send them, written from their documentation and from public reports. */
import type { WireName } from '@sandlot/shared/account/models-api'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import type { ModelAnswer } from '../../../src/model/model.ts'

export interface DocumentedAnswer {
  /** Default `chat`. */
  wire?: WireName
  /** Rows of the list of bugs that come back everywhere. */
  rows: readonly number[]
  baseUrl: string
  model: string
  stream: string
  /** The same answer as one JSON body, where this provider sends it without a stream. */
  whole?: unknown
  gives: Partial<ModelAnswer> | { class: ModelErrorClass; retryable: boolean; waitMs?: number }
}

export type DocumentedAnswers = Record<string, DocumentedAnswer>

/** One event a chunk, then `[DONE]`. */
export function events(...chunks: readonly unknown[]): string {
  return [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), 'data: [DONE]\n\n'].join('')
}

/** A chunk with one choice. `more` stands beside `choices`. */
export function chunk(delta: unknown, finish: string | null = null, more: object = {}): unknown {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...more,
  }
}

/** A whole completion. */
export function completion(message: object, finish: string, more: object = {}): unknown {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
    ...more,
  }
}

export const call = (id: string, name: string, args: object) => ({ id, name, args })
/** A call as it stands in a whole message. */
export const wireCall = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
export const tools = (...elements: unknown[]): object => ({ tool_calls: elements })
/** A delta of a call: its beginning when it has a name. */
export const piece = (index: number, args: string, head: object = {}, name?: string): object => ({
  index,
  ...head,
  function: { name, arguments: args },
})
