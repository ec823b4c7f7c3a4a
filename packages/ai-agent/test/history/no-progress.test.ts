/** Row 24: the same call for ever, A-B-A-B, and polling that is no loop. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { type Turn, turnsOf } from '../../src/history/model-messages.ts'
import { isStuck, makeNoProgress } from '../../src/history/no-progress.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { Inbox } from '../../src/plain/inbox.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { AgentBench, ask, happened, newSession, outcomes } from '../support/agent-fixture.ts'
import { type Scripted, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'

/** Answers what `result` says for this call. */
function tool(result: (nth: number) => string): Tool {
  let nth = 0
  return defineTool({
    name: 'look',
    description: 'For tests.',
    kind: 'read',
    input: z.strictObject({ at: z.string().describe('Where.') }),
    readOnly: true,
    title: () => 'Look',
    // oxlint-disable-next-line require-yield
    async *execute() {
      return { status: 'completed', forModel: result(++nth) }
    },
  })
}
const look = (at: string, id = 'call_0'): Scripted => toolCalls([{ id, name: 'look', args: { at } }])
const times = (count: number, make: (place: number) => Scripted): Scripted[] =>
  Array.from({ length: count }, (_, place) => make(place))

async function prompt(script: Scripted[], result: (nth: number) => string) {
  const bench = await AgentBench.start(script)
  const session = await newSession(await bench.core({ tools: [tool(result)] }))
  await ask(session, 'go')
  return {
    log: session.log,
    requests: bench.provider.requests.length,
    ended: happened(session.log, 'prompt_ended')[0],
    outcomes: Object.values(outcomes(session.log)).flat(),
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  }
}

describe('a model that goes round in a circle', () => {
  test('the same call with the same result: refused once, then the prompt ends with what to do', async () => {
    await using run = await prompt(
      times(10, () => look('a')),
      () => 'nothing',
    )
    expect(run.outcomes).toEqual([
      ...Array.from({ length: 3 }, () => 'completed'),
      'failed no_progress',
      'failed no_progress',
    ])
    expect(run.ended).toMatchObject({ reason: 'loop', stopReason: 'max_turn_requests' })
    expect(run.ended).toHaveProperty('text', expect.stringContaining('again and again'))
  })

  test('A-B-A-B-A-B', async () => {
    await using run = await prompt(
      times(12, (place) => look(place % 2 === 0 ? 'a' : 'b')),
      () => 'nothing',
    )
    expect(run.outcomes.slice(6)).toEqual(['failed no_progress', 'failed no_progress'])
    expect(run.ended).toMatchObject({ reason: 'loop' })
  })

  test('one that takes the hint goes on, and may look again later', async () => {
    const script = [...times(4, () => look('a')), look('b'), look('a'), textAnswer('I see.')]
    await using run = await prompt(script, () => 'nothing')
    expect(run.outcomes).toEqual([
      ...Array.from({ length: 3 }, () => 'completed'),
      'failed no_progress',
      'completed',
      'completed',
    ])
    expect(run.ended).toMatchObject({ reason: 'completed' })
  })

  test('polling with new results is no circle', async () => {
    const script = [...times(12, () => look('a')), textAnswer('Done.')]
    await using run = await prompt(script, (nth) => `${nth * 10} %`)
    expect(run.outcomes).toEqual(Array.from({ length: 12 }, () => 'completed'))
    expect(run.ended).toMatchObject({ reason: 'completed' })
  })

  test('arguments in another order are the same arguments', () => {
    const turns = [1, 2, 3].map((number) => turn(number, [['x', { a: 1, b: 2 }, 'r']]))
    expect(makeNoProgress(turns, [{ name: 'x', args: '{"b":2,"a":1}' }])).toBe(true)
    expect(makeNoProgress(turns, [{ name: 'x', args: { a: 2, b: 1 } }])).toBe(false)
  })
})

