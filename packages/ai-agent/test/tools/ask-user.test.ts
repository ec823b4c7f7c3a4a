import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { problemsOfAnswer } from '@sandlot/shared/chat/question'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { askUser } from '../../src/tools/builtin/ask-user.ts'
import type { ApprovalAnswer, ToolOutcome } from '../../src/tools/tool.ts'
import {
  AgentBench,
  happened,
  newSession,
  outcomes,
  whenHappened,
  whenIdle,
} from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { TestBatch } from '../calls/test-batch.ts'

const ask = (args: Record<string, unknown>, answer: ApprovalAnswer): Promise<ToolOutcome> =>
  new TestBatch({ tools: [askUser], mode: 'manual', answer: () => answer }).call('ask_user', args, 'c1')
const byUser = { allowed: true, by: 'user' } as const

describe('what the model hears', () => {
  test('a choice', async () => {
    const args = { question: 'Which colour?', choices: ['red', 'blue'] }
    expect(await ask(args, { ...byUser, optionId: 'choice_2' })).toMatchObject({
      status: 'completed',
      forModel: 'The user answered:\nblue',
      data: { content: { answer: 'blue' } },
    })
    const own = { ...byUser, optionId: 'answer', content: { answer: 'green' } }
    expect((await ask(args, own)).forModel).toBe('The user answered:\ngreen')
  })

  test('a form', async () => {
    const fields = [
      { name: 'size', type: 'number' },
      { name: 'dry', type: 'yes_no', label: 'Dry run?' },
      { name: 'parts', type: 'choices', choices: ['a', 'b', 'c'] },
    ]
    const content = { size: 3, dry: true, parts: ['a', 'c'] }
    const outcome = await ask({ question: 'How?', fields }, { ...byUser, optionId: 'answer', content })
    expect(outcome.forModel).toBe('The user answered:\nsize: 3\ndry: yes\nparts: a, c')
  })

  test('no answer: skipped, nobody there, too late, cancelled', async () => {
    const args = { question: 'Well?' }
    const no = { allowed: false, by: 'user', optionId: 'decline', reason: 'later' }
    expect(await ask(args, no)).toMatchObject({
      status: 'completed',
      forModel: 'The user chose not to answer. They said: later Go on with what you know.',
    })
    expect(await ask(args, { allowed: false, by: 'unattended' })).toMatchObject({
      status: 'failed',
      reason: 'denied',
      forModel: expect.stringContaining('Nobody can be shown a question here.'),
    })
    expect(await ask(args, { allowed: false, by: 'expiry' })).toMatchObject({ reason: 'denied' })
    expect(await ask(args, { allowed: false, by: 'cancel' })).toMatchObject({ reason: 'cancelled' })
  })

  test('a question that cannot be put is refused before anybody is asked', async () => {
    const wrong = [
      { question: 'x', choices: ['a', 'b'], fields: [{ name: 'a', type: 'text' }] },
      { question: 'x', fields: [{ name: 'a', type: 'choice' }] },
      {
        question: 'x',
        fields: [
          { name: 'a', type: 'text' },
          { name: 'a', type: 'text' },
        ],
      },
    ]
    for (const args of wrong)
      expect(await ask(args, byUser)).toMatchObject({ status: 'failed', reason: 'invalid_arguments' })
  })
})

test('an answer that does not fit its form is refused with what is wrong', () => {
  const question = {
    message: '?',
    requestedSchema: {
      type: 'object' as const,
      properties: { n: { type: 'integer' as const }, s: { type: 'string' as const, enum: ['a'] } },
      required: ['n'],
    },
  }
  expect(problemsOfAnswer(question, { n: 1, s: 'in my words' })).toEqual([])
  expect(problemsOfAnswer(question, { s: 'a' })).toEqual(['n is missing.'])
  expect(problemsOfAnswer(question, { n: 1.5 })).toEqual(['n must be integer.'])
  expect(problemsOfAnswer(question, { n: Number('1234567890123456789') })).toEqual([
    'n has more digits than can be sent without changing them.',
  ])
  expect(problemsOfAnswer(question, { n: 1, toString: 'x' })).toEqual(['toString was not asked for.'])
})

describe('in a session', () => {
  let bench: AgentBench
  const asks = { id: 'c1', name: 'ask_user', args: { question: 'Which colour?', choices: ['red', 'blue'] } }
  beforeEach(async () => {
    bench = await AgentBench.start([toolCalls([asks]), textAnswer('It is blue.')])
  })
  afterEach(() => bench[Symbol.asyncDispose]())

  test('the question is in the log, survives a restart, and the first answer counts', async () => {
    const before = await bench.core({ tools: [askUser] })
    const session = await newSession(before, 'manual')
    await session.prompt('paint it')
    await whenHappened(session, 'approval_asked')
    await before.leave()

    const after = await bench.core({ tools: [askUser] })
    await after.manager.resumeUnfinished()
    const again = await after.manager.get('u_ada', session.id)
    expect(again.pendingApprovals()).toMatchObject([
      { toolCallId: 'c1', question: { message: 'Which colour?' }, options: { length: 4 } },
    ])
    expect(await again.answer('c1', 'choice_2')).toEqual({ answered: true, by: 'user' })
    expect(await again.answer('c1', 'choice_1')).toMatchObject({ answered: false })
    await whenIdle(again)
    expect(happened(again.log, 'approval_asked')).toHaveLength(1)
    expect(outcomes(again.log)).toEqual({ c1: ['completed'] })
    const told = bench.provider.requests.at(-1)?.body
    expect(JSON.stringify(told)).toContain('The user answered:\\nblue')
  })

  test('an answer that does not fit is refused, and can be given again', async () => {
    const core = await bench.core({ tools: [askUser] })
    const session = await newSession(core, 'manual')
    await session.prompt('paint it')
    await whenHappened(session, 'approval_asked')
    await expect(session.answer('c1', 'answer', { content: { other: 'x' } })).rejects.toMatchObject({
      code: 'bad_request',
    })
    await session.answer('c1', 'answer', { content: { answer: 'green' } })
    await whenIdle(session)
    const answered = session.log.map(sandlotEventOf).find((event) => event?.type === 'approval_answered')
    expect(answered).toMatchObject({ content: { answer: 'green' }, allowed: true })
  })

  test('in a prompt that nobody attends it is refused at once, and the model goes on', async () => {
    const core = await bench.core({ tools: [askUser] })
    const session = await newSession(core, 'yolo')
    const accepted = await session.prompt('paint it', { unattended: true })
    expect(await accepted.done).toMatchObject({ reason: 'completed' })
    expect(outcomes(session.log)).toEqual({ c1: ['failed denied'] })
  })
})
