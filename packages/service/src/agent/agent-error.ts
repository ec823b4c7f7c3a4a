/** What the agent answers when it refuses, as one of our errors. */
import { RequestError } from '@agentclientprotocol/sdk'
import { rpcErrorData } from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import type { ErrorCode } from '@sandlot/shared/errors'

const CODE_OF: Record<number, ErrorCode> = {
  [-32_600]: 'bad_request',
  [-32_602]: 'bad_request',
  [-32_601]: 'not_implemented',
  [-32_002]: 'not_found',
}

const TEXT_OF: Partial<Record<ErrorCode, string>> = {
  bad_request: 'The agent did not accept this request.',
  not_implemented: 'This agent cannot do that.',
  not_found: 'There is no such chat.',
}

/** An error with our code in its data is shown as the agent wrote it; of others only the kind. */
export function toSandlotError(error: unknown): Error {
  if (!(error instanceof RequestError)) return error instanceof Error ? error : new Error(String(error))
  const data = rpcErrorData.safeParse(error.data)
  if (data.success) return new SandlotError(data.data.code, error.message, { cause: error })
  const code = CODE_OF[error.code]
  if (code === undefined) return error
  return new SandlotError(code, TEXT_OF[code] ?? 'The agent refused.', { cause: error })
}
