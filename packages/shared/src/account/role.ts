/** Roles of users. */
import { z } from 'zod'

/**
 * `admin`: everything, also for others. `member`: chats with a sandbox of their own. `guest`: takes
 * part in chats shared with them; has no chats and no sandbox of their own.
 */
export const role = z.enum(['admin', 'member', 'guest'])
export type Role = z.infer<typeof role>
