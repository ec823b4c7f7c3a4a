import { settingSchema } from '@sandlot/shared/config'
import { backupProgram } from '../programs/backup-program.ts'
import { runningRecord } from '../processes/children.ts'
import type { Command } from '../context.ts'
import { requireDeployment } from '../deployment/deployment.ts'
import { isOnPostgres } from '../deployment/replicas.ts'
import { StepError } from '../steps.ts'

/** Moves chats and accounts from their files into an empty database of PostgreSQL. */
export const migrate: Command = async (context) => {
  const { config, args, steps, print } = context
  const [option, address, ...rest] = args
  if (
    option !== '--to' ||
    !settingSchema('backup').shape.DATABASE_URL.safeParse(address).success ||
    rest.length > 0
  ) {
    print('Usage: ./sandlot migrate --to postgres://…   (docs/postgresql.md)')
    return 2
  }
  requireDeployment(config)
  if (isOnPostgres(config))
    throw new StepError(
      'DATABASE_URL is set, so chats and accounts are in PostgreSQL already. Nothing was moved.',
      'To move the contents of the database files, unset DATABASE_URL and DATABASE_URL_FILE.',
    )
  if (runningRecord(config) !== undefined)
    throw new StepError(
      `Sandlot is running with ${config.data}; nothing was moved.`,
      'Stop it with ./sandlot down, then run this again.',
    )
  const { tables, files } = await steps.run('Moving into PostgreSQL', (step) =>
    backupProgram(['migrate'], context, { passphrase: undefined, database: address, step }),
  )
  const width = Math.max(...tables.map(({ name }) => name.length))
  for (const { name, rows, digest } of tables)
    print(`${name.padEnd(width)}  ${String(rows).padStart(9)} rows  ${digest}`)
  for (const { name, leftOut } of tables)
    if (leftOut > 0)
      print(
        `Left out of ${name}: ${leftOut} invisible character${leftOut === 1 ? '' : 's'} (U+0000), which PostgreSQL cannot store. In keys, � replaces them.`,
      )
  print('Every table was read back and matches. Write the address into a file that only you can read, set')
  print('DATABASE_URL_FILE to its path, and start Sandlot: ./sandlot up')
  print(`Sandlot no longer reads ${files.join(' and ')}; the files are unchanged.`)
  return 0
}
