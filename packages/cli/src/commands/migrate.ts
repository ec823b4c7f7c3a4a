import { databaseUrl } from '@sandlot/shared/config/database-url'
import { backupProgram } from '../programs/backup-program.ts'
import { recordFile } from '../processes/children.ts'
import type { Command } from '../context.ts'
import { requireDeployment } from '../deployment/deployment.ts'
import { readRecord } from '../processes/pid-file.ts'
import { isRunning } from '../processes/process-mark.ts'
import { isOnPostgres } from '../deployment/replicas.ts'
import { StepError } from '../steps.ts'

/** Moves chats and accounts from their files into an empty database of PostgreSQL. */
export const migrate: Command = async (context) => {
  const { config, args, steps, print } = context
  const [option, address, ...rest] = args
  if (option !== '--to' || !databaseUrl.safeParse(address).success || rest.length > 0) {
    print('Usage: ./sandlot migrate --to postgres://…   (docs/postgresql.md)')
    return 2
  }
  requireDeployment(config)
  if (isOnPostgres(config))
    throw new StepError(
      'DATABASE_URL is set: chats and accounts are in PostgreSQL already. Nothing was moved.',
      'Unset DATABASE_URL and DATABASE_URL_FILE where you want to move what is in the files.',
    )
  const record = readRecord(recordFile(config))
  if (record !== undefined && isRunning(record.up))
    throw new StepError(
      `Sandlot is running with ${config.data}; nothing was moved.`,
      'End it with ./sandlot down, then run this again.',
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
        `Left out of ${name}: ${leftOut} invisible character${leftOut === 1 ? '' : 's'} (U+0000), which PostgreSQL cannot hold. In keys � stands for them.`,
      )
  print(
    'Every table was read back and is the same. Write the address into a file that only you can read, set',
  )
  print('DATABASE_URL_FILE to its path, and start Sandlot: ./sandlot up')
  print(`It does not read ${files.join(' and ')} any more; they are as they were.`)
  return 0
}
