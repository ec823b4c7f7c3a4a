/**
 * Models and tools that ignore signals: the loop does not wait for them, and concurrent work
 * continues.
 */
import { type SessionEvent, isLive, isOutcome, sandlotEventOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Model } from '../../src/model/model.ts'
import { type LogStore, memoryLog } from '../../src/plain/log-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { type RunOptions, type RunResult, runAgent } from '../../src/plain/run-agent.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { SUMMARY_REQUEST } from '../support/summary-request.ts'
import { scriptedModel } from '../support/scripted-model.ts'

const never = (): Promise<never> => Promise.withResolvers<never>().promise

async function finish(
  options: RunOptions,
  watch: (event: SessionEvent) => unknown = () => undefined,
): Promise<RunResult> {
  const run = runAgent(options)
  for (;;) {
    const step = await run.next()
    if (step.done === true) return step.value
    watch(step.value)
  }
}

/** A tool that does this, and looks at no signal. */
function tool(name: string, execute: Tool['execute'], timeoutMs = 60_000): Tool {
  return defineTool({
    name,
    description: 'For tests.',
    kind: 'read',
    input: z.strictObject({}),
    readOnly: true,
    runs: { timeoutMs },
    title: () => name,
    execute,
  })
}
const deaf = tool('deaf', async function* () {
  yield { type: 'progress', message: 'deaf' }
  return await never()
})
const fine = plainTool({
  name: 'fine',
  description: 'For tests.',
  parameters: { type: 'object', properties: {} },
  readOnly: true,
  execute: () => 'fine',
})
const calls = ['deaf', 'fine'].map((name) => ({ id: name, name, args: {} }))

test('a model that does not hear a Stop', async () => {
  const stop = new AbortController()
  const model: Model = {
    ...scriptedModel([]),
    stream(_request, _signal, onPiece) {
      onPiece({ type: 'text', text: 'So far.' })
      return never()
    },
  }
  const options = { model, tools: [], log: memoryLog(), prompt: 'go', signal: stop.signal }
  const result = await finish(options, (event) => {
    if (isLive(event)) setImmediate(() => stop.abort('cancelled'))
  })
  expect(result).toMatchObject({ reason: 'cancelled', text: 'So far.' })
})

test('a model that is writing a summary and does not hear a Stop', async () => {
  const stop = new AbortController()
  const model = scriptedModel(
    (place) => (request) => {
      if (request.messages.at(-1)?.content !== SUMMARY_REQUEST)
        return {
          usage: {},
          text: `${place} `.repeat(2_000),
          calls: [{ id: `c${place}`, name: 'fine', args: { place } }],
        }
      stop.abort('cancelled')
      return never()
    },
    { contextWindow: 8_000 },
  )
  const options = { model, tools: [fine], log: memoryLog(), prompt: 'go', signal: stop.signal }
  expect(await finish(options)).toMatchObject({ reason: 'cancelled' })
})

test('a tool that hears nothing holds up neither a failing store nor a program that goes away', async () => {
  const kept = memoryLog()
  const broken = {
    ...kept,
    append: (events: readonly SessionEvent[], after?: number) =>
      events.some(isOutcome) ? Promise.reject(new Error('disk full')) : kept.append(events, after),
  }
  const begin = (log: LogStore): RunOptions => ({
    model: scriptedModel([{ calls }]),
    tools: [deaf, fine],
    log,
    prompt: 'go',
  })
  for await (const event of runAgent(begin(memoryLog()))) if (isOutcome(event)) break
  await expect(finish(begin(broken))).rejects.toThrow('disk full')
  const hears = tool('deaf', async function* () {
    yield { type: 'progress', message: 'no longer deaf' }
    return { status: 'completed', forModel: 'heard' }
  })
  const again = { model: scriptedModel([{ text: 'Done.' }]), tools: [hears, fine], log: kept }
  expect(await finish(again)).toMatchObject({ text: 'Done.' })
})

test('a tool that speaks without a pause is ended at its limit, and does not keep others from speaking', async () => {
  const until = performance.now() + 20_000
  let others = 0
  const beat = setInterval(() => others++, 10)
  const floods = tool(
    'deaf',
    async function* (_, ctx) {
      while (!ctx.signal.aborted && performance.now() < until) yield { type: 'progress', message: 'more' }
      return { status: 'failed', reason: 'tool_error', forModel: 'over' }
    },
    1_000,
  )
  const log = memoryLog()
  const model = scriptedModel([{ calls: calls.slice(0, 1) }, { text: 'Done.' }])
  expect(await finish({ model, tools: [floods], log, prompt: 'go' })).toMatchObject({ text: 'Done.' })
  clearInterval(beat)
  expect(performance.now()).toBeLessThan(until)
  expect(others).toBeGreaterThan(1)
  const ended = (await log.read()).map(sandlotEventOf).filter((event) => event?.type === 'prompt_ended')
  expect(ended).toHaveLength(1)
})
