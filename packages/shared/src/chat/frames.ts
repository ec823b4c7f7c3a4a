/**
 * Chat frames between browser and service: one JSON object per WebSocket text message, at most 1
 * MiB. Events pass through unchanged, except that an address replaces the bytes of images
 * (`MessageImage`).
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
/** Characters of one message. Longer text belongs in a file. */
export const MAX_MESSAGE_CHARS = 200_000

/** Directories of the workspace, relative to it. */
export const watchedPaths = z.array(z.string().max(4_096)).max(128)

const callId = z.string().min(1).max(256)

/** To the service. */
export const clientFrame = z.discriminatedUnion('type', [
  z
    .object({
      type: z.literal('ai_chat'),
      /** Idempotency key: the same key is the same prompt, also after a restart. */
      requestId,
      /** Absent: a new session. */
      sessionId: sessionId.optional(),
      /** May be empty with images. */
      text: z.string().max(MAX_MESSAGE_CHARS),
      /** Ids of images uploaded by `POST /api/images`. */
      images: z.array(imageId).max(MAX_IMAGES).optional(),
      mode: mode.optional(),
      /** While a prompt runs: add to it, wait for its end, or refuse. */
      whenBusy: z.enum(['steer', 'queue', 'refuse']).default('steer'),
      /** The effect of a failed call on the prompt; default `continue`. */
      onError: onError.optional(),
      /** The prompt that this one follows (`transcript/branches.ts`); default: the newest. */
      follows: follows.optional(),
      /** Applies to the session from now on. */
      ...modelChoice,
      /** The user's project for a new session. */
      project: z.string().max(64).optional(),
    })
    .refine(({ text, images = [] }) => text !== '' || images.length > 0, 'a message has words or an image'),
  /** Stop the running prompt, or only one of its calls. */
  z.object({ type: z.literal('ai_chat_cancel'), sessionId, toolCallId: callId.optional() }),
  /** Withdraw a queued message. One that was already read answers `conflict`. */
  z.object({ type: z.literal('ai_chat_unqueue'), sessionId, messageId }),
  z.object({
    type: z.literal('ai_chat_approve'),
    sessionId,
    toolCallId: callId,
    optionId: z.string().min(1).max(64),
    reason: z.string().max(2_000).optional(),
    /** The filled-in form of a question. */
    content: questionContent.optional(),
  }),
  z.object({ type: z.literal('ai_chat_mode'), sessionId, modeId: mode }),
  /** Workspace directories that this page shows, replacing the previous list. */
  z.object({ type: z.literal('ai_chat_watch'), paths: watchedPaths }),
  /** This user is typing, in a shared chat. Repeated while it lasts. */
  z.object({ type: z.literal('ai_chat_typing'), sessionId }),
  /** From the next message on. `thoughtLevel` null: the model's default. */
  z.object({
    type: z.literal('ai_chat_model'),
    sessionId,
    model: modelChoice.model,
    thoughtLevel: modelChoice.thoughtLevel.nullable(),
  }),
  /**
   * Visibility of this page; sent first, and at each change. A user without a visible page is away,
   * and gets notifications.
   */
  z.object({ type: z.literal('ai_chat_visible'), visible: z.boolean() }),
  /**
   * Everything after `after` (0 = from the start), then events in flight, then live ones.
   * Subscribes this socket.
   */
  z.object({ type: z.literal('ai_chat_resume'), sessionId, after: z.number().int().nonnegative() }),
])
export type ClientFrame = z.infer<typeof clientFrame>

/** Characters of a chat's name. */
export const MAX_TITLE_CHARS = 200

export const sessionSummary = z.object({
  sessionId,
  title: z.string().nullable(),
  /** Epoch milliseconds. */
  updatedAt: z.number(),
  mode,
  running: z.boolean(),
  /** Pending approvals. */
  waiting: z.number().int().nonnegative(),
  deleted: z.literal(true).optional(),
  /** The owner, unless that is the reader. */
  owner: author.optional(),
  /** The reader's access to another's chat. */
  access: shareAccess.optional(),
  /** The reader may answer approvals of another's chat. */
  mayApprove: z.literal(true).optional(),
  /**
   * Others than the owner who may, for a reader who may not, while an approval is pending: the
   * first three, and the number of the rest.
   */
  approvers: z.array(author).optional(),
  moreApprovers: z.number().int().positive().optional(),
  /** The highest mode of the reader's messages in another's chat. */
  modeCeiling: mode.optional(),
  /** The reader's own chat is shared. */
  shared: z.literal(true).optional(),
  /** The end of its last prompt, if known, and whether it was incomplete. */
  endedAt: z.number().optional(),
  ended: z.enum(['failed', 'unfinished']).optional(),
  /** The reader's own marks; `unread`: they have not seen its last end. */
  unread: z.literal(true).optional(),
  pinned: z.literal(true).optional(),
  archived: z.literal(true).optional(),
  /** Id of the reader's project that contains it. */
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
  /**
   * The resume is complete: settled events and those in flight are delivered; live events follow.
   */
  z.object({ type: z.literal('ai_chat_caught_up'), sessionId, seq: z.number().int().nonnegative() }),
  /** Contents of these visible directories may have changed. */
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

/** Events of one session sent together: each has the meaning of an `ai_chat_event`. */
const eventsFrame = z.object({
  type: z.literal('ai_chat_events'),
  sessionId,
  events: z.array(z.unknown()).min(1),
})

export type ReadFrame = { ok: true; frame: ServerFrame } | { ok: false; problem: string }

/**
 * The frames in one JSON message of the service: one, or one for each event of an `ai_chat_events`.
 * Unreadable parts are dropped.
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
