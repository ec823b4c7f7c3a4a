/** Bodies of the HTTP API that several packages read. */
import { z } from 'zod'
import { ERROR_CODES, type ErrorBody } from '../base/errors.ts'
import { mode } from '../chat/mode.ts'
import { role } from './role.ts'
import { emailAddress as email, personName as name } from './account-fields.ts'
import { keyScope } from './sign-in-api.ts'
import type { FullImageState } from '../config/full-image.ts'
import { modelAbout } from '../chat/model-choice.ts'

/** Body of every failed request. */
export const errorBody: z.ZodType<ErrorBody> = z.object({
  code: z.enum(ERROR_CODES),
  message: z.string(),
  requestId: z.string().optional(),
})

/** For `Me` and the file that it comes from. */
export const fullImageState: z.ZodType<FullImageState> = z.object({ state: z.enum(['building', 'failed']) })

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

/** `PUT /api/password` → 204. All other sign-ins of this user end; their API keys stay. */
export const newPasswordRequest = z.strictObject({
  current: z.string().min(1).max(MAX_PASSWORD_CHARS),
  password,
})

/** `PUT /api/account/name` → 204. */
export const newNameRequest = z.strictObject({ name })

/** `POST /api/users` (administrators) → 201 with an `Account`. */
export const newUserRequest = z.strictObject({
  name,
  email,
  password,
  role: role.default('member'),
})

/**
 * `POST /api/account/delete` → 204, signed out. Deletes files, chats, secrets and all else
 * permanently; only the line of the audit log stays.
 */
export const deleteAccountRequest = z.strictObject({
  /** One's own address, as confirmation. */
  email: z.string().max(254),
  /** Required if the account has one. */
  password: z.string().max(MAX_PASSWORD_CHARS).optional(),
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
