/** `./sandlot bench agent`: the time that the agent adds to the model's, compared with others (docs/benchmarks.md). */
import { runBench } from '../../../test/bench/run.ts'
import { openContext } from './context.ts'
import { longArguments } from './goals/arguments.ts'
import { continuation } from './goals/continuation.ts'
import { firstToken } from './goals/first-token.ts'
import { longSession } from './goals/long-session.ts'
import { manyPrompts } from './goals/many-prompts.ts'
import { registry } from './goals/registry.ts'
import { stop } from './goals/stop.ts'

await runBench({
  name: 'agent',
  goals: [
    { ids: ['A1', 'A2'], measure: continuation },
    { ids: ['A3'], measure: registry },
    { ids: ['A4'], measure: firstToken },
    { ids: ['A5'], measure: longArguments },
    { ids: ['A6'], measure: longSession },
    { ids: ['A7'], measure: manyPrompts },
    { ids: ['A8'], measure: stop },
  ],
  samples: 200,
  many: 'prompts',
  chapter: '# The agent',
  intro: [
    'All candidates call a process that plays the same streams. Sandlot',
    'stores every event in SQLite first and checks, schedules and measures each call; the others do not. The bare loop is the floor.',
  ],
  open: async (args, stack) => ({ context: await openContext(args, stack) }),
})
