/** Bodies of the HTTP API about chats. */
import { z } from 'zod'
import { requestId, sessionId } from '../base/ids.ts'
import { tokenUsage } from './event-meta.ts'
import { MAX_MESSAGE_CHARS, MAX_TITLE_CHARS, sessionSummary } from './frames.ts'
import { imageId, MAX_IMAGES } from './images.ts'
import { mode } from './mode.ts'
import { modelChoice } from './model-choice.ts'
import { questionContent } from './question.ts'
import { endReason, failureReason, stopReason } from './reasons.ts'
import { editedInput, follows, onError } from './sandlot-event.ts'

/** `POST /api/chat` */
export const chatRequest = z
  .strictObject({
    /** May be empty with images. */
    message: z.string().max(MAX_MESSAGE_CHARS),
    /** Chosen by the caller; created for that user if it does not exist. */
    sessionId: sessionId.optional(),
    /** Default of an API key: `yolo`, or its owner's ceiling. */
    mode: mode.optional(),
    /** The user's project for a new chat. */
    project: z.string().max(64).optional(),
    /**
     * Applies to the session from now on: one of `Me.models`, by name, and one of its thought
     * levels.
     */
    ...modelChoice,
    /** `stop`: the prompt ends with the first call that fails. Default `continue`. */
    onError: onError.optional(),
    /** The previous prompt, null: none; default: the newest. */
    follows: follows.optional(),
    /** For a call that asks: `deny` (default), or `wait` for the user's answer from any client. */
    approvals: z.enum(['deny', 'wait']).optional(),
    requestId: requestId.optional(),
    /** Ids of images uploaded by `POST /api/images`. */
    images: z.array(imageId).max(MAX_IMAGES).optional(),
  })
  .refine(
    ({ message, images = [] }) => message !== '' || images.length > 0,
    'a message has words or an image',
  )
export type ChatRequest = z.infer<typeof chatRequest>

export const toolResult = z.object({
  callId: z.string(),
  name: z.string(),
  status: z.enum(['completed', 'failed']),
  reason: failureReason.optional(),
  text: z.string(),
  outputUrl: z.string().optional(),
  truncated: z.boolean(),
})
export type ToolResult = z.infer<typeof toolResult>

export const chatResponse = z.object({
  sessionId,
  /** The message's prompt, which another message may follow. */
  promptId: z.string(),
  /** The model's text after its last calls; if empty, `message`. */
  text: z.string(),
  stopReason,
  /** The end of the prompt; `error` is possible next to a `text` too. */
  reason: endReason,
  /** Explanation of the reason, independent of the model's text. */
  message: z.string().optional(),
  toolResults: z.array(toolResult),
  usage: tokenUsage,
})
export type ChatResponse = z.infer<typeof chatResponse>

/**
 * `POST /api/sessions/:id/approvals/:callId` → 204. `optionId`: one of the offered ones; `content`:
 * the answer to a question; `reason`: for the model. `input`: with an option that allows once,
 * replaces the call's arguments.
 */
export const approvalAnswer = z.strictObject({
  optionId: z.string().min(1).max(64),
  reason: z.string().max(2_000).optional(),
  content: questionContent.optional(),
  input: editedInput.optional(),
})

/**
 * `GET /api/sessions?limit=50&before=<next>`, newest first. `next` is null on the last page.
 * `GET /api/sessions/:id` → `SessionSummary`; `DELETE /api/sessions/:id` → 204.
 */
export const sessionList = z.object({ sessions: z.array(sessionSummary), next: z.number().nullable() })
export type SessionList = z.infer<typeof sessionList>

/** `PATCH /api/sessions/:id` → 204. */
export const renameRequest = z.object({ title: z.string().trim().min(1).max(MAX_TITLE_CHARS) })
/** `POST /api/sessions/:id/fork`. `before`: without the prompt. `after`: with its answer. */
export const forkRequest = z.object({
  promptId: z.string(),
  where: z.enum(['before', 'after']).default('after'),
})
export const forkResult = z.object({ sessionId })
