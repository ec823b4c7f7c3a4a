/** The number of questions to a person, and rules that would have answered them. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { AskedReport } from '@sandlot/shared/account/rules-api'
import type { Session } from '../../src/session/session.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { AgentBench, newSession, whenEvent } from '../support/agent-fixture.ts'
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const shell: Tool = defineTool({
  name: 'shell',
  description: 'Runs a command.',
  kind: 'execute',
  input: z.strictObject({ command: z.string().describe('The command.') }),
  readOnly: false,
  title: ({ command }) => String(command),
  requests: ({ command }) => [{ kind: 'shell', command }],
  // oxlint-disable-next-line require-yield
  async *execute() {
    return { status: 'completed', forModel: 'ran' }
  },
})
const never = new AbortController().signal
const DAY_MS = 86_400_000

test('what was allowed more than once and never denied is proposed, most first; a rule that there is, is not', async () => {
  const commands = [
    'npm test a',
    'npm test b',
    'npm test c',
    'git push one',
    'git push two',
    'make x',
    'rm one.txt',
    'rm one.txt',
  ]
  let n = 0
  await using bench = await AgentBench.start(
    commands.flatMap((command) => [
      toolCalls([{ id: `call_${n++}`, name: 'shell', args: { command } }]),
      textAnswer('ok'),
    ]),
  )
  let now = Date.now() - 40 * DAY_MS
  const core = await bench.core({ tools: [shell], parts: { now: () => (now += 10) } })
  const [first, second] = [await newSession(core, 'manual'), await newSession(core, 'manual')]
  const asked = async () => (await core.manager.rules.answer('u_ada', { do: 'asked' }, never)) as AskedReport
  expect(await asked()).toEqual({ days: 30, asked: 0, saving: [] })
  // Longer ago than is looked at.
  await run(first, 'call_0', 'allow_once')
  now = Date.now()
  await run(first, 'call_1', 'allow_once')
  await run(second, 'call_2', 'allow_session')
  await run(first, 'call_3', 'allow_once')
  await run(second, 'call_4', 'reject_once')
  await run(first, 'call_5', 'allow_once')
  await run(first, 'call_6', 'allow_once')
  await run(second, 'call_7', 'allow_once')
  expect(await asked()).toEqual({
    days: 30,
    asked: 7,
    saving: [
      { match: { shell: 'npm test *' }, times: 2, title: 'npm test c' },
      { match: { command: 'rm one.txt' }, times: 2, title: 'rm one.txt' },
    ],
  })
  await core.manager.rules.answer(
    'u_ada',
    { do: 'add', rule: { effect: 'allow', match: { shell: 'npm test *' } } },
    never,
  )
  expect((await asked()).saving.map(({ match }) => match)).toEqual([{ command: 'rm one.txt' }])
  expect(await core.manager.rules.answer('u_bob', { do: 'asked' }, never)).toMatchObject({
    asked: 0,
    saving: [],
  })
})

async function run(session: Session, callId: string, optionId: string): Promise<void> {
  const { done } = await session.prompt('go')
  await whenEvent(session, (event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'approval_asked' && happened.toolCallId === callId
  })
  await session.answer(callId, optionId)
  await done
}
