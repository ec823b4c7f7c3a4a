/**
 * The chat frames between browser and service: one JSON object per WebSocket text message, at most
 * 1 MiB. Events pass through unchanged, but for the bytes of images: an address stands in their
 * place (`MessageImage`).
 */
import { z } from 'zod'
import { ERROR_CODES } from '../base/errors.ts'
import { mode } from './mode.ts'
import { sessionEvent } from './events.ts'
import { stopReason } from './reasons.ts'
import { imageId, MAX_IMAGES } from './images.ts'
import { messageId, requestId, sessionId } from '../base/ids.ts'
import { modelChoice } from './model-choice.ts'
import { follows, onError } from './sandlot-event.ts'
import { questionContent } from './question.ts'
import { readReadable } from '../base/readable.ts'
import { author, shareAccess } from './shares.ts'

/** Bytes. A larger frame is answered with `too_large`. */
export const MAX_FRAME_BYTES = 1024 * 1024
/** Characters of one message. Longer text belongs into a file. */
export const MAX_MESSAGE_CHARS = 200_000

/** Directories of the workspace, relative to it. */
export const watchedPaths = z.array(z.string().max(4_096)).max(128)

const callId = z.string().min(1).max(256)

/** To the service. */
export const clientFrame = z.discriminatedUnion('type', [
  z
    .object({
      type: z.literal('ai_chat'),
      /** The idempotency key: the same one again is the same prompt, also after a restart. */
      requestId,
      /** Absent: a new session. */
      sessionId: sessionId.optional(),
      /** May be empty where there are images. */
      text: z.string().max(MAX_MESSAGE_CHARS),
      /** Ids of images that were sent before, by `POST /api/images`. */
      images: z.array(imageId).max(MAX_IMAGES).optional(),
      mode: mode.optional(),
      /** What to do while a prompt runs: add to it, wait for its end, or refuse. */
      whenBusy: z.enum(['steer', 'queue', 'refuse']).default('steer'),
      /** What a failed call means for the prompt; default `continue`. */
      onError: onError.optional(),
      /** The prompt that it follows (`transcript/branches.ts`); default: the newest. */
      follows: follows.optional(),
      /** Of the session from now on. */
      ...modelChoice,
      /** Of a new session: the person's project that it is in. */
      project: z.string().max(64).optional(),
    })
    .refine(({ text, images = [] }) => text !== '' || images.length > 0, 'a message has words or an image'),
  /** Stop the running prompt, or only one of its calls. */
  z.object({ type: z.literal('ai_chat_cancel'), sessionId, toolCallId: callId.optional() }),
  /**
   * Take back a message that waits behind the running prompt. One that was read already is answered
   * with `conflict`.
   */
  z.object({ type: z.literal('ai_chat_unqueue'), sessionId, messageId }),
  z.object({
    type: z.literal('ai_chat_approve'),
    sessionId,
    toolCallId: callId,
    optionId: z.string().min(1).max(64),
    reason: z.string().max(2_000).optional(),
    /** What was filled in, of a question. */
    content: questionContent.optional(),
  }),
  z.object({ type: z.literal('ai_chat_mode'), sessionId, modeId: mode }),
  /** The directories of the workspace that this page shows, in place of those before. */
  z.object({ type: z.literal('ai_chat_watch'), paths: watchedPaths }),
  /** This person is writing, in a shared chat. Sent again while it goes on. */
  z.object({ type: z.literal('ai_chat_typing'), sessionId }),
  /** From the next message on. `thoughtLevel` null: as the model does by itself. */
  z.object({
    type: z.literal('ai_chat_model'),
    sessionId,
    model: modelChoice.model,
    thoughtLevel: modelChoice.thoughtLevel.nullable(),
  }),
  /**
   * Whether this page is visible; sent first, and at each change. A person without a visible page
   * is away, and gets notices.
   */
  z.object({ type: z.literal('ai_chat_visible'), visible: z.boolean() }),
  /**
   * Everything after `after` (0 = from the start), then what is in flight, then live. Subscribes
   * this socket.
   */
  z.object({ type: z.literal('ai_chat_resume'), sessionId, after: z.number().int().nonnegative() }),
])
export type ClientFrame = z.infer<typeof clientFrame>

/** Of the name that a person gives a chat. */
export const MAX_TITLE_CHARS = 200

export const sessionSummary = z.object({
  sessionId,
  title: z.string().nullable(),
  /** Epoch milliseconds. */
  updatedAt: z.number(),
  mode,
  running: z.boolean(),
  /** How many approvals wait for the user. */
  waiting: z.number().int().nonnegative(),
  deleted: z.literal(true).optional(),
  /** Whose it is, where that is not the reader. */
  owner: author.optional(),
  /** What the reader may do, where the chat is another's. */
  access: shareAccess.optional(),
  /** The reader answers approvals, where the chat is another's. */
  mayApprove: z.literal(true).optional(),
  /** The highest mode of what the reader sends, where they take part in another's chat. */
  modeCeiling: mode.optional(),
  /** Others see it: of the reader's own chats. */
  shared: z.literal(true).optional(),
  /** When its last prompt ended, where that is known, and whether it fell short of its own end. */
  endedAt: z.number().optional(),
  ended: z.enum(['failed', 'unfinished']).optional(),
  /** The reader's own marks; `unread`: they have not seen its last end. */
  unread: z.literal(true).optional(),
  pinned: z.literal(true).optional(),
  archived: z.literal(true).optional(),
  /** Id of the reader's project that it is in. */
  project: z.string().optional(),
})
/** One line of the session list. */
export type SessionSummary = z.infer<typeof sessionSummary>

/** From the service. */
export const serverFrame = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ai_chat_accepted'), requestId, sessionId, promptId: z.string() }),
  z.object({ type: z.literal('ai_chat_event'), sessionId, event: sessionEvent }),
  /** Repeats `prompt_ended`. */
  z.object({ type: z.literal('ai_chat_done'), sessionId, promptId: z.string(), stopReason }),
  /** A resume has delivered everything settled and what is in flight; live events follow. */
  z.object({ type: z.literal('ai_chat_caught_up'), sessionId, seq: z.number().int().nonnegative() }),
  /** In these directories that the page shows something may have changed. */
  z.object({ type: z.literal('ai_chat_files'), paths: z.array(z.string()) }),
  z.object({ type: z.literal('ai_chat_sessions'), changed: z.array(sessionSummary) }),
  z.object({
    type: z.literal('ai_chat_error'),
    requestId: z.string().optional(),
    sessionId: z.string().optional(),
    code: z.enum(ERROR_CODES),
    message: z.string(),
  }),
])
export type ServerFrame = z.infer<typeof serverFrame>

/**
 * Events of one session that are sent together: each means what it does in an `ai_chat_event` of
 * its own.
 */
const eventsFrame = z.object({
  type: z.literal('ai_chat_events'),
  sessionId,
  events: z.array(z.unknown()).min(1),
})

export type ReadFrame = { ok: true; frame: ServerFrame } | { ok: false; problem: string }

/**
 * The frames in one message of the service, as JSON has it: one, or one for each event of an
 * `ai_chat_events`. Each without what of it cannot be read.
 */
export function readServerFrames(message: unknown): ReadFrame[] {
  const { success, data } = eventsFrame.safeParse(message)
  const frames = success
    ? data.events.map((event) => ({ type: 'ai_chat_event', sessionId: data.sessionId, event }))
    : [message]
  return frames.map((frame) => {
    const read = readReadable(serverFrame, frame)
    return read.ok ? { ok: true, frame: read.data } : { ok: false, problem: read.problems.join('; ') }
  })
}
