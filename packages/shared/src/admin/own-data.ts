/** All that Sandlot keeps of oneself: `GET /api/export`, a zip file, and the end of it. */
import { z } from 'zod'
import { MAX_PASSWORD_CHARS } from '../account/api.ts'

/**
 * `POST /api/account/delete` → 204, signed out. Files, chats, secrets and all else goes for good;
 * what stays is the line of the audit log.
 */
export const deleteAccountRequest = z.strictObject({
  /** One's own address, typed again. */
  email: z.string().max(254),
  /** Where the account has one. */
  password: z.string().max(MAX_PASSWORD_CHARS).optional(),
})
