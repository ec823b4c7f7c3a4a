/** OAuth scopes: what a token allows, as words between spaces. They come from strangers. */

/** What RFC 6749 lets a scope consist of; nothing of it can break a line or a quotation. */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]{1,200}$/
const MAX_SCOPES = 64

/** All of them, each once, in the order of their first appearance; undefined when there are none. What is no scope is left out. */
export function joinScopes(...scopes: readonly (string | undefined)[]): string | undefined {
  const words = scopes.flatMap((text) => (text ?? '').split(/\s+/)).filter((word) => SCOPE.test(word))
  const all = [...new Set(words)].slice(0, MAX_SCOPES)
  return all.length === 0 ? undefined : all.join(' ')
}

/** True when `granted` allows all of `wanted`. */
export function includesScopes(granted: string | undefined, wanted: string | undefined): boolean {
  const has = new Set((granted ?? '').split(/\s+/))
  return (joinScopes(wanted) ?? '').split(' ').every((word) => word === '' || has.has(word))
}
