/** Row "compaction": when the next request would pass 80 % of the window, to the token. */
import { expect, test } from 'vitest'
import { SUMMARY_REQUEST } from '../support/summary-request.ts'
import { messageTokens } from '../../src/model/tokens.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { scriptedModel } from '../support/scripted-model.ts'

const WINDOW = 10_000
const NEXT = 'And now?'

/**
 * True if room is made before the second message, when it and the provider's count sum to `tokens`.
 */
async function makesRoomAt(tokens: number): Promise<boolean> {
  const counted = tokens - messageTokens({ role: 'user', content: NEXT })
  const model = scriptedModel(
    (place) =>
      ({ messages }) =>
        place === 0
          ? { text: 'Yes.', usage: { input: counted - 100, output: 100 } }
          : { text: messages.at(-1)?.content === SUMMARY_REQUEST ? 'What was.' : 'Done.' },
    { contextWindow: WINDOW },
  )
  const log = memoryLog()
  // So long that there is something to summarise; what it takes is the provider's count, not ours.
  for (const prompt of ['long '.repeat(2_000), NEXT]) {
    const run = runAgent({ model, tools: [], log, prompt })
    let step = await run.next()
    while (step.done !== true) step = await run.next()
    expect(step.value.reason).toBe('completed')
  }
  return model.requests.some(({ messages }) => messages.at(-1)?.content === SUMMARY_REQUEST)
}

test('an image is counted as an ordinary one, not as nothing and not by its bytes', () => {
  const image = { data: 'A'.repeat(1_000_000), mimeType: 'image/png' }
  const without = messageTokens({ role: 'user', content: NEXT })
  const tokens = messageTokens({ role: 'user', content: NEXT, images: [image, image] }) - without
  expect(tokens).toBeGreaterThanOrEqual(2 * 700)
  expect(tokens).toBeLessThanOrEqual(2 * 2_000)
})

test('just under 80 % of the window nothing is left out, just over it room is made', async () => {
  expect(await makesRoomAt(8_000)).toBe(false)
  expect(await makesRoomAt(8_001)).toBe(true)
})
