/** Sessions of the plain loop: what waits, who writes, what is sent twice, and what earlier calls printed. */
import { type SessionEvent, isOutcome, sandlotEventOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type LogStore, memoryLog } from '../../src/plain/log-store.ts'
import { MAX_OUTPUT_BYTES } from '../../src/plain/memory-outputs.ts'
import { MemoryStore } from '../../src/plain/memory-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { Inbox } from '../../src/plain/inbox.ts'
import { type RunOptions, type RunResult, runAgent } from '../../src/plain/run-agent.ts'
import { ContextWindow } from '../../src/model/context-window.ts'
import type { Model } from '../../src/model/model.ts'
import { readToolOutput } from '../../src/tools/builtin/read-tool-output.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'

const nothing = { description: 'For tests.', parameters: { type: 'object', properties: {} } }

/** Run to the end; `watch` sees each event. */
async function finish(
  options: RunOptions,
  watch: (event: SessionEvent) => unknown = () => undefined,
): Promise<RunResult> {
  const run = runAgent(options)
  for (;;) {
    const step = await run.next()
    if (step.done === true) return step.value
    await watch(step.value)
  }
}
const isEnd = (event: SessionEvent): boolean => sandlotEventOf(event)?.type === 'prompt_ended'
const typesOf = async (log: LogStore): Promise<(string | undefined)[]> =>
  (await log.read()).map((event) => sandlotEventOf(event)?.type)
const asked = (model: ScriptedModel): string[] =>
  model.requests.map(({ messages }) => messages.at(-1)?.content ?? '')

test('a client that shows nothing while it speaks is asked once more for a call that it wrote as text', async () => {
  let requests = 0
  const model: Model = {
    name: 'silent',
    demo: false,
    window: new ContextWindow({ set: 10_000 }),
    async stream() {
      requests++
      const text = '[TOOL_CALLS]look[ARGS]{}'
      return { text, thought: '', calls: [], finish: 'stop', usage: {} }
    },
  }
  const look = plainTool({ ...nothing, name: 'look', execute: () => expect.unreachable() })
  const result = await finish({ model, tools: [look], log: memoryLog(), prompt: 'go' })
  expect(result).toMatchObject({ reason: 'error', text: expect.stringMatching(/call of look as text/) })
  expect(requests).toBe(2)
})

describe('what is sent while it works', () => {
  test.each(['steer', 'queue'] as const)('%s: right behind the end it is a prompt of its own', async (as) => {
    const inbox = new Inbox()
    const model = scriptedModel([{ text: 'One.' }, { text: 'Two.' }])
    const once = [() => inbox.send('And now?', as)]
    const result = await finish({ model, tools: [], log: memoryLog(), prompt: 'go', inbox }, (event) => {
      if (isEnd(event)) once.pop()?.()
    })
    expect(result.text).toBe('Two.')
    expect(asked(model)).toEqual(['go', 'And now?'])
  })

  test('behind a Stop it is kept in the log, and goes with the next prompt', async () => {
    const inbox = new Inbox()
    const log = memoryLog()
    const model = scriptedModel([{ text: 'Two.' }])
    const stopped = await finish(
      { model, tools: [], log, prompt: 'go', inbox, signal: AbortSignal.abort('cancelled') },
      (event) => (isEnd(event) ? inbox.send('wait') : undefined),
    )
    expect(stopped.reason).toBe('cancelled')
    expect(inbox.waiting).toEqual([])
    await finish({ model, tools: [], log, prompt: 'next' })
    expect(model.requests[0]?.messages.slice(-2).map(({ content }) => content)).toEqual(['wait', 'next'])
  })

  test('what the log did not take stays in the inbox, for the next run', async () => {
    const inbox = new Inbox()
    inbox.send('Hello?', 'queue')
    const log = memoryLog()
    const full: LogStore = { ...log, append: () => Promise.reject(new Error('the disk is full')) }
    const lost = finish({ model: scriptedModel([]), tools: [], log: full, inbox })
    await expect(lost).rejects.toThrow('the disk is full')
    const model = scriptedModel([{ text: 'Yes.' }])
    expect(await finish({ model, tools: [], log, inbox })).toMatchObject({ text: 'Yes.' })
    expect(inbox.waiting).toEqual([])
    expect(asked(model)).toEqual(['Hello?'])
  })

  test('without a prompt it is one', async () => {
    const inbox = new Inbox()
    inbox.send('Hello?', 'queue')
    const model = scriptedModel([{ text: 'Yes.' }])
    expect(await finish({ model, tools: [], log: memoryLog(), inbox })).toMatchObject({ text: 'Yes.' })
    expect(asked(model)).toEqual(['Hello?'])
  })
})

test('tools that cannot be used are refused before anything is stored', async () => {
  const log = memoryLog()
  const one = plainTool({ name: 'one', ...nothing, execute: () => 'x' })
  const inbox = new Inbox()
  inbox.send('Hello?')
  const refused = finish({ model: scriptedModel([]), tools: [one, one], log, prompt: 'go', inbox })
  await expect(refused).rejects.toThrow('2 tools have this name')
  expect(await log.read()).toEqual([])
  expect(inbox.waiting).toHaveLength(1)
})

