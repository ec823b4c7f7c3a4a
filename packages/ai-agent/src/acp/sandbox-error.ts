/** Failures of a sandbox that a person can act on, as our own errors. */
import { SandboxError, type SandboxErrorCode } from '@sandlot/sandbox/errors'
import { type ErrorCode, SandlotError } from '@sandlot/shared/base/errors'

const CODE_OF: Partial<Record<SandboxErrorCode, ErrorCode>> = {
  not_found: 'not_found',
  invalid_arguments: 'bad_request',
  path_outside: 'bad_request',
  path_changed: 'conflict',
  not_regular: 'bad_request',
  exists: 'conflict',
  workspace_missing: 'conflict',
  permission: 'forbidden',
  too_large: 'too_large',
  disk_quota: 'too_large',
  host_disk_low: 'too_large',
  fenced: 'not_owner',
}

/** Throws a `SandlotError` in place of a `SandboxError`. */
export async function withSandboxErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    throw new SandlotError(CODE_OF[error.code] ?? 'not_ready', error.message.replace(/\.?$/, '.'), {
      cause: error,
    })
  }
}
