/**
 * `./sandlot bench agent`: what the agent adds to the model, beside what others add, on the same streams on the
 * same machine in the same run. Prints a table; see docs/benchmarks.md.
 *
 *   --samples <n>       samples of what takes milliseconds (default 200)
 *   --prompts <n>       how many where a goal is about many of them (default 200)
 *   --only A1,A5        these goals
 *   --json <file>       everything that was measured
 *   --markdown <file>   the same as the agent’s chapter of this page; its other chapters stay
 */
import {
  type Goal,
  disposeWhenInterrupted,
  measureGoals,
  readArguments,
  writeResults,
} from '../../sandbox/bench/program.ts'
import { describeMachine, tables, writeChapter } from '../../sandbox/bench/report.ts'
import { type BenchContext, openContext } from './context.ts'
import { longArguments } from './goals/arguments.ts'
import { continuation } from './goals/continuation.ts'
import { firstToken } from './goals/first-token.ts'
import { longSession } from './goals/long-session.ts'
import { manyPrompts } from './goals/many-prompts.ts'
import { registry } from './goals/registry.ts'
import { stop } from './goals/stop.ts'

const GOALS: Goal<BenchContext>[] = [
  { ids: ['A1', 'A2'], measure: continuation },
  { ids: ['A3'], measure: registry },
  { ids: ['A4'], measure: firstToken },
  { ids: ['A5'], measure: longArguments },
  { ids: ['A6'], measure: longSession },
  { ids: ['A7'], measure: manyPrompts },
  { ids: ['A8'], measure: stop },
]

const { samples, many, chosen, json, markdown } = readArguments(GOALS, { samples: 200, many: 'prompts' })

await using context = await openContext({ samples, many, say: (text) => console.error(text) })
disposeWhenInterrupted(context)
const machine = describeMachine('none', samples, many)
console.log(`${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}\n`)
const results = await measureGoals(chosen, context)
await writeResults(json, machine, results)
if (markdown !== undefined) {
  const intro = [
    'Written by `./sandlot bench agent --markdown docs/benchmarks.md`. All ways ask a process that plays the same streams; Sandlot',
    'stores every event in SQLite before it goes on, checks, schedules and measures each call, the others do not. The bare loop is the floor.',
    '',
    `${machine.at}, ${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}; ${samples} samples where a prompt takes milliseconds.`,
  ]
  await writeChapter(markdown, '# The agent', [...intro, ...tables(results)])
}
