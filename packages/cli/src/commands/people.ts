import { REMOVAL_HELP, type Removal, account, removal, userList } from '@sandlot/shared/account/api'
import {
  type EffectiveSettings,
  type SettingSource,
  effectiveSettingsView,
  isEditableLimit,
} from '@sandlot/shared/account/agent-settings'
import { type Role, role } from '@sandlot/shared/account/role'
import { z } from 'zod'
import { childEnvironment } from '../processes/child-env.ts'
import type { Command, Context } from '../context.ts'
import { noDeployment, requireDeployment } from '../deployment/deployment.ts'
import { programArguments } from '../programs/find-program.ts'
import { run } from '../programs/run.ts'
import { confirmed } from '../programs/sandbox-admin.ts'
import { StepError } from '../steps.ts'

/** Printed by the service's people-admin. */
const answer = z.discriminatedUnion('did', [
  userList.extend({ did: z.literal('list') }),
  z.object({ did: z.literal('password'), person: account, password: z.string() }),
  z.object({ did: z.literal('remove'), removal }),
  z.object({ did: z.literal('role'), person: account }),
  z.object({
    did: z.literal('show'),
    person: account,
    teams: z.array(z.string()),
    effective: effectiveSettingsView,
  }),
  z.object({
    did: z.literal('nothing'),
    reason: z.enum(['no_deployment', 'running', 'not_running', 'no_such_person', 'refused', 'other_version']),
    message: z.string(),
  }),
])
/** Its exit code when nothing was changed; the answer has the reason. */
const NOTHING_CHANGED = 3

const ROLE_NAMES: Record<Role, string> = { admin: 'an administrator', member: 'a member', guest: 'a guest' }
const ROLE_WORDS: Record<Role, string> = { admin: '  (administrator)', member: '', guest: '  (guest)' }

const USAGE = [
  'Usage: ./sandlot people list [--json]',
  '       ./sandlot people show <address or id> [--json]',
  '       ./sandlot people role <address or id> admin|member|guest',
  '       ./sandlot people password <address or id>',
  '       ./sandlot people remove <address or id> --keep|--purge [--yes]',
]

/** Changes accounts without a sign-in, also for an operator who is locked out. */
export const people: Command = async (context) => {
  const { args, config, print } = context
  const [act = '', who = '', third = ''] = args
  const data = args.includes('--purge') ? 'purge' : 'keep'
  const chosen = args.includes('--purge') !== args.includes('--keep')
  const named = who !== '' && !who.startsWith('--')
  const whole =
    act === 'show' ||
    act === 'password' ||
    (act === 'remove' && chosen) ||
    (act === 'role' && role.safeParse(third).success)
  if (act !== 'list' && !(named && whole)) {
    for (const line of USAGE) print(line)
    return 2
  }
  requireDeployment(config)
  if (act === 'remove') {
    const files = data === 'purge' ? 'delete their files and chats for good' : 'keep their files and chats'
    const question = `Remove the account of ${who}, and ${files}?`
    if (!(await confirmed(question, args, 'This removes an account'))) {
      print('Nothing was changed.')
      return 1
    }
  }
  const more = act === 'list' ? [] : act === 'remove' ? [who, data] : act === 'role' ? [who, third] : [who]
  const printed = await peopleAdmin([act, ...more], context)
  // Computed for `--json` too, which must also fail when there is no list.
  const lines = resultLines(printed)
  if ((act === 'list' || act === 'show') && args.includes('--json')) print(printed.trim())
  else for (const line of lines) print(line)
  return 0
}

async function peopleAdmin(args: string[], { config }: Context): Promise<string> {
  const program = programArguments(config, 'service', 'people/people-admin')
  return run(process.execPath, [...program, ...args], {
    cwd: config.root,
    environment: childEnvironment('service', config.environment),
    // No log: its stdout may hold a password.
    fix: 'Run the same command again; it either makes the whole change or none.',
    alsoGood: [NOTHING_CHANGED],
  })
}

/**
 * Lines for the terminal, from the one line that people-admin printed.
 * @throws StepError when nothing was changed, with the next step.
 */
