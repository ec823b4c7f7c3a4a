/**
 * What a person's rules say of a host, for the way out of their sandbox: the same rules that judge calls, in the same order
 * (deny > ask > allow). Here nobody can be asked, so what asks keeps out, until somebody was asked and said yes once.
 */
import type { HostRules } from '@sandlot/sandbox/egress/user-rules'
import type { Rule } from '@sandlot/shared/rules'
import { hostBlock, matchesHost } from './hosts.ts'

/**
 * `rules`: all of the person and of the deployment that hold now. `mayAsk`: the agent may ask for hosts beside the list;
 * otherwise rules only take away.
 */
export function hostRules(rules: readonly Rule[], mayAsk: boolean): HostRules {
  return ({ host, port }) => {
    const about = rules.filter(({ match }) => 'host' in match && matchesHost(match.host, host, port))
    const first = (effect: Rule['effect']): Rule | undefined => about.find((rule) => rule.effect === effect)
    const denying = first('deny')
    if (denying !== undefined) return { decision: 'deny', ruleId: denying.id }
    // Without questions the operator's list is the most that there is. A name that is not public is its business alone.
    if (!mayAsk || hostBlock(host) !== undefined) return undefined
    const once = about.find(({ effect, endsWith }) => effect === 'allow' && endsWith?.promptId !== undefined)
    const asking = once === undefined ? first('ask') : undefined
    if (asking !== undefined) return { decision: 'ask', ruleId: asking.id }
    const allowing = once ?? first('allow')
    return allowing === undefined ? undefined : { decision: 'allow', ruleId: allowing.id }
  }
}
