/** Network access of the sandboxes, from the settings. */
import { messageOf } from '@sandlot/shared/base/errors'
import { type EgressPolicyOptions, createPolicy } from '@sandlot/sandbox/egress/policy'
import { type Rule, isAboutHost } from '@sandlot/shared/chat/rules'
import { z } from 'zod'
import type { UserRulesOptions } from '@sandlot/sandbox/egress/user-rules'
import { hostRules } from '../approval/hosts.ts'
import type { RuleRegistry } from '../approval/rule-registry.ts'
import type { PersonalSettings } from '../people/settings-registry.ts'

export interface NetworkConfig {
  egress: Required<Pick<EgressPolicyOptions, 'allow' | 'credentials' | 'budgets'>>
  /** False: only those for whom an administrator has set it. */
  everybody: boolean
}

/** Settings as in the environment. */
interface NetworkSettings {
  SANDLOT_SANDBOX_NETWORK: 'none' | 'egress'
  SANDLOT_EGRESS_ALLOW?: string | undefined
  SANDLOT_EGRESS_CREDENTIALS?: string | undefined
  SANDLOT_EGRESS_MB_PER_HOUR?: number | undefined
}

const MiB = 1024 * 1024

const credentials = z.record(
  z.string(),
  z.strictObject({ header: z.string().optional(), value: z.string().min(1) }),
)

/**
 * Adds what is wrong to `problems`, a sentence for each. Never quotes a credential. Read also where
 * not everybody has a network: administrators give it to single people and teams at any time.
 */
export function readNetwork(read: NetworkSettings, problems: string[]): NetworkConfig {
  const { SANDLOT_EGRESS_MB_PER_HOUR: megabytes } = read
  const egress = {
    allow: (read.SANDLOT_EGRESS_ALLOW ?? '')
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ''),
    credentials: readCredentials(read.SANDLOT_EGRESS_CREDENTIALS, problems),
    budgets: { bytes: megabytes === undefined ? undefined : megabytes * MiB },
  }
  check('SANDLOT_EGRESS_ALLOW', { allow: egress.allow }, problems)
  check('SANDLOT_EGRESS_CREDENTIALS', { allow: [], credentials: egress.credentials }, problems)
  return { egress, everybody: read.SANDLOT_SANDBOX_NETWORK === 'egress' }
}

function check(name: string, options: EgressPolicyOptions, problems: string[]): void {
  try {
    createPolicy(options)
  } catch (error) {
    problems.push(`${name}: ${messageOf(error)}`)
  }
}

function readCredentials(
  text: string | undefined,
  problems: string[],
): NonNullable<EgressPolicyOptions['credentials']> {
  if (text === undefined) return {}
  try {
    const read = credentials.parse(JSON.parse(text))
    return Object.fromEntries(
      Object.entries(read).map(([host, { header, value }]) => [host, { value, header }]),
    )
  } catch {
    // The parser's message would quote what it could not read.
    problems.push(
      'SANDLOT_EGRESS_CREDENTIALS: it must be JSON like {"registry.example.org": {"value": "Bearer …"}}',
    )
    return {}
  }
}

// ── The network of one person ───────────────────────────────────────────────────────────────────

interface UserNetwork {
  /** True if the agent may ask this user for hosts outside of the list. */
  mayAsk(userId: string): boolean
  /** True if commands of this user reach any host, with these rules of theirs. */
  reachesAny(userId: string, rules: readonly Rule[]): boolean
  /** For the way out of the sandboxes. */
  readonly options: UserRulesOptions
}

/** `asks`: the deployment's `rules.hosts` is `ask`. */
export function userNetwork(
  network: NetworkConfig,
  asks: boolean,
  personal: PersonalSettings,
  rules: RuleRegistry,
): UserNetwork {
  const { everybody } = network
  const isOpenTo = (userId: string): boolean => {
    const mode = personal.of(userId).network?.mode
    return mode === undefined ? everybody : mode === 'egress'
  }
  const mayAsk = (userId: string): boolean => isOpenTo(userId) && (personal.of(userId).network?.ask ?? asks)
  return {
    mayAsk,
    reachesAny: (userId, held) =>
      isOpenTo(userId) &&
      ((personal.of(userId).network?.hosts ?? network.egress.allow).length > 0 ||
        (mayAsk(userId) && held.some(({ effect, match }) => effect === 'allow' && isAboutHost(match)))),
    options: {
      isOpenTo,
      allowFor: (userId) => personal.of(userId).network?.hosts,
      rulesOf: async (userId) => hostRules(await rules.of(userId), mayAsk(userId)),
    },
  }
}
