/**
 * `./sandlot bench service --postgres`: what chats and accounts cost in PostgreSQL beside files, in turns and in one run, on a server
 * of its own which writes to the disk as files do; see docs/benchmarks.md.
 *
 *   --samples <n>       samples of what takes milliseconds (default 300)
 *   --streams <n>       how many streams at once (default 200)
 *   --messages <n>      how many messages are searched (default 1000000)
 *   --only P1,P3        these goals
 *   --json <file>       everything that was measured
 *   --markdown <file>   the same as the chapter of PostgreSQL of this page; its other chapters stay
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { postgresPrograms, startPostgres } from '../../storage/test/support/postgres.ts'
import {
  type Goal,
  disposeWhenInterrupted,
  measureGoals,
  readArguments,
  writeResults,
} from '../../sandbox/bench/program.ts'
import { describeMachine, tables, writeChapter } from '../../sandbox/bench/report.ts'
import { addedTime } from './goals/added-time.ts'
import { changeOfHands, onQuarterCores, onSameCores } from './goals/replicas.ts'
import { append, list, search } from './goals/stores.ts'

/** What every goal works with. */
export interface PostgresContext {
  samples: number
  /** Streams at once. */
  many: number
  messages: number
  /** The address of a new database of this name. */
  database: (name: string) => Promise<string>
  say: (text: string) => void
}

const GOALS: Goal<PostgresContext>[] = [
  { ids: ['P1'], measure: append },
  { ids: ['P2'], measure: addedTime },
  { ids: ['P3'], measure: list },
  { ids: ['P4'], measure: search },
  { ids: ['P5'], measure: onSameCores },
  { ids: ['P6'], measure: onQuarterCores },
  { ids: ['P7', 'P8'], measure: changeOfHands },
]

const { samples, many, messages, chosen, json, markdown } = readArguments(GOALS, {
  samples: 300,
  many: 'streams',
  messages: 1_000_000,
})
if (postgresPrograms === undefined) {
  console.error('There is no PostgreSQL on this machine; install it (apt install postgresql).')
  process.exit(2)
}
await using stack = new AsyncDisposableStack()
disposeWhenInterrupted(stack)
const postgres = await startPostgres(postgresPrograms, { durable: true })
stack.defer(() => postgres.stop())
const machine = describeMachine('none', samples, many)
const said = execFileSync(join(postgresPrograms, 'postgres'), ['--version'], { encoding: 'utf8' })
const version = /[\d.]+/.exec(said)?.[0] ?? ''
console.log(
  `${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}, PostgreSQL ${version}\n`,
)
const say = (text: string): void => console.error(text)
const database = (name: string): Promise<string> => postgres.database(name)
const results = await measureGoals(chosen, { samples, many, messages, database, say })
await writeResults(json, machine, results)
if (markdown !== undefined) {
  const intro = [
    'Written by `./sandlot bench service --postgres --markdown docs/benchmarks.md`. The ways in turns, in one run: files of SQLite, and',
    'PostgreSQL as Debian sets it up, on the same disk and the same cores, reached by a socket.',
    '',
    `${machine.at}, ${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}, PostgreSQL ${version};`,
    `${samples} samples where a call takes milliseconds, ${many} streams, ${messages.toLocaleString('en')} messages.`,
  ]
  await writeChapter(markdown, '# PostgreSQL beside files', [...intro, ...tables(results)])
}
