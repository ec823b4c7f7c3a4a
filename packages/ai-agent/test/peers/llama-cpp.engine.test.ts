/** The loop against a real llama.cpp with a real model: an answer, Stop, usage, a conversation that outgrows its window. */
import { type SessionEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onlyInFullRun } from '../../../../test/campaign.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { type RunResult, runAgent } from '../../src/plain/run-agent.ts'
import { LLAMA_CPP, type LlamaCpp, startLlamaCpp } from './llama-cpp.ts'
import { peerMissing } from '../../../../test/peer-cache.ts'

const missing = peerMissing(LLAMA_CPP)
const WINDOW = 1_024
const STORY = 'The harbour was quiet, and the boats were lying in the fog, waiting for the tide. '

describe.skipIf(missing !== undefined)(missing ?? 'llama.cpp', () => {
  let server: LlamaCpp
  beforeAll(async () => {
    server = await startLlamaCpp(WINDOW)
  })
  afterAll(() => server.close())

  const open = (streaming = true) =>
    createHttpModel({ baseUrl: server.baseUrl, apiKey: '', model: 'smollm2', streaming })

  async function say(
    prompt: string,
    {
      log = memoryLog(),
      model = open(),
      onEvent,
    }: {
      log?: ReturnType<typeof memoryLog>
      model?: ReturnType<typeof open>
      onEvent?: (event: SessionEvent, stop: AbortController) => void
    } = {},
  ): Promise<RunResult> {
    const stop = new AbortController()
    const system = 'You are a helpful assistant. Answer in one short sentence.'
    const retry = { baseMs: 1, capMs: 1 }
    const run = runAgent({ model, tools: [], system, log, retry, prompt, signal: stop.signal })
    for (;;) {
      const step = await run.next()
      if (step.done === true) return step.value
      onEvent?.(step.value, stop)
    }
  }

  test('it answers, and counts where it is not asked to stream', async () => {
    expect(await say('What is 2+2?')).toMatchObject({
      reason: 'completed',
      text: expect.stringContaining('4'),
    })
    const log = memoryLog()
    await say('What is 2+2?', { log, model: open(false) })
    const usage = (await log.read()).find(({ sessionUpdate }) => sessionUpdate === 'usage_update')
    expect(usage?._meta.sandlot.usage?.input).toBeGreaterThan(20)
    expect(usage?._meta.sandlot.windowFrom).toBe('assumed')
  })

  test('Stop ends the answer, and the next prompt is answered', async () => {
    const stopped = await say('Count from 1 to 500, one number a line.', {
      onEvent: (event, stop) => {
        if (event.sessionUpdate === 'agent_message_chunk') stop.abort('cancelled')
      },
    })
    expect(stopped.reason).toBe('cancelled')
    expect(await say('What is 2+2?')).toMatchObject({ reason: 'completed' })
  })

  test('a message that does not fit ends with the words of the server, which it says without a stream only', async () => {
    const model = open()
    const result = await say(STORY.repeat(80), { model })
    expect(result).toMatchObject({ reason: 'error' })
    expect(result.text).toContain(`maximum context length is ${WINDOW} tokens`)
    expect(model.window).toMatchObject({ tokens: WINDOW, from: 'learnt' })
  })

  test('a conversation that outgrows its window goes on', async ({ skip }) => {
    // Its answers and summaries take a minute where others use the processor too.
    onlyInFullRun(skip)
    const [log, model] = [memoryLog(), open()]
    for (let n = 1; n <= 5; n++) {
      const result = await say(`Part ${n}: ${STORY.repeat(14)}\nHow is the harbour?`, { log, model })
      expect(result).toMatchObject({ reason: 'completed' })
    }
    expect(model.window).toMatchObject({ tokens: WINDOW, from: 'learnt' })
    const happened = (await log.read()).map((event) => sandlotEventOf(event)?.type)
    expect(happened.filter((type) => type === 'window_learnt')).toHaveLength(1)
    expect(happened).toContain('compacted')
  })
})
