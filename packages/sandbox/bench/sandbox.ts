/** `./sandlot bench sandbox`: the cost of the sandbox compared with other uses of the same engine (docs/benchmarks.md). */
import { runBench } from '../../../test/bench/run.ts'
import { openContext } from './context.ts'
import { cancelTree } from './goals/cancel.ts'
import { manyCalls, oneCall } from './goals/calls.ts'
import { fileRoundTrip } from './goals/files.ts'
import { allAtOnce, firstCommand, wake } from './goals/lifecycle.ts'
import { idleMemory } from './goals/memory.ts'
import { reattach } from './goals/reattach.ts'
import { cutOutput, gigabyte, stalledReader, tinyWrites } from './goals/streams.ts'
import { keystrokes } from './goals/terminal.ts'

await runBench({
  name: 'sandbox',
  goals: [
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
  ],
  samples: 300,
  many: 'sandboxes',
  chapter: '# Benchmarks',
  intro: [
    'All rows of a chapter come from one run on one machine, with the',
    'candidates measured in turn: compare ratios, not milliseconds. Figures are p50 and, of several samples, p99. ✓ and ✗ say whether a goal was met.',
  ],
  async open(args, stack) {
    const context = await openContext(args, stack)
    const { version } = await context.fixture.backend.inventory.capabilities()
    return { context, servers: [`Docker Engine ${version}`] }
  },
})
