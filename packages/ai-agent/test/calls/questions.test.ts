/** Several calls of one turn that ask: the questions go out together, the calls run in the order of the model. */
import { metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type ApprovalAnswer, type Tool } from '../../src/tools/tool.ts'
import { TestBatch } from './test-batch.ts'

function recording(name: string, readOnly: boolean, ran: string[]): Tool {
  return defineTool({
    name,
    description: 'For tests.',
    kind: readOnly ? 'read' : 'execute',
    input: z.strictObject({}),
    readOnly,
    title: () => name,
    async *execute(_args, { ids }) {
      ran.push(`+${ids.callId}`)
      yield { type: 'progress', message: 'at work' }
      ran.push(`-${ids.callId}`)
      return { status: 'completed', forModel: ids.callId }
    },
  })
}

test('every event of a call, and the time limit of its question, are by the clock that is given', async () => {
  const batch = new TestBatch({
    tools: [recording('change', false, [])],
    mode: 'manual',
    now: () => 5000,
    answer: () => ({ allowed: true, by: 'user' }),
  })
  await batch.call('change', {}, 'a')
  expect(batch.story()).toEqual(['announced a', 'asked a', 'in_progress a', 'completed a'])
  expect(new Set(batch.events.map((event) => metaOf(event).at))).toEqual(new Set([5000]))
  expect(batch.log.map(sandlotEventOf).find((event) => event?.type === 'approval_asked')).toMatchObject({
    expiresAt: 65_000,
  })
})

function setup(): {
  ran: string[]
  batch: TestBatch
  answers: Map<string, PromiseWithResolvers<ApprovalAnswer>>
} {
  const ran: string[] = []
  const answers = new Map(['a', 'b', 'c'].map((id) => [id, Promise.withResolvers<ApprovalAnswer>()]))
  const batch = new TestBatch({
    tools: [recording('look', true, ran), recording('change', false, ran)],
    mode: 'manual',
    answer: (id) => answers.get(id)?.promise ?? { allowed: false, by: 'unattended' },
  })
  return { ran, batch, answers }
}

const allowed: ApprovalAnswer = { allowed: true, optionId: 'allow_once', by: 'user' }
const denied: ApprovalAnswer = { allowed: false, optionId: 'reject_once', by: 'user' }
const changes = ['a', 'b', 'c'].map((id) => ({ id, name: 'change', args: {} }))

test('all questions are asked before the first is answered; answered in any order, the calls run in the model’s', async () => {
  const { ran, batch, answers } = setup()
  const outcomes = await batch.run(changes, (event) => {
    const asked = batch.story().filter((line) => line.startsWith('asked'))
    if (sandlotEventOf(event)?.type !== 'approval_asked' || asked.length < 3) return true
    expect(ran).toEqual([])
    for (const id of ['c', 'b', 'a']) answers.get(id)?.resolve(allowed)
    return true
  })
  expect(ran).toEqual(['+a', '-a', '+b', '-b', '+c', '-c'])
  expect(outcomes.map(({ forModel }) => forModel)).toEqual(['a', 'b', 'c'])
})

test('a denied call cancels none of its siblings, and nobody waits for it', async () => {
  const { ran, batch, answers } = setup()
  answers.get('a')?.resolve(denied)
  answers.get('b')?.resolve(allowed)
  const running = batch.run(changes, (event) => {
    // The last one is allowed when the second has run: it did not wait for that question.
    if (batch.story().includes('completed b')) answers.get('c')?.resolve(allowed)
    return event !== undefined
  })
  const outcomes = await running
  expect(outcomes.map(({ status }) => status)).toEqual(['failed', 'completed', 'completed'])
  expect(ran).toEqual(['+b', '-b', '+c', '-c'])
})

test('a call that needs no question waits for those before it that do', async () => {
  const { ran, batch, answers } = setup()
  const running = batch.run([changes[0], { id: 'l', name: 'look', args: {} }].flatMap((call) => call ?? []))
  await Promise.resolve()
  expect(ran).toEqual([])
  answers.get('a')?.resolve(allowed)
  await running
  expect(ran).toEqual(['+a', '-a', '+l', '-l'])
})

test('Stop while the second waits for its turn: it is cancelled and never runs', async () => {
  const { ran, batch, answers } = setup()
  answers.get('b')?.resolve(allowed)
  const outcomes = await batch.run(changes.slice(0, 2), () => {
    if (batch.story().filter((line) => line.startsWith('asked')).length === 2) batch.stop.abort('cancelled')
    return true
  })
  expect(outcomes).toMatchObject([
    { status: 'failed', reason: 'cancelled' },
    { status: 'failed', reason: 'cancelled' },
  ])
  expect(ran).toEqual([])
})
