/** Row "fallback model": only a provider that cannot serve us now is a reason to ask another model. */
import { sandlotEventOf } from '@sandlot/shared/events'
import { expect, test } from 'vitest'
import { ModelError, type ModelErrorClass } from '../src/model/model.ts'
import { memoryLog } from '../src/plain/log-store.ts'
import { runAgent } from '../src/run-agent.ts'
import { type ScriptedModel, scriptedModel } from './scripted-model.ts'

/** Every class there is: one that is added does not compile before it is decided. */
const ANOTHER_IS_ASKED: Record<ModelErrorClass, boolean> = {
  rate_limit: true,
  quota: true,
  overloaded: true,
  auth: false,
  invalid_request: false,
  invalid_history: false,
  context_overflow: false,
  request_too_large: false,
  content_filter: false,
  server_error: false,
  provider_error: false,
  timeout: false,
  stream_interrupted: false,
  protocol: false,
  malformed_tool_call: false,
  tool_use_failed: false,
  unreachable: false,
}

/** One prompt whose first model always fails so. */
async function played(error: ModelError): Promise<{
  first: ScriptedModel
  second: ScriptedModel
  reason: string
  changes: unknown[]
}> {
  const first = scriptedModel(() => () => {
    throw error
  })
  const second = scriptedModel([{ text: 'Second.' }], { name: 'second' })
  const log = memoryLog()
  const retry = { attempts: 2, baseMs: 1, capMs: 1, longestWaitMs: 50 }
  const run = runAgent({ model: first, fallbacks: [second], tools: [], log, retry, prompt: 'go' })
  let step = await run.next()
  while (step.done !== true) step = await run.next()
  const happened = (await log.read()).map(sandlotEventOf)
  const changes = happened.filter((event) => event?.type === 'model_changed')
  return { first, second, reason: step.value.reason, changes }
}

test.each(Object.entries(ANOTHER_IS_ASKED) as [ModelErrorClass, boolean][])(
  'after %s: %s',
  async (errorClass, another) => {
    for (const retryable of [true, false]) {
      const error = new ModelError(errorClass, 'It failed.', { retryable })
      const { first, second, reason, changes } = await played(error)
      expect(first.requests).toHaveLength(retryable ? 2 : 1)
      expect(second.requests).toHaveLength(another ? 1 : 0)
      expect(reason).toBe(another ? 'completed' : 'error')
      expect(changes).toEqual(another ? [{ type: 'model_changed', model: 'second', why: errorClass }] : [])
    }
  },
)

test('a rate limit that lasts too long is not waited for when another model can answer', async () => {
  const { first, second, reason } = await played(
    new ModelError('rate_limit', 'Slow down.', { retryable: true, waitMs: 3_600_000 }),
  )
  expect([first.requests.length, second.requests.length, reason]).toEqual([1, 1, 'completed'])
})
