/** The token that services present to agents on other hosts: both read it. */
import { z } from 'zod'

/** A bearer token, so without spaces. */
export const agentToken = z
  .string()
  .regex(/^\S{16,}$/, 'must have at least 16 characters, none of them a space')
  .optional()
