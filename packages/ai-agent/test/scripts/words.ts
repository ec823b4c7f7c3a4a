/** Short words for scripts. */
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import { type SessionEvent, isLive, isOutcome, sandlotEventOf } from '@sandlot/shared/chat/events'
import {
  type FakeAnswer,
  type FakeCall,
  type Scripted,
  deltaChunk,
  errorAnswer,
  sse,
  textAnswer,
  toolCalls,
} from '../support/fake-provider.ts'

export const call = (id: string, name: string, args: FakeCall['args'] = {}): FakeCall => ({ id, name, args })
export const echo = (id: string, text = id): FakeCall => call(id, 'echo', { text })
export const calls = (...made: FakeCall[]): FakeAnswer => toolCalls(made)
export const says = (text: string): FakeAnswer => textAnswer(text)
export const done = says('Done.')
export const refuses = (status: number, message: string, headers: Record<string, string> = {}): FakeAnswer =>
  errorAnswer(status, { error: { message } }, headers)
export const times = (count: number, make: (nth: number) => Scripted): Scripted[] =>
  Array.from({ length: count }, (_, place) => make(place + 1))

/** A stream of these deltas, one chunk each, then its end. */
export function stream(
  deltas: readonly unknown[],
  finish: string | null = 'stop',
  after: string[] = ['[DONE]'],
): FakeAnswer {
  const chunks = deltas.map((delta) => sse(deltaChunk(delta)))
  return {
    steps: [
      ...chunks,
      ...(finish === null ? [] : [sse(deltaChunk({}, finish))]),
      ...after.map((data) => sse(data)),
    ],
  }
}
/** A stream that the connection ends in the middle of. */
export const broken = (deltas: readonly unknown[]): FakeAnswer => ({
  steps: deltas.map((delta) => sse(deltaChunk(delta))),
  after: 'destroy',
})
export const toolDelta = (...pieces: unknown[]): unknown => ({ tool_calls: pieces })

export const happens =
  (type: SandlotEvent['type']) =>
  (event: SessionEvent): boolean =>
    sandlotEventOf(event)?.type === type
export const outcomeOf =
  (id: string) =>
  (event: SessionEvent): boolean =>
    isOutcome(event) && event.toolCallId === id
export const startOf =
  (id: string) =>
  (event: SessionEvent): boolean =>
    event.sessionUpdate === 'tool_call_update' && event.toolCallId === id && event.status === 'in_progress'
export const announced =
  (id: string) =>
  (event: SessionEvent): boolean =>
    event.sessionUpdate === 'tool_call' && event.toolCallId === id
export const speaks = (event: SessionEvent): boolean =>
  event.sessionUpdate === 'agent_message_chunk' && isLive(event)
export const settles = (event: SessionEvent): boolean =>
  event.sessionUpdate === 'agent_message_chunk' && !isLive(event)
