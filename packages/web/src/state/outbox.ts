/**
 * Messages that were sent and are not yet known to have arrived. Each keeps its `requestId`, so
 * sending it again after a reconnect or a reload is the same prompt and never a second one.
 */
import { type ClientFrame, MAX_MESSAGE_CHARS } from '@sandlot/shared/chat/frames'
import { type Mode, mode } from '@sandlot/shared/chat/mode'
import { uploadedImage } from '@sandlot/shared/chat/images'
import { requestId, sessionId } from '@sandlot/shared/base/ids'
import type { Transcript } from '@sandlot/shared/transcript/transcript'
import { modelChoice } from '@sandlot/shared/chat/model-choice'
import { follows } from '@sandlot/shared/chat/sandlot-event'
import { z } from 'zod'
import { persistedList } from './persisted-list.ts'

const pendingMessage = z.object({
  requestId,
  /** Null: the message begins a new session. Filled in when the service has accepted it. */
  sessionId: sessionId.nullable(),
  /** May be empty where there are images. */
  text: z.string().max(MAX_MESSAGE_CHARS),
  /** They wait on the service. */
  images: z.array(uploadedImage.pick({ id: true, mimeType: true })).optional(),
  mode: mode.optional(),
  ...modelChoice,
  /** See `ai_chat`. */
  follows: follows.optional(),
  project: z.string().optional(),
  sentAt: z.number(),
  /** Known once the service has accepted it. */
  promptId: z.string().optional(),
  /** Refused: not sent again unless the user says so. */
  problem: z.object({ code: z.string(), message: z.string() }).optional(),
  /** The user pressed Stop before the service answered. */
  stop: z.boolean().optional(),
})
export type PendingMessage = z.infer<typeof pendingMessage>

export const persistedOutbox = persistedList('sandlot.outbox', pendingMessage, 'Unsent messages')

/** The frame of a message; the same one every time. */
export function frameOf(message: PendingMessage): ClientFrame {
  return {
    type: 'ai_chat',
    requestId: message.requestId,
    text: message.text,
    images: message.images?.map(({ id }) => id),
    whenBusy: 'steer',
    ...(message.sessionId === null ? {} : { sessionId: message.sessionId }),
    mode: message.mode === undefined ? undefined : (message.mode satisfies Mode),
    model: message.model,
    thoughtLevel: message.thoughtLevel,
    follows: message.follows,
    project: message.project,
  }
}

/** True for a message that the service has not answered yet. */
export function isUnanswered(message: PendingMessage): boolean {
  return message.promptId === undefined && message.problem === undefined
}

/** True when the transcript shows the message itself, so that the optimistic copy has to go. */
export function isInTranscript(message: PendingMessage, transcript: Transcript): boolean {
  if (message.promptId === undefined) return false
  const text = message.text.trim()
  if (transcript.queued.some((queued) => queued.text.trim() === text)) return true
  return transcript.entries.some((entry) => {
    // An ended prompt shows all that it will ever show of its messages.
    if (entry.type === 'end') return entry.id === message.promptId
    if (entry.type !== 'message' || entry.role !== 'user') return false
    return entry.promptId === message.promptId && entry.text.trim() === text
  })
}
