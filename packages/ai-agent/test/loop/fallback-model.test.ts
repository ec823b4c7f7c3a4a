/** Row "fallback model": only a provider that cannot serve us now is a reason to ask another model. */
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import { ModelError } from '../../src/model/model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'

/** Every class there is: one that is added does not compile before it is decided. */
const ANOTHER_IS_ASKED: Record<ModelErrorClass, boolean> = {
  rate_limit: true,
  quota: true,
  overloaded: true,
  auth: false,
  invalid_request: false,
  invalid_history: false,
  replay_refused: false,
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

const failing = (error: ModelError): ScriptedModel =>
  scriptedModel(() => () => {
    throw error
  })

/** One prompt: how it ended, and the changes of model in its log. */
async function run(
  model: ScriptedModel,
  fallbacks: ScriptedModel[],
): Promise<{ reason: string; changes: unknown[] }> {
  const log = memoryLog()
  const retry = { attempts: 2, baseMs: 1, capMs: 1, longestWaitMs: 50 }
  const running = runAgent({ model, fallbacks, tools: [], log, retry, prompt: 'go' })
  let step = await running.next()
  while (step.done !== true) step = await running.next()
  const happened = (await log.read()).map(sandlotEventOf)
  const changes = happened.filter((event) => event?.type === 'model_changed')
  return { reason: step.value.reason, changes }
}

/** One prompt whose first model always fails so. */
async function played(
  error: ModelError,
): Promise<{ first: ScriptedModel; second: ScriptedModel; reason: string; changes: unknown[] }> {
  const first = failing(error)
  const second = scriptedModel([{ text: 'Second.' }], { name: 'second' })
  return { first, second, ...(await run(first, [second])) }
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

test('a model that is its own fallback is not asked again, the one behind it is', async () => {
  const first = failing(new ModelError('overloaded', 'It is busy.', { retryable: false }))
  const second = scriptedModel([{ text: 'Second.' }], { name: 'second' })
  const { reason } = await run(first, [first, second])
  expect([first.requests.length, second.requests.length, reason]).toEqual([1, 1, 'completed'])
})

test('the other model has as many attempts as the first one had', async () => {
  const busy = new ModelError('overloaded', 'It is busy.', { retryable: true })
  const first = failing(busy)
  const second = scriptedModel(
    (place) => () => {
      if (place === 0) throw busy
      return { text: 'Second.' }
    },
    { name: 'second' },
  )
  const { reason } = await run(first, [second])
  expect([first.requests.length, second.requests.length, reason]).toEqual([2, 2, 'completed'])
})
