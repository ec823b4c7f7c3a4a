import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { REMOVAL_HELP, type Removal, account, removal, userList } from '@sandlot/shared/api'
import { z } from 'zod'
import { childEnvironment } from '../child-env.ts'
import type { Command, Context } from '../context.ts'
import { noDeployment, requireDeployment } from '../deployment.ts'
import { run } from '../run.ts'
import { confirmed } from '../sandbox-admin.ts'
import { StepError } from '../steps.ts'

/** What service's people-admin prints. */
const answer = z.discriminatedUnion('did', [
  userList.extend({ did: z.literal('list') }),
  z.object({ did: z.literal('password'), person: account, password: z.string() }),
  z.object({ did: z.literal('remove'), removal }),
  z.object({
    did: z.literal('nothing'),
    reason: z.enum(['no_deployment', 'running', 'no_such_person', 'refused', 'other_version']),
    message: z.string(),
  }),
])
/** Its exit code where nothing was changed; the answer has the reason. */
const NOTHING_CHANGED = 3

const USAGE = [
  'Usage: ./sandlot people list [--json]',
  '       ./sandlot people password <address or id>',
  '       ./sandlot people remove <address or id> --keep|--purge [--yes]',
]

/** Changes accounts without a sign-in, also for an operator who is locked out. */
export const people: Command = async (context) => {
  const { args, config, print } = context
  const [act = '', who = ''] = args
  const data = args.includes('--purge') ? 'purge' : 'keep'
  const chosen = args.includes('--purge') !== args.includes('--keep')
  const named = who !== '' && !who.startsWith('--')
  if (act !== 'list' && !(named && (act === 'password' || (act === 'remove' && chosen)))) {
    for (const line of USAGE) print(line)
    return 2
  }
  requireDeployment(config.data)
  if (act === 'remove') {
    const files = data === 'purge' ? 'delete their files and chats for good' : 'keep their files and chats'
    const question = `End the account of ${who}, and ${files}?`
    if (!(await confirmed(question, args, 'This ends an account'))) {
      print('Nothing was changed.')
      return 1
    }
  }
  const printed = await peopleAdmin(
    act === 'list' ? [act] : act === 'remove' ? [act, who, data] : [act, who],
    context,
  )
  // Computed in any case: where there is no list, the command fails also with `--json`.
  const lines = resultLines(printed)
  if (act === 'list' && args.includes('--json')) print(printed.trim())
  else for (const line of lines) print(line)
  return 0
}

async function peopleAdmin(args: string[], { config }: Context): Promise<string> {
  const program = join(config.root, 'packages', 'service', 'dist', 'people-admin.js')
  if (!existsSync(program))
    throw new StepError('Sandlot has not been built yet.', 'Run ./sandlot up once; it builds what is needed.')
  return run(process.execPath, [program, ...args], {
    cwd: config.root,
    environment: childEnvironment('service', config.environment),
    // No log: its stdout may hold a password, which is for the person at the terminal only.
    fix: 'Nothing is half done: run the same command again.',
    alsoGood: [NOTHING_CHANGED],
  })
}

/**
 * The result for a person, from the one line that people-admin printed.
 * @throws StepError where nothing was changed, with what to do about that.
 */
export function resultLines(printed: string): string[] {
  const said = answer.parse(JSON.parse(printed))
  switch (said.did) {
    case 'list':
      return [
        ...said.users.map(
          ({ id, name, email, role }) =>
            `${id}  ${email}  ${name}${role === 'admin' ? '  (administrator)' : ''}`,
        ),
        ...said.removed.map(
          ({ id, name, email, ...removed }) => `${id}  ${email}  ${name}  (removed, ${howFar(removed)})`,
        ),
        ...said.removed.flatMap(({ name, problem }) =>
          problem === null ? [] : ['', `${name} is not removed whole yet: ${problem}`, REMOVAL_HELP],
        ),
      ]
    case 'password':
      return [
        `The new password of ${said.person.name} (${said.person.email}) is: ${said.password}`,
        'It is shown this once. They are signed out everywhere, and change it in Settings → Account.',
      ]
    case 'remove':
      return [
        `${said.removal.name} (${said.removal.email}) cannot sign in any more.`,
        said.removal.done
          ? 'They were removed before. Their files and chats are kept.'
          : `The rest (what runs, the sandbox${said.removal.data === 'purge' ? ', files and chats' : ''}) ends when Sandlot starts next.`,
      ]
    case 'nothing':
      throw nothingDone(said)
  }
}

function howFar({ data, done, problem }: Pick<Removal, 'data' | 'done' | 'problem'>): string {
  if (done) return 'files and chats kept'
  const what = data === 'purge' ? 'files and chats are being deleted' : 'under way'
  return problem === null ? what : `${what}; see below`
}

function nothingDone({ reason, message }: Extract<z.infer<typeof answer>, { did: 'nothing' }>): StepError {
  switch (reason) {
    case 'no_deployment':
      return noDeployment(message)
    case 'running':
      return new StepError(
        'Sandlot is running; nothing was changed.',
        'Run ./sandlot down, then this again. While it runs, administrators remove people in Settings → People.',
      )
    case 'no_such_person':
      return new StepError(
        `Nobody has the address or the id ${message}.`,
        './sandlot people list shows everybody.',
      )
    case 'other_version':
      return new StepError(message, 'Nothing was changed. ./sandlot up starts Sandlot.')
    case 'refused':
      return new StepError(message, 'Nothing was changed. ./sandlot people list shows everybody.')
  }
}