test('nothing goes on before the next event is asked for: a program that leaves at a call is there before it runs', async () => {
  let ran = 0
  const write = plainTool({ name: 'write', ...nothing, execute: () => `${++ran}` })
  const model = scriptedModel([{ calls: [{ id: 'a', name: 'write', args: {} }] }])
  for await (const event of runAgent({ model, tools: [write], log: memoryLog(), prompt: 'go' })) {
    if (event.sessionUpdate !== 'tool_call') continue
    await new Promise((resolve) => setImmediate(resolve))
    break
  }
  await new Promise((resolve) => setImmediate(resolve))
  expect(ran).toBe(0)
})

describe('two runs on one log', () => {
  test('the older one stops at its next write, and asks the model no more', async () => {
    const log = memoryLog()
    const inside = Promise.withResolvers<void>()
    const open = Promise.withResolvers<void>()
    const write = plainTool({
      name: 'write',
      ...nothing,
      execute: async () => {
        inside.resolve()
        await open.promise
      },
    })
    const older = scriptedModel([{ calls: [{ id: 'a', name: 'write', args: {} }] }])
    const first = finish({ model: older, tools: [write], log, prompt: 'go' })
    await inside.promise
    const newer = scriptedModel([{ text: 'I do not know whether it was written.' }])
    expect(await finish({ model: newer, tools: [write], log })).toMatchObject({ reason: 'completed' })
    open.resolve()
    await expect(first).rejects.toMatchObject({ code: 'conflict' })
    expect(older.requests).toHaveLength(1)
    const events = await log.read()
    expect(events.filter(isOutcome)).toHaveLength(1)
    expect(events.filter(isEnd)).toHaveLength(1)
  })

  test('property: however their steps fall, every call has one outcome, the prompt one end, and nothing runs twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 60 }), async (turns) => {
        const log = memoryLog()
        let ran = 0
        const write = plainTool({ name: 'write', ...nothing, execute: () => `${++ran}` })
        const options = (): RunOptions => ({
          model: scriptedModel(
            () =>
              ({ messages }) =>
                messages.some(({ role }) => role === 'tool')
                  ? { text: 'Done.' }
                  : { calls: [{ id: 'a', name: 'write', args: {} }] },
          ),
          tools: [write],
          log,
          prompt: { text: 'go', requestId: 'r1' },
        })
        const runs = [runAgent(options()), runAgent(options())]
        const over = [false, false]
        const step = async (which: 0 | 1): Promise<void> => {
          const next = await runs[which]?.next().catch((error: unknown) => {
            expect(error).toMatchObject({ code: 'conflict' })
          })
          over[which] = next?.done ?? true
        }
        for (const second of turns) if (over[second ? 1 : 0] !== true) await step(second ? 1 : 0)
        while (over[0] !== true) await step(0)
        while (over[1] !== true) await step(1)
        // If one was put out, the other did the work; if both were, the next run does it.
        const result = await finish(options())
        expect(result).toMatchObject({ reason: 'completed', text: 'Done.' })
        const events = await log.read()
        const calls = events.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call')
        expect(events.filter(isOutcome)).toHaveLength(calls.length)
        expect(events.filter(isEnd)).toHaveLength(1)
        expect(ran).toBeLessThanOrEqual(1)
        expect(events.map(({ _meta }) => _meta.sandlot.seq)).toEqual(events.map((_, place) => place + 1))
      }),
      { numRuns: 60 },
    )
  })
})

describe('a prompt under a request id', () => {
  const prompt = { text: 'go', requestId: 'r1' }

  test('is made once: sent again, whatever its text, it gives the same end, and asks nobody', async () => {
    const log = memoryLog()
    const first = await finish({ model: scriptedModel([{ text: 'One.' }]), tools: [], log, prompt })
    await finish({ model: scriptedModel([{ text: 'Two.' }]), tools: [], log, prompt: 'and then' })
    const before = await log.read()
    const again = { model: scriptedModel([]), tools: [], log, prompt: { ...prompt, text: 'other words' } }
    expect(await finish(again)).toEqual(first)
    expect(await log.read()).toEqual(before)
  })

  test('sent again by a program that died between its end and what waited behind it: that is run now', async () => {
    const inbox = new Inbox()
    const log = memoryLog()
    const run = runAgent({ model: scriptedModel([{ text: 'One.' }]), tools: [], log, prompt, inbox })
    for (let step = await run.next(); step.done !== true && !isEnd(step.value); step = await run.next())
      if (inbox.waiting.length === 0 && !(await typesOf(log)).includes('message_queued'))
        inbox.send('And then?', 'queue')
    await run.return(undefined as never)
    const model = scriptedModel([{ text: 'Two.' }])
    expect(await finish({ model, tools: [], log, prompt })).toMatchObject({ text: 'One.' })
    expect(asked(model)).toEqual(['And then?'])
    expect((await log.read()).filter(isEnd)).toHaveLength(2)
  })

  test('that a run left is finished, not made again', async () => {
    const log = memoryLog()
    const run = runAgent({ model: scriptedModel([]), tools: [], log, prompt })
    await run.next()
    await run.return(undefined as never)
    const model = scriptedModel([{ text: 'One.' }])
    expect(await finish({ model, tools: [], log, prompt })).toMatchObject({ text: 'One.' })
    expect((await typesOf(log)).filter((type) => type === 'prompt_started')).toHaveLength(1)
  })
})

