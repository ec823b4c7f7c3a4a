/** OAuth scopes as a server sends them: joined by the SDK, and here without words that RFC 6749 does not allow. */
import { computeScopeUnion, isStrictScopeSuperset } from '@modelcontextprotocol/client'

/** RFC 6749, 3.3: no character that breaks a line or a quotation. */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]{1,200}$/
const MAX_SCOPES = 64

/** Each scope once, in the order of its first appearance; undefined when there is none. Drops what is no scope. */
export function joinScopes(...scopes: readonly (string | undefined)[]): string | undefined {
  const words = (computeScopeUnion(...scopes) ?? '').split(' ').filter((word) => SCOPE.test(word))
  return words.length === 0 ? undefined : words.slice(0, MAX_SCOPES).join(' ')
}

/** True when `granted` allows all of `wanted`. */
export function includesScopes(granted: string | undefined, wanted: string | undefined): boolean {
  return !isStrictScopeSuperset(joinScopes(wanted), granted)
}