/** A finished turn as the log has it. */
function turn(
  number: number,
  calls: [name: string, args: unknown, result: string, reason?: 'no_progress'][],
): Turn {
  const promptId = 'p_1'
  const meta = { _meta: { sandlot: { v: 1, at: 1, promptId, turn: number } } }
  const log = calls.flatMap(([name, rawInput, forModel, reason], place) => {
    const toolCallId = `${number}.${place}`
    const failed = { status: 'failed', _meta: { sandlot: { ...meta._meta.sandlot, reason } } }
    return [
      {
        sessionUpdate: 'tool_call',
        toolCallId,
        name,
        title: name,
        kind: 'read',
        status: 'pending',
        rawInput,
        ...meta,
      },
      {
        sessionUpdate: 'tool_call_update',
        toolCallId,
        rawOutput: { forModel },
        ...(reason === undefined ? { status: 'completed', ...meta } : failed),
      },
    ]
  }) as unknown as SessionEvent[]
  const [made] = turnsOf(log, promptId)
  if (made === undefined) throw new Error('there is no turn')
  return made
}

const letter = fc.constantFrom('a', 'b', 'c', 'd', 'e')

test('property: any circle of one to five turns is seen in its fourth round, and not before its third is over', () => {
  fc.assert(
    fc.property(fc.array(letter, { minLength: 1, maxLength: 5 }), (circle) => {
      const names = Array.from(
        { length: circle.length * 4 },
        (_, place) => circle[place % circle.length] ?? '',
      )
      const turns = names.map((name, place) => turn(place + 1, [[name, {}, `saw ${name}`]]))
      const seen = names.findIndex((name, place) => makeNoProgress(turns.slice(0, place), [{ name }]))
      expect(seen).toBeGreaterThanOrEqual(3)
      expect(seen).toBeLessThanOrEqual(circle.length * 3)
    }),
  )
})

test('property: results that all differ are never a circle', () => {
  fc.assert(
    fc.property(fc.array(letter, { maxLength: 40 }), letter, (names, name) => {
      const turns = names.map((each, place) => turn(place + 1, [[each, {}, `result ${place}`]]))
      expect(makeNoProgress(turns, [{ name }])).toBe(false)
    }),
  )
})

test('two refusals in a row end it, one does not', () => {
  const refused = (number: number): Turn => turn(number, [['x', {}, 'no', 'no_progress']])
  expect(isStuck([refused(1), refused(2)])).toBe(true)
  expect(isStuck([refused(1), turn(2, [['x', {}, 'r']])])).toBe(false)
  expect(isStuck([refused(1)])).toBe(false)
})

test('a circle through calls of a tool that does not exist, or through empty answers, ends it as any other', async () => {
  const unknown = scriptedModel((place) => ({ calls: [{ id: `c${place}`, name: 'none', args: {} }] }))
  expect(await endOf(unknown)).toBe('loop')
  expect(unknown.requests).toHaveLength(5)
  const silent = scriptedModel((place) =>
    place % 2 === 0 ? { calls: [{ id: `c${place}`, name: 'look', args: { at: 'a' } }] } : {},
  )
  expect(await endOf(silent)).toBe('loop')
  expect(silent.requests).toHaveLength(9)
})

test('what the user says meanwhile begins it anew: who asks to look again is looked for', async () => {
  const inbox = new Inbox()
  let looked = 0
  const model = scriptedModel((place) => {
    if (place === 2 || place === 5 || place === 8) inbox.send('Look again.')
    return place < 10
      ? { calls: [{ id: `c${place}`, name: 'look', args: { at: 'a' } }] }
      : { text: 'The same.' }
  })
  const same = tool(() => {
    looked++
    return 'the same'
  })
  const run = runAgent({ model, tools: [same], log: memoryLog(), prompt: 'Look.', inbox })
  let step = await run.next()
  while (step.done !== true) step = await run.next()
  expect(step.value).toMatchObject({ reason: 'completed', text: 'The same.' })
  expect(looked).toBe(10)
})

async function endOf(model: ScriptedModel): Promise<string> {
  const run = runAgent({
    model,
    tools: [tool(() => 'the same')],
    log: memoryLog(),
    prompt: 'go',
    maxTurns: 30,
  })
  let step = await run.next()
  while (step.done !== true) step = await run.next()
  return step.value.reason
}