export function resultLines(printed: string): string[] {
  const said = answer.parse(JSON.parse(printed))
  switch (said.did) {
    case 'list':
      return [
        ...said.users.map(({ id, name, email, role: held }) => `${id}  ${email}  ${name}${ROLE_WORDS[held]}`),
        ...said.removed.map(
          ({ id, name, email, ...removed }) => `${id}  ${email}  ${name}  (removed, ${howFar(removed)})`,
        ),
        ...said.removed.flatMap(({ name, problem }) =>
          problem === null ? [] : ['', `${name} is not completely removed yet: ${problem}`, REMOVAL_HELP],
        ),
      ]
    case 'password':
      return [
        `The new password of ${said.person.name} (${said.person.email}) is: ${said.password}`,
        'It is shown only once. They are signed out everywhere, and can change it in Settings → Sign-in & security.',
      ]
    case 'remove':
      return [
        `${said.removal.name} (${said.removal.email}) can no longer sign in.`,
        said.removal.done
          ? 'They were already removed. Their files and chats are kept.'
          : `At the next start of Sandlot their prompts end, and their sandbox${said.removal.data === 'purge' ? ', files and chats are' : ' is'} removed.`,
      ]
    case 'role':
      return [`${said.person.name} (${said.person.email}) is now ${ROLE_NAMES[said.person.role]}.`]
    case 'show':
      return [
        `${said.person.name} (${said.person.email}), ${ROLE_NAMES[said.person.role]}${said.teams.length === 0 ? '' : `, in ${said.teams.join(', ')}`}`,
        '',
        ...settingsTable(said.effective),
      ]
    case 'nothing':
      throw nothingDone(said)
  }
}

/** One line per setting: its effective value and its source. */
function settingsTable(effective: EffectiveSettings): string[] {
  const { modeCeiling, tools, mcpServers, ownServers, models, network, limits, instructions } = effective
  const list = (names: readonly string[]): string => names.join(', ') || 'none'
  const yes = (value: boolean): string => (value ? 'yes' : 'no')
  const rows: [string, string, SettingSource][] = [
    ['highest mode', modeCeiling.value, modeCeiling.from],
    ['tools', tools.all.value ? 'all' : 'none', tools.all.from],
    ...Object.entries(tools.single).map(([id, { value, from }]): [string, string, SettingSource] => [
      `  ${id}`,
      yes(value),
      from,
    ]),
    ['MCP servers', list(mcpServers.value), mcpServers.from],
    ['  of their own', ownServers.value, ownServers.from],
    ['models', list(models.value), models.from],
    ['network', network.mode.value, network.mode.from],
    ['  hosts', list(network.hosts.value), network.hosts.from],
    ['  may ask for hosts', yes(network.ask.value), network.ask.from],
    ...Object.entries(limits)
      .filter(([name, { value }]) => isEditableLimit(name) || value > 0)
      .map(([name, { value, from }]): [string, string, SettingSource] => [
        `limit ${name}`,
        value === 0 ? 'none' : String(value),
        from,
      ]),
    ...instructions.map(({ value, from }): [string, string, SettingSource] => [
      'instructions',
      `${value.length} characters`,
      from,
    ]),
  ]
  const cells = [
    ['SETTING', 'VALUE', 'FROM'],
    ...rows.map(([name, value, from]) => [name, value, sourceWords(from)]),
  ]
  const [first = 0, second = 0] = [0, 1].map((at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)))
  return cells.map(
    ([name = '', value = '', from = '']) => `${name.padEnd(first)}  ${value.padEnd(second)}  ${from}`,
  )
}

function sourceWords(from: SettingSource): string {
  if (from.kind !== 'teams') return from.kind === 'person' ? 'the person' : 'the deployment'
  const { teams } = from
  return `${teams.length === 1 ? 'team' : 'teams'} ${teams.map(({ name }) => name).join(', ')}`
}

function howFar({ data, done, problem }: Pick<Removal, 'data' | 'done' | 'problem'>): string {
  if (done) return 'files and chats kept'
  const what = data === 'purge' ? 'deleting files and chats' : 'in progress'
  return problem === null ? what : `${what}; see below`
}

function nothingDone({ reason, message }: Extract<z.infer<typeof answer>, { did: 'nothing' }>): StepError {
  switch (reason) {
    case 'no_deployment':
      return noDeployment(message)
    case 'running':
      return new StepError(
        'Sandlot is running; nothing was changed.',
        'Run ./sandlot down, then this again. While it runs, administrators manage accounts in Settings → People.',
      )
    case 'not_running':
      return new StepError(
        'Sandlot is not running; its agent computes the settings of a user.',
        'Run ./sandlot up, then this again.',
      )
    case 'no_such_person':
      return new StepError(
        `No user has the address or ID ${message}.`,
        './sandlot people list shows all users.',
      )
    case 'other_version':
      return new StepError(message, 'Nothing was changed. ./sandlot up starts Sandlot.')
    case 'refused':
      return new StepError(message, 'Nothing was changed. ./sandlot people list shows all users.')
  }
}
