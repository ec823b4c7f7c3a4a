/**
 * `./sandlot bench web`: what the page costs in a browser, beside a page of assistant-ui for the same events, in the same run on the
 * same machine. Prints a table; see docs/benchmarks.md.
 *
 *   --samples <n>       samples (default 5; no goal takes more)
 *   --only W1,W3        these goals
 *   --json <file>       everything that was measured
 *   --markdown <file>   the same as the page’s chapter of this page; its other chapters stay
 */
import { type Goal, measureGoals, readArguments, writeResults } from '../../sandbox/bench/program.ts'
import { describeMachine, tables, writeChapter } from '../../sandbox/bench/report.ts'
import { type BenchContext, openContext } from './context.ts'
import { nodes, opening } from './goals/long.ts'
import { output } from './goals/output.ts'
import { size } from './goals/size.ts'
import { stream } from './goals/stream.ts'

const GOALS: Goal<BenchContext>[] = [
  { ids: ['W1'], measure: stream },
  { ids: ['W2'], measure: nodes },
  { ids: ['W3'], measure: opening },
  { ids: ['W4'], measure: output },
  { ids: ['W5'], measure: size },
]

const { samples, many, chosen, json, markdown } = readArguments(GOALS, { samples: 5, many: 'prompts' })

await using context = await openContext({ samples, say: (text) => console.error(text) })
const machine = describeMachine('none', samples, many)
console.log(`${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}\n`)
const results = await measureGoals(chosen, context)
await writeResults(json, machine, results)
if (markdown !== undefined) {
  const intro = [
    'Written by `./sandlot bench web --markdown docs/benchmarks.md`. Headless Chromium, production builds. Both pages get the same',
    'events over a WebSocket, fold them once a frame with the same function and draw Markdown with the same library; that of',
    'assistant-ui is a thread of its own parts without a style.',
    '',
    `${machine.at}, ${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}.`,
  ]
  await writeChapter(markdown, '# The page', [...intro, ...tables(results)])
}
