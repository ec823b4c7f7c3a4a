/**
 * Makes the requests of a recorded session again, from its log alone: no model, no sandbox. Each
 * must have the bytes that the recording says; the first message that differs is named.
 */
import { type SessionEvent, seqOf, sessionEvent } from '@sandlot/shared/chat/events'
import { historyProblems, repairHistory } from '../history/check.ts'
import { branchOf } from '../history/branch.ts'
import { modelMessages } from '../history/model-messages.ts'
import type { ModelMessage } from '../model/model.ts'
import { type RequestFrame, bodyOf, digestOf, messageDigests, RequestMarker, requestOf } from './mark.ts'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import { z } from 'zod'

interface Mismatch {
  promptId: string
  turn: number
  /**
   * Place of the first message that differs, from 0; absent when the messages agree and the rest of
   * the body does not.
   */
  message?: number
  text: string
}

interface ReplayResult {
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
  const messages = modelMessages(branchOf(log), system, reader)
  return historyProblems(messages).length === 0 ? messages : repairHistory(messages)
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

// ── What is recorded ────────────────────────────────────────────────────────────────────────────

const recordingShape = z.object({
  kind: z.literal('sandlot-recording'),
  v: z.literal(1),
  sessionId: z.string(),
  /**
   * Secrets were hidden after the digests had been checked; the digests are those of what is here.
   */
  masked: z.boolean(),
  /** What a replay of the unmasked session said when it was recorded. */
  checked: z.object({ requests: z.number(), mismatch: z.string().optional() }),
  events: z.array(sessionEvent),
  frames: z.record(z.string(), z.unknown()),
})
type Recording = z.infer<typeof recordingShape>

/** Throws `bad_request` when the text is no recording. */
export function readRecording(text: string): Recording {
  const parsed = z
    .string()
    .transform((json, context): unknown => {
      try {
        return JSON.parse(json)
      } catch {
        context.addIssue({ code: 'custom', message: 'it is not JSON' })
        return z.NEVER
      }
    })
    .pipe(recordingShape)
    .safeParse(text)
  if (parsed.success) return parsed.data
  const [first] = parsed.error.issues
  const where = first === undefined ? '' : `: ${first.path.join('.')} ${first.message}`
  throw new SandlotError('bad_request', `This is no recording of a Sandlot session${where}.`)
}

/**
 * Throws `not_found`. `scrub`: hides secrets in a text; absent: the recording is as the session
 * was.
 */
export async function record(
  reader: Pick<SessionReader, 'getSession' | 'readEvents' | 'requestFrame'>,
  sessionId: string,
  scrub?: (text: string) => string,
): Promise<Recording> {
  const row = await reader.getSession(sessionId)
  if (row === undefined) throw new SandlotError('not_found', `There is no session ${sessionId}.`)
  const events = await reader.readEvents(sessionId)
  const frames: Record<string, unknown> = {}
  for (const event of events) {
    const hash = event._meta.sandlot.request?.frame
    if (hash === undefined || hash in frames) continue
    const json = await reader.requestFrame(hash)
    if (json !== undefined) frames[hash] = JSON.parse(json)
  }
  const plain: Recording = {
    kind: 'sandlot-recording',
    v: 1,
    sessionId,
    masked: false,
    checked: { requests: 0 },
    events,
    frames,
  }
  const checked = summaryOf(replay(plain))
  return scrub === undefined ? { ...plain, checked } : masked({ ...plain, checked }, scrub)
}

function summaryOf({ requests, mismatch }: ReplayResult): Recording['checked'] {
  return { requests, mismatch: mismatch?.text }
}

/**
 * Secrets hidden everywhere, and the digests made again from what is left, so that it still
 * replays.
 */
function masked(recording: Recording, scrub: (text: string) => string): Recording {
  const events = z.array(sessionEvent).parse(everyText(recording.events, scrub))
  const marker = new RequestMarker()
  const frames: Record<string, unknown> = {}
  const marked: SessionEvent[] = []
  for (const event of events) {
    const old = event._meta.sandlot.request
    const frame = old === undefined ? undefined : recording.frames[old.frame]
    if (old === undefined || frame === undefined) {
      marked.push(event)
      continue
    }
    const clean = everyText(frame, scrub) as RequestFrame
    const made = marker.mark(requestOf(requestAt(events, old.upTo, clean), clean), clean, old.upTo)
    made.kept()
    frames[made.frame.hash] = clean
    const sandlot = { ...event._meta.sandlot, request: made.mark }
    marked.push({ ...event, _meta: { ...event._meta, sandlot } })
  }
  return { ...recording, masked: true, events: marked, frames }
}

function everyText(value: unknown, scrub: (text: string) => string): unknown {
  if (typeof value === 'string') return scrub(value)
  if (Array.isArray(value)) return value.map((one) => everyText(one, scrub))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, everyText(one, scrub)]))
}
