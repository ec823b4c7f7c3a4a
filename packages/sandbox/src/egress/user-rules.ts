import type { Authority } from './host.ts'
import type { EgressPolicy } from './policy.ts'
import { EgressRefused } from './refusal.ts'
import { readRules, type Rules } from './rules.ts'

/** What a rule of a user says of a host and port. */
interface HostRuling {
  /** `ask`: needs an approval, and there is none. */
  decision: 'allow' | 'ask' | 'deny'
  /** For the audit record. */
  ruleId: string
}

/**
 * One user's rules as they stood when they were asked for. Undefined: they say nothing of it, the
 * list decides.
 */
export type HostRules = (authority: Authority) => HostRuling | undefined

export interface UserRulesOptions {
  /** Which users have egress at all. Default: all. */
  isOpenTo?: (userId: string) => boolean
  /**
   * The list that counts for this user in place of `allow`; undefined: `allow`. Entries that cannot
   * be throw.
   */
  allowFor?: (userId: string) => readonly string[] | undefined
  /**
   * This user's own rules. They win over every list, in both directions; addresses are checked all
   * the same: what is not on the public internet stays out of reach. Asked at every connection, and
   * again while any is open. When it rejects, nothing is reached.
   */
  rulesOf?: (userId: string) => Promise<HostRules>
}

/** What decides for one user, as everything stands now. */
export interface UserPolicy {
  /**
   * Throws `EgressRefused` `denied`, `not_allowed` or `port`. Answers the rule that let it through,
   * if it was one.
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
