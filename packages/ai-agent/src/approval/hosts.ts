/** Hosts of rules and requests. */
import { readAuthority, readHost } from '@sandlot/sandbox/egress/host'

/** Names that never lead to the public internet. */
const NOT_PUBLIC = /(^|\.)(localhost|local|internal|home\.arpa|invalid|test|onion)$/

/** Why nobody may reach it, whatever the rules say; undefined when rules decide. */
export function hostBlock(host: string): string | undefined {
  const read = readHost(host)
  if ('problem' in read) return read.problem
  return NOT_PUBLIC.test(read.host)
    ? 'is not a host of the public internet; only whoever runs Sandlot can open such a way (SANDLOT_EGRESS_ALLOW)'
    : undefined
}

/** Why `pattern` cannot stand in a rule. */
export function hostPatternProblem(pattern: string): string | undefined {
  const read = readAuthority(pattern.replace(/^\*\./, ''), 0)
  return 'problem' in read ? read.problem : undefined
}

/** `example.org`, `*.example.org` (not the name itself), with `:port` or for any port. */
export function matchesHost(pattern: string, host: string, port: number | undefined): boolean {
  const below = pattern.startsWith('*.')
  const wanted = readAuthority(below ? pattern.slice(2) : pattern, 0)
  const asked = readHost(host)
  if ('problem' in wanted || 'problem' in asked) return false
  if (wanted.port !== 0 && wanted.port !== port) return false
  return below ? asked.host.endsWith(`.${wanted.host}`) : asked.host === wanted.host
}
