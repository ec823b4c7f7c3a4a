/**
 * `./sandlot bench agent`: what the agent adds to the model, beside what others add, on the same recorded streams on the
 * same machine in the same run. Prints a table; see docs/benchmarks.md.
 *
 *   --samples <n>       samples of what takes milliseconds (default 200)
 *   --prompts <n>       how many where a goal is about many of them (default 200)
 *   --only A1,A5        these goals
 *   --json <file>       everything that was measured
 *   --markdown <file>   the same as the agent’s chapter of this page; its other chapters stay
 */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { type Result, asText, describeMachine, tables, writeChapter } from '../../sandbox/bench/report.ts'
import { type BenchContext, openContext } from './context.ts'
import { longArguments } from './goals/arguments.ts'
import { continuation } from './goals/continuation.ts'
import { firstToken } from './goals/first-token.ts'
import { longSession } from './goals/long-session.ts'
import { manyPrompts } from './goals/many-prompts.ts'
import { registry } from './goals/registry.ts'

const GOALS: { ids: readonly string[]; measure: (context: BenchContext) => Promise<Result[]> }[] = [
  { ids: ['A1', 'A2'], measure: continuation },
  { ids: ['A3'], measure: registry },
  { ids: ['A4'], measure: firstToken },
  { ids: ['A5'], measure: longArguments },
  { ids: ['A6'], measure: longSession },
  { ids: ['A7'], measure: manyPrompts },
]

const { values } = parseArgs({
  options: {
    samples: { type: 'string', default: '200' },
    prompts: { type: 'string', default: '200' },
    only: { type: 'string' },
    json: { type: 'string' },
    markdown: { type: 'string' },
  },
})
const samples = count('--samples', values.samples)
const many = count('--prompts', values.prompts)
const chosen = choose(values.only)

await using context = await openContext({ samples, many, say: (text) => console.error(text) })
const machine = describeMachine('none', samples, many)
console.log(`${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}\n`)
const results: Result[] = []
for (const { ids, measure } of chosen) {
  try {
    for (const result of await measure(context)) {
      results.push(result)
      console.log(`${asText(result)}\n`)
    }
  } catch (error) {
    process.exitCode = 1
    console.error(`${ids.join(', ')} could not be measured:`, error)
  }
}
if (values.json !== undefined)
  await writeFile(values.json, `${JSON.stringify({ machine, results }, undefined, 2)}\n`)
if (values.markdown !== undefined) {
  const intro = [
    'Written by `./sandlot bench agent --markdown docs/benchmarks.md`. All ways ask a process that plays the same recorded streams; Sandlot',
    'stores every event in SQLite before it goes on, checks, schedules and measures each call, the others do not. The bare loop is the floor.',
    '',
    `${machine.at}, ${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Node ${machine.node}; ${samples} samples where a prompt takes milliseconds.`,
  ]
  await writeChapter(values.markdown, '# The agent', [...intro, ...tables(results)])
}

function count(name: string, text: string): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`${name} must be a whole number from 1, not "${text}"`)
  return number
}

function choose(only: string | undefined) {
  if (only === undefined) return GOALS
  const wanted = only.split(',')
  const known = GOALS.flatMap(({ ids }) => ids)
  const unknown = wanted.filter((id) => !known.includes(id))
  if (unknown.length > 0)
    throw new Error(`There is no goal ${unknown.join(', ')}. Known: ${known.join(', ')}`)
  return GOALS.filter(({ ids }) => ids.some((id) => wanted.includes(id)))
}
