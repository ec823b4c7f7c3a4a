/** What the rules say about a host that a client's server is at. Nobody can be asked about a connection, so asking is a no. */
import { type Rule, describeMatch } from '@sandlot/shared/rules'
import { matchesHost } from '../approval/hosts.ts'

/** Why this host may not be reached, by the rules that hold now. */
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
