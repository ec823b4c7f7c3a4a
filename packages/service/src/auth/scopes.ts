/** Which scope an API key needs for a route. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { KeyScope } from '@sandlot/shared/account/sign-in-api'

const READING = new Set(['GET', 'HEAD', 'OPTIONS'])
const FILES = /^\/api\/(files|images)(\/|$)/
const EXEC = /^\/api\/(exec|ports|terminals|sandbox)(\/|$)/

/** Further requirements of an administrators' route are checked there (`requireAdministrator`). */
export function scopeOf(method: string, path: string): KeyScope {
  if (FILES.test(path)) return 'files'
  if (EXEC.test(path)) return 'exec'
  return READING.has(method) ? 'read' : 'chat'
}

/** Throws `forbidden`, naming the scope that is missing. */
export function requireScope(scopes: readonly KeyScope[], needed: KeyScope): void {
  if (scopes.includes(needed)) return
  throw new SandlotError(
    'forbidden',
    `This API key has no scope “${needed}”, which this needs. It has: ${scopes.join(', ') || 'none'}.`,
  )
}
