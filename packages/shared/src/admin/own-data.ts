/** A user's own data: `GET /api/export`, a zip file, and its deletion. */
import { z } from 'zod'
import { MAX_PASSWORD_CHARS } from '../account/api.ts'

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
