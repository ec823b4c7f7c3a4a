/** `./sandlot bench web`: the cost of the page in a browser, compared with a page of assistant-ui for the same events (docs/benchmarks.md). */
import { runBench } from '../../../test/bench/run.ts'
import { openContext } from './context.ts'
import { nodes, opening } from './goals/long.ts'
import { output } from './goals/output.ts'
import { size } from './goals/size.ts'
import { slow } from './goals/slow.ts'
import { stream } from './goals/stream.ts'

await runBench({
  name: 'web',
  goals: [
    { ids: ['W1'], measure: stream },
    { ids: ['W2'], measure: nodes },
    { ids: ['W3'], measure: opening },
    { ids: ['W4'], measure: output },
    { ids: ['W5'], measure: size },
    { ids: ['W6'], measure: slow },
  ],
  // No goal takes more.
  samples: 5,
  chapter: '# The page',
  intro: [
    'Headless Chromium, production builds. Both pages receive the same events',
    'over a WebSocket, fold them once a frame with the same function and render Markdown with the same library; the assistant-ui page is a',
    'thread of its own components without a style.',
  ],
  open: async (args, stack) => ({ context: await openContext(args, stack) }),
})
