/** Hosts of rules and requests, and what a person's rules say about a connection to one. */
import { readAuthority, readHost } from '@sandlot/sandbox/egress/host'
import type { HostRules } from '@sandlot/sandbox/egress/user-rules'
import { type Rule, describeMatch } from '@sandlot/shared/chat/rules'

/** Names that never lead to the public internet. */
const NOT_PUBLIC = /(^|\.)(localhost|local|internal|home\.arpa|invalid|test|onion)$/

/** Why the host is blocked whatever the rules say; undefined when rules decide. */
export function hostBlock(host: string): string | undefined {
  const read = readHost(host)
  if ('problem' in read) return read.problem
  return NOT_PUBLIC.test(read.host)
    ? 'is not a host of the public internet; only the operator of Sandlot can allow it (SANDLOT_EGRESS_ALLOW)'
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

/**
 * Judges the outgoing connections of a person's sandbox by the rules that judge calls, in the same
 * order (deny > ask > allow). A connection cannot ask, so `ask` refuses it until an approval
 * allowed the host once. `rules`: all of the person and of the deployment that hold now. `mayAsk`:
 * the agent may ask for hosts beside the operator's list; otherwise rules only take away.
 */
export function hostRules(rules: readonly Rule[], mayAsk: boolean): HostRules {
  return ({ host, port }) => {
    const about = rules.filter(({ match }) => 'host' in match && matchesHost(match.host, host, port))
    const first = (effect: Rule['effect']): Rule | undefined => about.find((rule) => rule.effect === effect)
    const denying = first('deny')
    if (denying !== undefined) return { decision: 'deny', ruleId: denying.id }
    // Without questions the operator's list is the most that there is. A name that is not public is
    // its business alone.
    if (!mayAsk || hostBlock(host) !== undefined) return undefined
    const once = about.find(({ effect, endsWith }) => effect === 'allow' && endsWith?.promptId !== undefined)
    const asking = once === undefined ? first('ask') : undefined
    if (asking !== undefined) return { decision: 'ask', ruleId: asking.id }
    const allowing = once ?? first('allow')
    return allowing === undefined ? undefined : { decision: 'allow', ruleId: allowing.id }
  }
}

/**
 * Why an MCP server of a client may not be at this host, by the rules that hold now. A connection
 * cannot ask, so `ask` refuses it.
 */
export function hostRefusal(rules: readonly Rule[], host: string, port: number): string | undefined {
  for (const effect of ['deny', 'ask'] as const) {
    const rule = rules.find(
      ({ effect: does, match }) => does === effect && 'host' in match && matchesHost(match.host, host, port),
    )
    if (rule !== undefined) return `a rule ${DOES[effect]} ${describeMatch(rule.match)}`
  }
  return undefined
}

const DOES = { deny: 'denies', ask: 'asks about' }
