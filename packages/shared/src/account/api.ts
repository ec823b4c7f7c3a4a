/** Bodies of the HTTP API that several packages read. */
import { z } from 'zod'
import { ERROR_CODES, type ErrorBody } from '../base/errors.ts'
import { endReason, failureReason, stopReason } from '../chat/reasons.ts'
import { mode } from '../chat/mode.ts'
import { role } from './role.ts'
import { emailAddress as email, personName as name } from './account-fields.ts'
import { keyScope } from './sign-in-api.ts'
import { tokenUsage } from '../chat/event-meta.ts'
import { requestId, sessionId } from '../base/ids.ts'
import type { FullImageState } from '../config/full-image.ts'
import { modelAbout, modelChoice } from '../chat/model-choice.ts'
import { editedInput, follows, onError } from '../chat/sandlot-event.ts'
import { questionContent } from '../chat/question.ts'
import { imageId, MAX_IMAGES } from '../chat/images.ts'
import { MAX_MESSAGE_CHARS, sessionSummary } from '../chat/frames.ts'

/** Body of every failed request. */
export const errorBody: z.ZodType<ErrorBody> = z.object({
  code: z.enum(ERROR_CODES),
  message: z.string(),
  requestId: z.string().optional(),
})

/** For `Me` and the file that it comes from. */
export const fullImageState: z.ZodType<FullImageState> = z.object({ state: z.enum(['building', 'failed']) })

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
 * `GET /readyz`, and the agent's own status. Degraded is not dead: without an engine chat still
 * works and reports it.
 */
export const readiness = z.object({
  ready: z.boolean(),
  reasons: z.array(z.object({ part: z.string(), ok: z.boolean(), message: z.string() })),
})
export type Readiness = z.infer<typeof readiness>

/** `GET /api/me` */
export const me = z.object({
  id: z.string(),
  name: z.string(),
  email: z.string(),
  role,
  /**
   * The model's display name, whether it is the demo model, and whether it accepts images (absent:
   * not known).
   */
  model: z.object({ name: z.string(), demo: z.boolean(), images: z.boolean().optional() }),
  /** All models that a session may choose, the deployment's own first. */
  models: z.array(modelAbout).optional(),
  /** The mode of their new chats. */
  defaultMode: mode,
  /** The highest mode they may choose. Absent: any, or not known while the agent is unavailable. */
  modeCeiling: mode.optional(),
  /** State of the larger sandbox image, while it is being built or after that failed. */
  fullImage: fullImageState.optional(),
})
export type Me = z.infer<typeof me>

// ── Accounts
// ────────────────────────────────────────────────────────────────────────────────────────────

export const MIN_PASSWORD_CHARS = 8
export const MAX_PASSWORD_CHARS = 128

const password = z.string().min(MIN_PASSWORD_CHARS).max(MAX_PASSWORD_CHARS)

/** `GET /api/setup`: true while no account exists. */
export const setupState = z.object({ needed: z.boolean() })
/** `POST /api/setup` → `Me`, signed in. The token is part of the URL that the service prints. */
export const setupRequest = z.strictObject({ token: z.string().min(1).max(200), name, email, password })
export type SetupRequest = z.infer<typeof setupRequest>

/** `POST /api/sign-in` → `Me`. `POST /api/sign-out` → 204. */
export const signInRequest = z.strictObject({
  email: z.string().min(1).max(254),
  password: z.string().min(1).max(MAX_PASSWORD_CHARS),
})
export type SignInRequest = z.infer<typeof signInRequest>

/** `PUT /api/password` → 204. All other sign-ins of this user end; their API keys stay. */
export const newPasswordRequest = z.strictObject({
  current: z.string().min(1).max(MAX_PASSWORD_CHARS),
  password,
})
export type NewPasswordRequest = z.infer<typeof newPasswordRequest>

/** `PUT /api/account/name` → 204. */
export const newNameRequest = z.strictObject({ name })

/** `POST /api/users` (administrators) → 201 with an `Account`. */
export const newUserRequest = z.strictObject({
  name,
  email,
  password,
  role: role.default('member'),
})

export const account = z.object({
  id: z.string(),
  name: z.string(),
  email: z.string(),
  role,
  /** Ids of their teams. */
  teams: z.array(z.string()).default([]),
  /** The address is unconfirmed: settings for it do not apply. */
  unproven: z.literal(true).optional(),
})
export type Account = z.infer<typeof account>

/** Treatment of a removed user's files and chats. */
export const removedData = z.enum(['keep', 'purge'])
export type RemovedData = z.infer<typeof removedData>

/** `DELETE /api/users/:id?data=keep|purge` (administrators) → 202. */
export const removal = z.object({
  id: z.string(),
  name: z.string(),
  email: z.string(),
  data: removedData,
  /** Epoch milliseconds. */
  removedAt: z.number(),
  /** False: the account has ended, and the rest is in progress. */
  done: z.boolean(),
  /** The reason that it is not done yet; null: none is known. It is retried in any case. */
  problem: z.string().nullable(),
})
export type Removal = z.infer<typeof removal>

/** Advice to administrators for the `problem` of a removal. */
export const REMOVAL_HELP =
  'It is tried again by itself, at the latest every ten minutes. ./sandlot doctor shows whether Docker and the disk are well, and a restart of Sandlot begins it anew.'

/** `GET /api/users` (administrators). `removed`: newest first, without completed purges. */
export const userList = z.object({ users: z.array(account), removed: z.array(removal) })
export type UserList = z.infer<typeof userList>

/** `POST /api/keys` → 201 with a `NewApiKey`. */
export const newKeyRequest = z.strictObject({
  name,
  scopes: z.array(keyScope).min(1).max(10).optional(),
  /** Default: it does not expire. */
  expiresInDays: z.number().int().min(1).max(3_650).optional(),
})
const apiKey = z.object({
  id: z.string(),
  name: z.string(),
  /** The first characters, to distinguish keys. The rest is not stored. */
  prefix: z.string(),
  createdAt: z.number(),
  lastUsedAt: z.number().nullable(),
  scopes: z.array(keyScope),
  /** Null: never. */
  expiresAt: z.number().nullable(),
})
export type ApiKey = z.infer<typeof apiKey>
/** `key` is the whole key, shown only once. */
export const newApiKey = apiKey.extend({ key: z.string() })
export type NewApiKey = z.infer<typeof newApiKey>
/** `GET /api/keys`. `DELETE /api/keys/:id` → 204. */
export const keyList = z.object({ keys: z.array(apiKey) })

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

// ── Sessions
// ────────────────────────────────────────────────────────────────────────────────────────────

/**
 * `GET /api/sessions?limit=50&before=<next>`, newest first. `next` is null on the last page.
 * `GET /api/sessions/:id` → `SessionSummary`; `DELETE /api/sessions/:id` → 204.
 */
export const sessionList = z.object({ sessions: z.array(sessionSummary), next: z.number().nullable() })
export type SessionList = z.infer<typeof sessionList>
