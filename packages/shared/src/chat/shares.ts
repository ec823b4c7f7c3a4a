/** Shares of a chat: users and teams with access, and their permissions. */
import { z } from 'zod'
import { mode } from './mode.ts'
import { requestId, sessionId } from '../base/ids.ts'

/** The author of an entry or a decision in a chat. */
export const author = z.object({ id: z.string().min(1).max(128), name: z.string().max(100) })
export type Author = z.infer<typeof author>

/**
 * `watch`: sees the transcript and the outputs, live. `take_part`: also writes messages, which run
 * in the owner's sandbox, comments, and stops running prompts.
 */
export const shareAccess = z.enum(['watch', 'take_part'])
export type ShareAccess = z.infer<typeof shareAccess>

const epochMs = z.number().int().nonnegative()
const target = { kind: z.enum(['person', 'team']), targetId: z.string().min(1).max(128) }
const terms = {
  access: shareAccess,
  /** The highest mode of their messages. Default: every change asks. */
  mode: mode.default('manual'),
  /** May answer approvals like the owner. */
  mayApprove: z.boolean().default(false),
  /** Null: until it is revoked. */
  expiresAt: epochMs.nullable().default(null),
}

/** `POST /api/sessions/:id/shares` → 201 `Share`; replaces one of the same person or team. */
export const newShare = z.strictObject({ ...target, ...terms })
export type NewShare = z.infer<typeof newShare>

export const share = z.object({ id: z.string(), ...target, ...terms, createdAt: epochMs })
export type Share = z.infer<typeof share>

/** `GET /api/sessions/:id/shares`. `name`: of the user or team, unless removed. */
export const shareList = z.object({ shares: z.array(share.extend({ name: z.string().optional() })) })
export type ShareList = z.infer<typeof shareList>

/**
 * `POST /api/sessions/:id/snapshots` → 201 with a `Snapshot`: the current chat, for every signed-in
 * user with the link.
 */
export const newSnapshot = z.strictObject({
  /** Includes outputs and changes of calls. */
  outputs: z.boolean().default(false),
  expiresAt: epochMs.nullable().default(null),
})

export const snapshot = z.object({
  /** The secret part of its link: `/snapshots/:id`. */
  id: z.string(),
  sessionId,
  /** Number of its last event. */
  upTo: z.number().int().nonnegative(),
  outputs: z.boolean(),
  expiresAt: epochMs.nullable(),
  createdAt: epochMs,
})
export type Snapshot = z.infer<typeof snapshot>

/** `GET /api/sessions/:id/snapshots`. */
export const snapshotList = z.object({ snapshots: z.array(snapshot) })
export type SnapshotList = z.infer<typeof snapshotList>

/** Body of `_sandlot/shares`, by the chat's owner: → `ShareList`. */
export const sharesAsk = z.discriminatedUnion('do', [
  z.object({ do: z.literal('list') }),
  z.object({ do: z.literal('put'), share: newShare }),
  z.object({ do: z.literal('remove'), id: z.string().max(128) }),
])
export type SharesAsk = z.infer<typeof sharesAsk>

/** Body of `_sandlot/snapshots`, by the chat's owner: → `SnapshotList`. */
export const snapshotsAsk = z.discriminatedUnion('do', [
  z.object({ do: z.literal('list') }),
  z.object({ do: z.literal('make'), snapshot: newSnapshot }),
  z.object({ do: z.literal('remove'), id: z.string().max(128) }),
])
export type SnapshotsAsk = z.infer<typeof snapshotsAsk>

/** Characters of a comment. */
export const MAX_COMMENT_CHARS = 10_000

/** A comment for users; the model never reads it. `mentions`: ids of users who see the chat. */
export const newComment = z.strictObject({
  /** Chosen by the client: the same id is the same comment. */
  commentId: requestId,
  text: z.string().trim().min(1).max(MAX_COMMENT_CHARS),
  mentions: z.array(z.string().min(1).max(128)).max(50).default([]),
})
export type NewComment = z.infer<typeof newComment>
