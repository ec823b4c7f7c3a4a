/**
 * What the log keeps of each request to the model, so that a replay can prove that it makes the
 * same one: digests of the body and of each message. The messages themselves are in the log
 * already; system prompt, tools and the wire's options are a frame, kept once for all requests that
 * have the same.
 */
import { createHash } from 'node:crypto'
import type { RequestMark } from '@sandlot/shared/chat/event-meta'
import type { ModelMessage, ModelRequest, ModelTool, WireOptions } from '../model/model.ts'
import { requestBody } from '../model/wire.ts'

/** What a request has beside the messages of the log. Its JSON is stored under its digest. */
export interface RequestFrame {
  system: string
  tools: readonly ModelTool[]
  wire: WireOptions
  /** The model as the history was written for. */
  reader: { model: string; contextWindow: number }
  maxTokens?: number
}

/** Digits of a message's digest: enough to find the first one that differs. */
const MESSAGE_DIGITS = 12

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The request that was made of these messages and what stood beside them. */
export function requestOf(
  messages: readonly ModelMessage[],
  { tools, maxTokens }: Pick<RequestFrame, 'tools' | 'maxTokens'>,
): ModelRequest {
  return { messages, tools, maxTokens }
}

/** The body as the wire sends it. */
export function bodyOf(messages: readonly ModelMessage[], frame: Omit<RequestFrame, 'system'>): string {
  return JSON.stringify(requestBody(requestOf(messages, frame), frame.wire))
}

export function messageDigests(messages: readonly ModelMessage[]): string[] {
  return messages.map((message) => digestOf(JSON.stringify(message)).slice(0, MESSAGE_DIGITS))
}

/** Marks of one session's requests, each only with what is new since the one before. */
export class RequestMarker {
  #last: readonly string[] = []

  /**
   * `upTo`: number of the last event that the request was made from. Counts as the one before once
   * it is `kept`.
   */
  mark(
    request: ModelRequest,
    frame: RequestFrame,
    upTo: number,
  ): { mark: RequestMark; frame: { hash: string; json: string }; kept: () => void } {
    const digests = messageDigests(request.messages)
    const from = sameUpTo(this.#last, digests)
    const json = JSON.stringify(frame)
    const hash = digestOf(json)
    const mark = {
      upTo,
      frame: hash,
      body: digestOf(JSON.stringify(requestBody(request, frame.wire))),
      from,
      digests: digests.slice(from),
    }
    const kept = (): void => {
      this.#last = digests
    }
    return { mark, frame: { hash, json }, kept }
  }
}

function sameUpTo(a: readonly string[], b: readonly string[]): number {
  let n = 0
  while (n < a.length && n < b.length && a[n] === b[n]) n++
  return n
}
