/** Which pages may use the service with a person's cookie. */

/** `origin` and `host` are the headers of one request. */
export type OriginRule = (origin: string, host: string | undefined) => boolean

/**
 * The page's own server, the public address, and what the operator allows. `null` and everything
 * malformed is foreign.
 */
export function originRule(publicUrl: string | undefined, allowed: readonly string[]): OriginRule {
  const known = new Set([...allowed, ...(publicUrl === undefined ? [] : [publicUrl])])
  return function isOurs(origin, host) {
    if (known.has(origin)) return true
    if (host === undefined || !URL.canParse(origin)) return false
    const url = new URL(origin)
    return (url.protocol === 'http:' || url.protocol === 'https:') && url.host === host.toLowerCase()
  }
}
