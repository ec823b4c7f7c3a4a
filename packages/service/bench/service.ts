/**
 * `./sandlot bench service`: the time that the path from the model to the browser adds, compared with others, and the time
 * for which one request delays others (docs/benchmarks.md).
 */
import { runBench } from '../../../test/bench/run.ts'
import { openContext } from './context.ts'
import { closedChats } from './goals/closed-chats.ts'
import { firstTokens } from './goals/first-token.ts'
import { held } from './goals/held.ts'
import { idle } from './goals/idle.ts'
import { meanwhile } from './goals/meanwhile.ts'
import { neighbours } from './goals/neighbours.ts'
import { output } from './goals/output.ts'
import { reconnect } from './goals/reconnect.ts'
import { manyStreams, oneStream } from './goals/streams.ts'
import { usage } from './goals/usage.ts'
import { watchers } from './goals/watchers.ts'

await runBench({
  name: 'service',
  goals: [
    { ids: ['V4'], measure: idle },
    { ids: ['V1'], measure: manyStreams },
    { ids: ['V2'], measure: oneStream },
    { ids: ['V3'], measure: reconnect },
    { ids: ['V5'], measure: output },
    { ids: ['V6'], measure: held },
    { ids: ['V7'], measure: watchers },
    { ids: ['V8'], measure: usage },
    { ids: ['V9'], measure: neighbours },
    { ids: ['V10'], measure: firstTokens },
    { ids: ['V11'], measure: closedChats },
    { ids: ['V12'], measure: meanwhile },
  ],
  samples: 100,
  many: 'streams',
  chapter: '# The service',
  intro: [
    'A process plays the provider’s bytes, each token with its time of',
    'writing; the readers are WebSockets on loopback. Sandlot is two processes that check, store and fold; the bare relay only forwards text.',
    'Event loop delays come from `/metrics` and may be 10 ms too high.',
    'CPU time is the scheduler’s count; memory after many chats is resident memory, with garbage.',
  ],
  open: async (args, stack) => ({ context: await openContext(args, stack) }),
})
