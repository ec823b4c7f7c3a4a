/**
 * `./sandlot bench service`: what the way from the model to the browser adds, beside what others add, in the same run on the same
 * machine; and whether what somebody asks for holds anybody up. Prints a table; see docs/benchmarks.md.
 *
 *   --samples <n>       samples of what takes milliseconds (default 100)
 *   --streams <n>       how many streams and sockets where a goal is about many of them (default 200)
 *   --only V1,V3        these goals
 *   --json <file>       everything that was measured
 *   --markdown <file>   the same as the service’s chapter of this page; its other chapters stay
 */
import { type Goal, measureGoals, readArguments, writeResults } from '../../sandbox/bench/program.ts'
import { describeMachine, tables, writeChapter } from '../../sandbox/bench/report.ts'
import { type BenchContext, openContext } from './context.ts'
import { held } from './goals/held.ts'
import { idle } from './goals/idle.ts'
import { neighbours } from './goals/neighbours.ts'
import { output } from './goals/output.ts'
import { reconnect } from './goals/reconnect.ts'
import { streams } from './goals/streams.ts'
import { usage } from './goals/usage.ts'
import { watchers } from './goals/watchers.ts'

const GOALS: Goal<BenchContext>[] = [
  { ids: ['V4'], measure: idle },
  { ids: ['V1', 'V2'], measure: streams },
  { ids: ['V3'], measure: reconnect },
  { ids: ['V5'], measure: output },
  { ids: ['V6'], measure: held },
  { ids: ['V7'], measure: watchers },
  { ids: ['V8'], measure: usage },
  { ids: ['V9'], measure: neighbours },
]

const { samples, many, chosen, json, markdown } = readArguments(GOALS, { samples: 100, many: 'streams' })

/** They take a while to make. */
const answers = chosen.some(({ measure }) => measure === usage) ? 1_000_000 : 0
await using context = await openContext({ samples, many, answers, say: (text) => console.error(text) })
const machine = describeMachine('none', samples, many)
console.log(`${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}\n`)
const results = await measureGoals(chosen, context)
await writeResults(json, machine, results)
if (markdown !== undefined) {
  const intro = [
    'Written by `./sandlot bench service --markdown docs/benchmarks.md`. A process plays the provider’s bytes, each token with the time at',
    'which it was written; the readers are WebSockets on loopback. Sandlot is its two processes, which check, store and fold; the bare',
    'relay passes text on and keeps nothing. What an event loop was held comes from `/metrics`, and may be 10 ms more.',
    '',
    `${machine.at}, ${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}; ${many} streams and sockets where there are many.`,
  ]
  await writeChapter(markdown, '# The service', [...intro, ...tables(results)])
}
