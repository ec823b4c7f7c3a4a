import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { z } from 'zod'
import { childEnvironment } from '../processes/child-env.ts'
import { settingsArguments } from '../processes/children.ts'
import type { Context } from '../context.ts'
import { programArguments } from './find-program.ts'
import { run } from './run.ts'
import { type Step, StepError } from '../steps.ts'

/** Printed by packages/backup. */
const answer = z.discriminatedUnion('did', [
  z.object({
    did: z.literal('backup'),
    file: z.string(),
    at: z.string(),
    bytes: z.number(),
    workspaces: z.number(),
    leftOut: z.array(z.object({ name: z.string(), message: z.string() })),
  }),
  z.object({
    did: z.literal('restore'),
    at: z.string(),
    version: z.string(),
    workspaces: z.number(),
    leftOut: z.array(z.string()),
    unproven: z.string().optional(),
    settings: z.string().optional(),
  }),
  z.object({
    did: z.literal('migrate'),
    tables: z.array(
      z.object({ name: z.string(), rows: z.number(), digest: z.string(), leftOut: z.number() }),
    ),
    files: z.array(z.string()),
  }),
  z.object({ did: z.literal('nothing'), code: z.string(), message: z.string(), fix: z.string() }),
])
/** Its exit codes: nothing was done, or workspaces were left out. The answer has the reason. */
const [NOTHING_DONE, INCOMPLETE] = [3, 4]

type Answer<Did extends string> = Extract<z.infer<typeof answer>, { did: Did }>

/**
 * Makes a backup, restores one, or moves the databases to `database`. `passphrase`: undefined if a
 * setting has it.
 * @throws StepError when nothing was done.
 */
export async function backupProgram(
  args: readonly ['backup', ...string[]],
  context: Pick<Context, 'config'>,
  options: { passphrase: string | undefined; step?: Step },
): Promise<Answer<'backup'>>
export async function backupProgram(
  args: readonly ['restore', ...string[]],
  context: Pick<Context, 'config'>,
  options: { passphrase: string | undefined; step?: Step },
): Promise<Answer<'restore'>>
export async function backupProgram(
  args: readonly ['migrate'],
  context: Pick<Context, 'config'>,
  options: { passphrase: undefined; database: string | undefined; step?: Step },
): Promise<Answer<'migrate'>>
export async function backupProgram(
  args: readonly string[],
  { config }: Pick<Context, 'config'>,
  { passphrase, database, step }: { passphrase: string | undefined; database?: string; step?: Step },
): Promise<Answer<'backup' | 'restore' | 'migrate'>> {
  const program = programArguments(config, 'backup', 'main')
  const environment = childEnvironment('backup', config.environment)
  if (passphrase !== undefined) environment['SANDLOT_BACKUP_PASSPHRASE'] = passphrase
  if (database !== undefined) environment['DATABASE_URL'] = database
  const printed = await run(process.execPath, [...program, ...args, ...settingsArguments(config)], {
    cwd: config.root,
    environment,
    fix: 'Its output is above. Fix the problem, then run the same command again.',
    alsoGood: [NOTHING_DONE, INCOMPLETE],
    onLine: (line) => {
      const part = /^  … (.+)/.exec(line)?.[1]
      if (part !== undefined) step?.doing(part)
    },
  })
  const said = answer.parse(JSON.parse(printed))
  if (said.did === 'nothing') throw new StepError(said.message, said.fix)
  return said
}

/**
 * Asks for the passphrase at the terminal. Undefined if a setting has it, or without a terminal.
 */
export async function askPassphrase(
  { config }: Pick<Context, 'config'>,
  { twice }: { twice: boolean },
): Promise<string | undefined> {
  if (config.backups.hasPassphrase || !process.stdin.isTTY) return undefined
  const typed = await askHidden('Backup passphrase: ')
  if (twice && (await askHidden('Repeat the passphrase: ')) !== typed)
    throw new StepError('The passphrases do not match; nothing was done.', 'Run the same command again.')
  return typed
}

async function askHidden(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await terminal.question('')
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
