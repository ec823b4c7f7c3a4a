/** A person changes a call before they allow it, and allows a kind of call until a prompt ends. */
import { metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { rulesSection } from '../../src/approval/config.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import {
  AgentBench,
  happened,
  newSession,
  outcomes,
  textsForModel,
  whenHappened,
} from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

function fakeShell(ran: string[]): Tool {
  return defineTool({
    name: 'shell',
    description: 'Runs a command.',
    kind: 'execute',
    input: z.strictObject({
      command: z.string().min(1).describe('The command.'),
      times: z.int().default(1).describe('How often.'),
    }),
    readOnly: false,
    title: ({ command }) => `Run ${String(command)}`,
    requests: ({ command }) => [{ kind: 'shell', command }],
    // oxlint-disable-next-line require-yield
    async *execute({ command, times }) {
      ran.push(`${command} ${times}`)
      return { status: 'completed', forModel: 'ran' }
    },
  })
}
const run = (...commands: string[]) =>
  toolCalls(
    commands.map((command, at) => ({ id: `call_${command}_${at}`, name: 'shell', args: { command } })),
  )
const ADA = { id: 'u_bob', name: 'Bob' }

test('the changed call runs, and the log, the screen and the model know who changed what', async () => {
  const ran: string[] = []
  await using bench = await AgentBench.start([run('rm -rf a'), textAnswer('ok')])
  const session = await newSession(await bench.core({ tools: [fakeShell(ran)] }), 'manual')
  const { done } = await session.prompt('clean')
  await whenHappened(session, 'approval_asked')
  expect(await session.waitingApprovals()).toMatchObject([
    {
      callId: 'call_rm -rf a_0',
      arguments: { command: 'rm -rf a' },
      schema: { properties: { command: { type: 'string' } } },
    },
  ])
  const input = { command: 'rm -rf a/tmp', times: 2 }
  await session.answer('call_rm -rf a_0', 'allow_once', { input, author: ADA })
  await done
  expect(ran).toEqual(['rm -rf a/tmp 2'])
  const answered = session.log.find((event) => sandlotEventOf(event)?.type === 'approval_answered')
  expect(answered && sandlotEventOf(answered)).toMatchObject({ allowed: true, by: 'user', input })
  expect(answered && metaOf(answered).author).toEqual(ADA)
  expect(textsForModel(session.log)['call_rm -rf a_0']).toBe(
    '[The user changed this call before it ran: command is now "rm -rf a/tmp"; times is now 2]\nran',
  )
  const shown = session.log
    .reduce(foldTranscript, emptyTranscript())
    .entries.find(({ type }) => type === 'call')
  expect(shown).toMatchObject({
    title: 'Run rm -rf a/tmp',
    rawInput: { command: 'rm -rf a' },
    approval: { answer: { input, author: ADA } },
  })
  // The model’s own words stay its own.
  expect(JSON.stringify(bench.provider.requests.at(-1))).toContain('rm -rf a\\\\\\"}')
})

test('what does not fit, or a rule denies, is refused with its sentence, and the question stays', async () => {
  const ran: string[] = []
  await using bench = await AgentBench.start([run('touch a'), textAnswer('ok')])
  const rules = rulesSection.parse({ deny: [{ shell: 'curl *' }] })
  const session = await newSession(await bench.core({ tools: [fakeShell(ran)], rules }), 'manual')
  const { done } = await session.prompt('go')
  await whenHappened(session, 'approval_asked')
  const edit = (input: Record<string, unknown>, option = 'allow_once') =>
    session.answer('call_touch a_0', option, { input })
  await expect(edit({ command: 'curl x' })).rejects.toMatchObject({
    code: 'forbidden',
    message:
      'The changed call is not allowed here: curl x is what is meant by this Sandlot’s rule that denies commands that begin with curl.',
  })
  await expect(edit({ comand: 'touch b' })).rejects.toMatchObject({
    code: 'bad_request',
    message: expect.stringContaining('there is no argument "comand"; did you mean command?'),
  })
  for (const option of ['reject_once', 'allow_session'])
    await expect(edit({ command: 'touch b' }, option)).rejects.toMatchObject({ code: 'bad_request' })
  expect(happened(session.log, 'approval_answered')).toEqual([])
  await edit({ command: 'touch b' })
  await done
  expect(ran).toEqual(['touch b 1'])
})

test('a restart between the answer and the run keeps what was changed, and one before it can be changed', async () => {
  const ran: string[] = []
  await using bench = await AgentBench.start([run('touch a', 'touch z'), textAnswer('ok')])
  const first = await bench.core({ tools: [fakeShell(ran)] })
  const session = await newSession(first, 'manual')
  await session.prompt('go')
  await whenAsked(session, 2)
  // The second waits for the first, which nobody has answered.
  await session.answer('call_touch z_1', 'allow_once', { input: { command: 'touch changed' } })
  await first.leave()
  expect(ran).toEqual([])
  const second = await bench.core({ tools: [fakeShell(ran)] })
  await second.manager.resumeUnfinished()
  const again = await second.manager.get(session.userId, session.id)
  await again.answer('call_touch a_0', 'allow_once', { input: { command: 'touch late' } })
  await whenHappened(again, 'prompt_ended')
  expect(ran).toEqual(['touch late 1', 'touch changed 1'])
  expect(outcomes(again.log)).toEqual({ 'call_touch a_0': ['completed'], 'call_touch z_1': ['completed'] })
})

test('“for this message” holds until its prompt ends, also over a restart', async () => {
  const ran: string[] = []
  await using bench = await AgentBench.start([
    run('npm test'),
    run('npm test -- -w', 'rm x'),
    textAnswer('ok'),
    run('npm test again'),
    textAnswer('ok'),
  ])
  const first = await bench.core({ tools: [fakeShell(ran)] })
  const session = await newSession(first, 'manual')
  await session.prompt('go')
  await whenHappened(session, 'approval_asked')
  expect(happened(session.log, 'approval_asked')[0]?.options).toContainEqual({
    optionId: 'allow_prompt',
    name: 'Allow for this message',
    kind: 'allow_always',
    remembers: { scope: 'prompt', rules: [{ shell: 'npm test *' }] },
  })
  await session.answer('call_npm test_0', 'allow_prompt')
  await whenAsked(session, 2)
  await first.leave()
  const second = await bench.core({ tools: [fakeShell(ran)] })
  await second.manager.resumeUnfinished()
  const again = await second.manager.get(session.userId, session.id)
  await again.answer('call_rm x_1', 'allow_once')
  await whenHappened(again, 'prompt_ended')
  expect(ran).toEqual(['npm test 1', 'npm test -- -w 1', 'rm x 1'])
  expect(happened(again.log, 'approval_asked').map(({ toolCallId }) => toolCallId)).toEqual([
    'call_npm test_0',
    'call_rm x_1',
  ])
  const { done } = await again.prompt('again')
  await whenAsked(again, 3)
  await again.answer('call_npm test again_0', 'reject_once')
  await done
  expect(ran).toHaveLength(3)
})

/** Resolves when the log has so many questions. */
async function whenAsked(session: Parameters<typeof whenHappened>[0], count: number): Promise<void> {
  const subscription = session.subscribe(0)
  try {
    if (happened(subscription.catchUp, 'approval_asked').length >= count) return
    for await (const _ of subscription.live)
      if (happened(session.log, 'approval_asked').length >= count) return
  } finally {
    subscription.close()
  }
}
