import type { Authority } from './host.ts'
import type { EgressPolicy } from './policy.ts'
import { EgressRefused } from './refusal.ts'
import { readRules, type Rules } from './rules.ts'

/** Decision of a user's rule about a host and port. */
interface HostRuling {
  /** `ask`: requires an approval that is missing. */
  decision: 'allow' | 'ask' | 'deny'
  /** For the audit record. */
  ruleId: string
}

/** Snapshot of one user's rules. Undefined: no rule applies, the list decides. */
export type HostRules = (authority: Authority) => HostRuling | undefined

export interface UserRulesOptions {
  /** Default: all users have egress. */
  isOpenTo?: (userId: string) => boolean
  /** This user's list in place of `allow`; undefined: `allow`. Invalid entries throw. */
  allowFor?: (userId: string) => readonly string[] | undefined
  /**
   * This user's own rules. They override every list in both directions; addresses are still
   * checked: non-public ones stay unreachable. Called at every connection, and at intervals while
   * one is open. When it rejects, nothing is reachable.
   */
  rulesOf?: (userId: string) => Promise<HostRules>
}

/** Current decision for one user. */
export interface UserPolicy {
  /**
   * Throws `EgressRefused` `denied`, `not_allowed` or `port`. Returns the rule that allowed it, if
   * one did.
   */
  decide(): Promise<(authority: Authority) => string | undefined>
}

const SAYS_NOTHING: HostRules = () => undefined

export function createUserPolicy(
  userId: string,
  shared: Pick<EgressPolicy, 'check'>,
  options: UserRulesOptions,
): UserPolicy {
  let own: { entries: readonly string[]; rules: Rules } | undefined
  const ownList = (): Rules | undefined => {
    const entries = options.allowFor?.(userId)
    if (entries === undefined) return undefined
    if (own?.entries !== entries) own = { entries, rules: readRules(entries) }
    return own.rules
  }
  return {
    async decide() {
      const rules = (await options.rulesOf?.(userId)) ?? SAYS_NOTHING
      return (authority) => {
        const { host, port } = authority
        if (options.isOpenTo?.(userId) === false)
          throw new EgressRefused('not_allowed', 'this sandbox may not reach the network.')
        const ruling = rules(authority)
        if (ruling?.decision === 'allow') return ruling.ruleId
        if (ruling !== undefined) {
          const words =
            ruling.decision === 'deny'
              ? `a rule denies ${host}:${port}.`
              : `a rule asks before ${host}:${port} may be reached, and there is no approval.`
          const reason = ruling.decision === 'deny' ? 'denied' : 'not_allowed'
          throw new EgressRefused(reason, words, { ruleId: ruling.ruleId })
        }
        shared.check(authority, ownList())
        return undefined
      }
    },
  }
}
