/** Check of the scopes of an API key. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { KeyScope } from '@sandlot/shared/account/sign-in-api'

/** Throws `forbidden`, naming the scope that is missing. */
export function requireScope(scopes: readonly KeyScope[], needed: KeyScope): void {
  if (scopes.includes(needed)) return
  throw new SandlotError(
    'forbidden',
    `This API key has no scope “${needed}”, which this needs. It has: ${scopes.join(', ') || 'none'}.`,
  )
}
