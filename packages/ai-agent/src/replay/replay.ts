/**
 * Makes the requests of a recorded session again, from its log alone: no model, no sandbox. Each must have the bytes that
 * the recording says; the first message that differs is named.
 */
import { type SessionEvent, seqOf } from '@sandlot/shared/events'
import { historyProblems, mendHistory } from '../history/check.ts'
import { modelMessages } from '../history/messages.ts'
import type { ModelMessage } from '../model/model.ts'
import { type RequestFrame, bodyOf, digestOf, messageDigests } from './mark.ts'
import type { Recording } from './recording.ts'

export interface Mismatch {
  promptId: string
  turn: number
  /** Place of the first message that differs, from 0; absent when the messages agree and the rest of the body does not. */
  message?: number
  text: string
}

export interface ReplayResult {
  /** Requests that were made again. */
  requests: number
  /** Their bodies, in order. */
  bodies: string[]
  mismatch?: Mismatch
}

export function replay({ events, frames }: Pick<Recording, 'events' | 'frames'>): ReplayResult {
  const bodies: string[] = []
  let recorded: readonly string[] = []
  for (const event of events) {
    const { request: mark, promptId = '', turn = 0 } = event._meta.sandlot
    if (mark === undefined) continue
    const at = { promptId, turn }
    const frame = frames[mark.frame] as RequestFrame | undefined
    if (frame === undefined) {
      const text = `${placeOf(at)}: the recording does not have the system prompt and the tools of this request.`
      return { requests: bodies.length, bodies, mismatch: { ...at, text } }
    }
    recorded = [...recorded.slice(0, mark.from), ...mark.digests]
    const messages = requestAt(events, mark.upTo, frame)
    const body = bodyOf(messages, frame)
    bodies.push(body)
    if (digestOf(body) === mark.body) continue
    return {
      requests: bodies.length,
      bodies,
      mismatch: { ...at, ...firstDifference(at, messages, recorded) },
    }
  }
  return { requests: bodies.length, bodies }
}

/** The messages of the request that was made when `upTo` was the last event. */
export function requestAt(
  events: readonly SessionEvent[],
  upTo: number,
  { system, reader }: Pick<RequestFrame, 'system' | 'reader'>,
): ModelMessage[] {
  const log = events.filter((event) => (seqOf(event) ?? 0) <= upTo)
  const messages = modelMessages(log, system, reader)
  return historyProblems(messages).length === 0 ? messages : mendHistory(messages)
}

function firstDifference(
  at: { promptId: string; turn: number },
  messages: readonly ModelMessage[],
  recorded: readonly string[],
): { message?: number; text: string } {
  const digests = messageDigests(messages)
  const longer = Math.max(digests.length, recorded.length)
  const first = Array.from({ length: longer }, (_, n) => n).find((n) => digests[n] !== recorded[n])
  if (first === undefined) {
    return { text: `${placeOf(at)}: every message is the same, the rest of the body is not.` }
  }
  const made = messages[first]
  if (made === undefined) {
    return {
      message: first,
      text: `${placeOf(at)}: message ${first + 1} of the recording is not made any more.`,
    }
  }
  const what = recorded[first] === undefined ? 'is not in the recording' : 'is not the recorded one'
  const words = `${made.role} ${JSON.stringify(made.content).slice(0, 120)}`
  return { message: first, text: `${placeOf(at)}: message ${first + 1} ${what}: ${words}` }
}

function placeOf({ promptId, turn }: { promptId: string; turn: number }): string {
  return `The request of turn ${turn} of prompt ${promptId}`
}