describe('what calls printed', () => {
  test('can be read in later turns', async () => {
    const seen: string[] = []
    const tool = (name: string, execute: Parameters<typeof defineTool>[0]['execute']) =>
      defineTool({
        name,
        description: 'For tests.',
        kind: 'read',
        input: z.strictObject({}),
        readOnly: true,
        title: () => name,
        execute,
      })
    const long = `${'x'.repeat(50_000)}the end`
    const prints = tool('print', async function* () {
      yield { type: 'progress', message: 'printing' }
      return { status: 'completed', forModel: long }
    })
    const reads = tool('read', async function* (_, ctx) {
      yield { type: 'progress', message: 'reading' }
      seen.push(Buffer.from(await ctx.output.read(50_000, 60_000, 'a')).toString())
      return { status: 'completed', forModel: 'read' }
    })
    const model = scriptedModel([
      { calls: [{ id: 'a', name: 'print', args: {} }] },
      { calls: [{ id: 'b', name: 'read', args: {} }] },
      { text: 'Done.' },
    ])
    await finish({ model, tools: [prints, reads], log: memoryLog(), prompt: 'go' })
    expect(seen).toEqual(['the end'])
  })

  test('can be read in a later run on the same log', async () => {
    const log = memoryLog()
    const long = `${'x'.repeat(50_000)}the end`
    const prints = plainTool({ name: 'print', ...nothing, execute: () => long })
    const prompts = scriptedModel([{ calls: [{ id: 'a', name: 'print', args: {} }] }, { text: 'Done.' }])
    await finish({ model: prompts, tools: [prints], log, prompt: 'go' })
    const args = { call_id: 'a', from_byte: 50_000 }
    const model = scriptedModel([{ calls: [{ id: 'b', name: 'read_tool_output', args }] }, { text: 'Read.' }])
    await finish({ model, tools: [prints, readToolOutput], log, prompt: 'and the rest?' })
    expect(model.requests[1]?.messages.at(-1)?.content).toContain('the end')
  })

  test('is named in a result that is cut, where the model has a tool that reads it', async () => {
    const told = async (...more: Tool[]): Promise<unknown> => {
      const model = scriptedModel([{ calls: [{ id: 'a', name: 'print', args: {} }] }, { text: 'Done.' }])
      const prints = plainTool({ name: 'print', ...nothing, execute: () => 'x'.repeat(50_000) })
      await finish({ model, tools: [prints, ...more], log: memoryLog(), prompt: 'go' })
      return model.requests[1]?.messages.at(-1)?.content
    }
    expect(await told(readToolOutput)).toContain('read_tool_output (call_id "a"')
    expect(await told()).toContain('To see the rest, ask for less at a time.')
  })

  test('is bounded: the oldest are forgotten first, and what was forgotten does not begin in the middle', async () => {
    const store = new MemoryStore()
    await store.sessions.create({ id: 's', userId: 'u', cwd: '/', mode: 'yolo', at: 0 })
    const half = new Uint8Array(MAX_OUTPUT_BYTES)
    for (const callId of ['a', 'b', 'c']) await store.outputs.append('s', callId, 0, half)
    await store.outputs.append('s', 'a', half.length, new Uint8Array(1))
    const sizes = await Promise.all(
      ['a', 'b', 'c'].map((callId) => store.outputs.read('s', callId, 0, Infinity)),
    )
    expect(sizes.map(({ length }) => length)).toEqual([0, half.length, half.length])
  })
})

describe('a number that limits nothing', () => {
  test.each<[string, Partial<RunOptions>]>([
    ['maxTurns', { maxTurns: Number.NaN }],
    ['maxTurns', { maxTurns: 0 }],
    ['maxConcurrentTools', { maxConcurrentTools: 11 }],
    ['toolTimeoutMs', { toolTimeoutMs: -1 }],
    ['budgets.tokens', { budgets: { tokens: Number.NaN } }],
    ['retry.attempts', { retry: { attempts: Number.NaN } }],
    ['retry.capMs', { retry: { capMs: Infinity } }],
  ])('%s is refused by name, and nothing is stored', async (name, wrong) => {
    const log = memoryLog()
    const model = scriptedModel([{ text: 'One.' }])
    const run = finish({ model, tools: [], log, prompt: 'go', ...wrong })
    await expect(run).rejects.toThrow(RangeError)
    await expect(run).rejects.toThrow(name)
    expect(await log.read()).toEqual([])
    expect(model.requests).toEqual([])
  })

  test('and no limit at all may be said', async () => {
    const model = scriptedModel([{ text: 'One.' }])
    const none = { maxTurns: Infinity, budgets: { tokens: Infinity } }
    const { text } = await finish({ model, tools: [], log: memoryLog(), prompt: 'go', ...none })
    expect(text).toBe('One.')
  })
})
