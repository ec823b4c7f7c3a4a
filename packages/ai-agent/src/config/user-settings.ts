/**
 * The sections `users` and `teams` of the configuration file: what an administrator sets for single
 * people and for groups of them. It wins over everything else; what is said of the person over what
 * is said of their team, one setting at a time, so that a word about one thing never gives back
 * another.
 */
import { messageOf } from '@sandlot/shared/errors'
import { type Mode, MODES, mode } from '@sandlot/shared/mode'
import { readRules } from '@sandlot/sandbox/egress/rules'
import { z } from 'zod'
import { byPerson, personKey } from '../people/person-key.ts'

const host = z.string().superRefine((entry, ctx) => {
  try {
    readRules([entry])
  } catch (error) {
    ctx.addIssue({ code: 'custom', message: messageOf(error) })
  }
})

const network = z
  .strictObject({
    /** Default: as SANDLOT_SANDBOX_NETWORK says. */
    mode: z.enum(['none', 'egress']).optional(),
    /** In place of SANDLOT_EGRESS_ALLOW, in the same words. */
    hosts: z.array(host).max(1_000).optional(),
    /** Whether the agent may ask them for more hosts. Default: as `rules.hosts` says. */
    ask: z.boolean().optional(),
  })
  .refine(
    ({ mode: set, hosts, ask }) => set !== 'none' || (hosts === undefined && ask !== true),
    'hosts and ask say nothing with "mode": "none"; remove them, or write "mode": "egress"',
  )

const settings = {
  /** False: none. Or by tool id: false takes one away, true gives one that others do not have. */
  tools: z.union([z.boolean(), z.record(z.string().min(1).max(256), z.boolean())]).optional(),
  /** The highest mode they may choose. */
  modeCeiling: mode.optional(),
  /** What their sandbox may reach. */
  network: network.optional(),
}
const userSettings = z.strictObject(settings)
export type UserSettings = z.output<typeof userSettings>

/** By user id or e-mail address. */
export const usersSection = byPerson(userSettings)
type UsersSection = z.output<typeof usersSection>

/**
 * By a name of the operator's own. No person is in two; two names of one person are found by
 * `twoTeamsProblem`.
 */
export const teamsSection = z
  .record(z.string().min(1).max(100), z.strictObject({ members: z.array(personKey).min(1), ...settings }))
  .superRefine((teams, ctx) => {
    const where = new Map<string, string>()
    for (const [name, { members }] of Object.entries(teams))
      for (const member of new Set(members)) {
        const other = where.get(member)
        if (other !== undefined)
          ctx.addIssue({
            code: 'custom',
            path: [name, 'members'],
            message: `${member} is in ${other} already; a person is in one team`,
          })
        where.set(member, name)
      }
  })
type TeamsSection = z.output<typeof teamsSection>

/** What is set about one person's tools, by everything that speaks of them together. */
interface OwnTools {
  /**
   * False: they have none but those of `single`; true: those that everybody would have. Undefined:
   * as everybody.
   */
  all?: boolean
  /** By tool id; wins over `all`. */
  single: ReadonlyMap<string, boolean>
}

type OwnSettings = Omit<UserSettings, 'tools'> & { tools?: OwnTools }

/** What is set for single people, looked up by user id. */
export interface PersonalSettings {
  of(userId: string): OwnSettings
  /** The settings of all users that have any. */
  readonly all: readonly UserSettings[]
}

/** `emailOf`: how sign-in knows a user id. */
export function personalSettings(
  { users = {}, teams = {} }: { users?: UsersSection | undefined; teams?: TeamsSection | undefined },
  emailOf: (userId: string) => string | undefined = () => undefined,
): PersonalSettings {
  const all = [...Object.values(teams), ...Object.values(users)]
  return {
    all,
    of(userId) {
      // The last wins: team, then person; of each what stands under the address, then what stands
      // under the id.
      const keys = [emailOf(userId), userId].filter((key) => key !== undefined)
      const inTeams = keys.map((key) => Object.values(teams).find(({ members }) => members.includes(key)))
      const own = keys.map((key) => (Object.hasOwn(users, key) ? users[key] : undefined))
      const said = [...inTeams, ...own].filter((one) => one !== undefined)
      const { modeCeiling } = Object.assign({}, ...said) as UserSettings
      const reach = Object.assign({}, ...said.map((one) => one.network)) as UserSettings['network']
      const tools = said.reduce<OwnTools | undefined>(
        (before, one) => withTools(before, one.tools),
        undefined,
      )
      return {
        tools,
        modeCeiling,
        ...(Object.keys(reach ?? {}).length === 0 ? {} : { network: reach }),
      }
    },
  }
}

/**
 * A word about all tools leaves standing what was taken away singly: only a word about that tool
 * gives it back.
 */
function withTools(before: OwnTools | undefined, said: UserSettings['tools']): OwnTools | undefined {
  if (said === undefined) return before
  const known = [...(before?.single ?? [])]
  if (typeof said === 'boolean')
    return { all: said, single: new Map(said ? known : known.filter(([, given]) => !given)) }
  return { ...before, single: new Map([...known, ...Object.entries(said)]) }
}

/**
 * The lower of what the service says and what the administrator has set here. Undefined: no
 * ceiling.
 */
export function lowerMode(set: Mode | undefined, said: Mode | undefined): Mode | undefined {
  if (set === undefined || said === undefined) return set ?? said
  return MODES.indexOf(set) < MODES.indexOf(said) ? set : said
}

/**
 * Finds a person who is in one team by user id and in another by e-mail address. The file alone
 * does not show it: addresses are known from sign-in only. Returns a sentence with what to write;
 * undefined when the person is in one team, or in none.
 */
export function twoTeamsProblem(
  teams: TeamsSection | undefined,
  userId: string,
  email: string | undefined,
): string | undefined {
  const teamOf = (key: string | undefined): string | undefined =>
    Object.entries(teams ?? {}).find(([, { members }]) => key !== undefined && members.includes(key))?.[0]
  const [byId, byAddress] = [teamOf(userId), teamOf(email)]
  if (byId === undefined || byAddress === undefined || byId === byAddress) return undefined
  return `teams: ${userId} in ${byId} and ${email} in ${byAddress} are the same person; a person is in one team, so remove one of the two`
}
