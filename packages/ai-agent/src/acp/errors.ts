/**
 * Anything thrown → a JSON-RPC error with a text that is safe to show and, in its data, our stable
 * code.
 */
import { RequestError } from '@agentclientprotocol/sdk'
import { NotOwnerError } from '../replicas/ownership.ts'
import { type ErrorCode, SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import type { z } from 'zod'
import { toUserError } from '@sandlot/storage/plain-words'
import { isNotOwner } from '@sandlot/storage/storage-error'

const RPC_CODE: Partial<Record<ErrorCode, number>> = {
  bad_request: -32_602,
  invalid_frame: -32_602,
  too_large: -32_602,
  not_found: -32_002,
  unauthenticated: -32_000,
  internal: -32_603,
  not_ready: -32_603,
}

/** `report` gets what is a bug; that another agent has the session now is none. */
export function toRequestError(thrown: unknown, report: (thrown: unknown) => void): RequestError {
  if (thrown instanceof RequestError) return thrown
  if (!(thrown instanceof SandlotError || isNotOwner(thrown))) report(thrown)
  const { code, message } = toErrorBody(toUserError(thrown))
  const where = thrown instanceof NotOwnerError ? { replica: thrown.replica } : {}
  return new RequestError(RPC_CODE[code] ?? -32_600, message, { code, ...where })
}

/** `value` by `schema`. Throws `bad_request` that names the first problem. */
export function parseParams<S extends z.ZodType>(schema: S, value: unknown, what: string): z.infer<S> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const where = issue === undefined || issue.path.length === 0 ? '' : ` at ${issue.path.join('.')}`
  throw new SandlotError('bad_request', `${what}${where}: ${issue?.message ?? 'not valid'}.`)
}
