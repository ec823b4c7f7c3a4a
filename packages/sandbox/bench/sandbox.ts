/**
 * `./sandlot bench sandbox`: what the sandbox costs, beside what others do with the same engine on the same machine in
 * the same run. Prints a table; see docs/benchmarks.md.
 *
 *   --samples <n>       samples of what takes milliseconds (default 300)
 *   --sandboxes <n>     how many where a goal is about many of them (default 200)
 *   --only G1,G13       these goals
 *   --json <file>       everything that was measured
 *   --markdown <file>   the same as the first chapter of this page; its other chapters stay
 */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'

import { type BenchContext, openContext } from './context.ts'
import { cancelTree } from './goals/cancel.ts'
import { manyCalls, oneCall } from './goals/calls.ts'
import { fileRoundTrip } from './goals/files.ts'
import { allAtOnce, firstCommand, wake } from './goals/lifecycle.ts'
import { idleMemory } from './goals/memory.ts'
import { reattach } from './goals/reattach.ts'
import { cutOutput, gigabyte, stalledReader, tinyWrites } from './goals/streams.ts'
import { keystrokes } from './goals/terminal.ts'
import { asMarkdown, asText, describeMachine, type Result, writeChapter } from './report.ts'

const GOALS: { ids: readonly string[]; measure: (context: BenchContext) => Promise<Result[]> }[] = [
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

const { values } = parseArgs({
  options: {
    samples: { type: 'string', default: '300' },
    sandboxes: { type: 'string', default: '200' },
    only: { type: 'string' },
    json: { type: 'string' },
    markdown: { type: 'string' },
  },
})
const samples = count('--samples', values.samples)
const many = count('--sandboxes', values.sandboxes)
const chosen = choose(values.only)

await using context = await openContext({ samples, many, say: (text) => console.error(text) })
const { version } = await context.fixture.backend.capabilities()
const machine = describeMachine(version, samples, many)
console.log(`${machine.cores} cores (${machine.cpu}), kernel ${machine.kernel}, Docker Engine ${version}\n`)
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
if (values.markdown !== undefined)
  await writeChapter(values.markdown, '# Benchmarks', asMarkdown(machine, results))

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
