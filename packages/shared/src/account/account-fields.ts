/**
 * Validation of an account’s name and address: the same for users, administrators and providers.
 */
import { z } from 'zod'

export const MAX_NAME_CHARS = 100
const MAX_EMAIL_CHARS = 254

/** Except joiners, which some scripts and emoji need. */
const INVISIBLE =
  /(?!\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
const VISIBLE = /[\p{L}\p{N}\p{P}\p{S}]/u

/** Removes invisible characters, which make two names look the same or reverse text. */
export function visibleName(name: string): string {
  return name.toWellFormed().replaceAll(/\s+/gu, ' ').replaceAll(INVISIBLE, '').trim()
}

export const personName = z
  .string()
  .overwrite(visibleName)
  .regex(VISIBLE, 'must not be empty')
  .max(MAX_NAME_CHARS)

export const emailAddress = z.email().max(MAX_EMAIL_CHARS)
