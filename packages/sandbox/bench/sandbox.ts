/**
 * `./sandlot bench sandbox`: what the sandbox costs, beside what others do with the same engine on
 * the same machine in the same run. Prints a table; see docs/benchmarks.md.
 *
 *   --samples <n>       samples of what takes milliseconds (default 300)
 *   --sandboxes <n>     how many where a goal is about many of them (default 200)
 *   --only G1,G13       these goals
 *   --json <file>       everything that was measured
 *   --markdown <file>   the same as the first chapter of this page; its other chapters stay
 */
import { type BenchContext, openContext } from './context.ts'
import { cancelTree } from './goals/cancel.ts'
import { manyCalls, oneCall } from './goals/calls.ts'
import { fileRoundTrip } from './goals/files.ts'
import { allAtOnce, firstCommand, wake } from './goals/lifecycle.ts'
import { idleMemory } from './goals/memory.ts'
import { reattach } from './goals/reattach.ts'
import { cutOutput, gigabyte, stalledReader, tinyWrites } from './goals/streams.ts'
import { keystrokes } from './goals/terminal.ts'
import { type Goal, disposeWhenInterrupted, measureGoals, readArguments, writeResults } from './program.ts'
import { asMarkdown, describeMachine, writeChapter } from './report.ts'

const GOALS: Goal<BenchContext>[] = [
  { ids: ['G1', 'G2', 'G3', 'G4'], measure: oneCall },
  { ids: ['G5'], measure: manyCalls },
  { ids: ['G6', 'G7'], measure: gigabyte },
  { ids: ['G8'], measure: stalledReader },
  { ids: ['G9'], measure: cutOutput },
  { ids: ['G10'], measure: tinyWrites },
  { ids: ['G11'], measure: firstCommand },
  { ids: ['G12'], measure: wake },
  { ids: ['G13'], measure: cancelTree },
  { ids: ['G14', 'G15'], measure: idleMemory },
  { ids: ['G16'], measure: allAtOnce },
  { ids: ['G17'], measure: reattach },
  { ids: ['G18'], measure: fileRoundTrip },
  { ids: ['G19'], measure: keystrokes },
]

const { samples, many, chosen, json, markdown } = readArguments(GOALS, { samples: 300, many: 'sandboxes' })

await using context = await openContext({ samples, many, say: (text) => console.error(text) })
disposeWhenInterrupted(context)
const { version } = await context.fixture.backend.inventory.capabilities()
const machine = describeMachine(version, samples, many)
console.log(`${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Docker Engine ${version}\n`)
const results = await measureGoals(chosen, context)
await writeResults(json, machine, results)
if (markdown !== undefined) await writeChapter(markdown, '# Benchmarks', asMarkdown(machine, results))
