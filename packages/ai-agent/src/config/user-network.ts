/** What one person's sandbox may reach: everybody's settings, and what an administrator has set for this person or their team. */
import type { UserRulesOptions } from '@sandlot/sandbox/egress/user-rules'
import type { NetworkConfig } from './network.ts'
import { hostRules } from '../approval/hosts.ts'
import type { RuleBook } from '../approval/rule-book.ts'
import type { PersonalSettings } from './user-settings.ts'

export interface UserNetwork {
  /** Whether the agent may ask this user for hosts beside the list. */
  mayAsk(userId: string): boolean
  /** Whether it may ask anybody. */
  readonly asksAnybody: boolean
  /** For the way out of the sandboxes. */
  readonly options: UserRulesOptions
}

/** `asks`: the deployment's `rules.hosts` is `ask`. */
export function userNetwork(
  network: NetworkConfig,
  asks: boolean,
  personal: PersonalSettings,
  rules: RuleBook,
): UserNetwork {
  const everybody = network !== 'none' && network.everybody
  const isOpenTo = (userId: string): boolean => {
    const mode = personal.of(userId).network?.mode
    return mode === undefined ? everybody : mode === 'egress'
  }
  const mayAsk = (userId: string): boolean => isOpenTo(userId) && (personal.of(userId).network?.ask ?? asks)
  return {
    mayAsk,
    asksAnybody: network !== 'none' && (asks || personal.all.some((one) => one.network?.ask === true)),
    options: {
      isOpenTo,
      allowFor: (userId) => personal.of(userId).network?.hosts,
      rulesOf: async (userId) => hostRules(await rules.of(userId), mayAsk(userId)),
    },
  }
}
