/**
 * `./sandlot bench service --postgres`: the cost of chats and accounts in PostgreSQL compared with files, in turns and in one
 * run, on a server of its own which writes to the disk as files do (docs/benchmarks.md).
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { type BenchArguments, runBench } from '../../../test/bench/run.ts'
import { postgresPrograms, startPostgres } from '../../storage/test/support/postgres.ts'
import { addedTime } from './goals/added-time.ts'
import { changeOfHands, onQuarterCores, onSameCores } from './goals/replicas.ts'
import { append, list, search } from './goals/stores.ts'

export interface PostgresContext extends BenchArguments {
  /** The address of a new database of this name. */
  database: (name: string) => Promise<string>
}

if (postgresPrograms === undefined) {
  console.error('There is no PostgreSQL on this machine; install it (apt install postgresql).')
  process.exit(2)
}
const programs = postgresPrograms

await runBench<PostgresContext>({
  name: 'service --postgres',
  goals: [
    { ids: ['P1'], measure: append },
    { ids: ['P2'], measure: addedTime },
    { ids: ['P3'], measure: list },
    { ids: ['P4'], measure: search },
    { ids: ['P5'], measure: onSameCores },
    { ids: ['P6'], measure: onQuarterCores },
    { ids: ['P7', 'P8'], measure: changeOfHands },
  ],
  samples: 300,
  many: 'streams',
  messages: 1_000_000,
  chapter: '# PostgreSQL beside files',
  intro: [
    'SQLite files and Debian’s default PostgreSQL, reached by a',
    'socket, measured in turn on the same disk and cores.',
  ],
  async open(args, stack) {
    const postgres = await startPostgres(programs, { durable: true })
    stack.defer(() => postgres.stop())
    const printed = execFileSync(join(programs, 'postgres'), ['--version'], { encoding: 'utf8' })
    const database = (name: string): Promise<string> => postgres.database(name)
    return { context: { ...args, database }, servers: [`PostgreSQL ${/[\d.]+/.exec(printed)?.[0] ?? ''}`] }
  },
})
