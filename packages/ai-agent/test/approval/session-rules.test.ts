/** Rules as a session lives with them: remembered, kept over a restart, revoked, held down by everybody's. */
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import type { RuleMatch } from '@sandlot/shared/chat/rules'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { rulesSection } from '../../src/approval/config.ts'
import type { PromptOptions } from '../../src/session/intake.ts'
import type { Session } from '../../src/session/session.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { AgentBench, happened, newSession, outcomes, whenHappened } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

/** A shell without a sandbox: it writes down what it is given. */
function fakeShell(ran: string[]): Tool {
  return defineTool({
    name: 'shell',
    description: 'Runs a command.',
    kind: 'execute',
    input: z.strictObject({ command: z.string().describe('The command.') }),
    readOnly: false,
    title: () => 'Run',
    requests: ({ command }) => [{ kind: 'shell', command }],
    // oxlint-disable-next-line require-yield
    async *execute({ command }) {
      ran.push(command)
      return { status: 'completed', forModel: 'ok' }
    },
  })
}

const run = (id: string, command: string) => toolCalls([{ id, name: 'shell', args: { command } }])
const runs = (...commands: string[]) =>
  commands.flatMap((command, at) => [run(`call_${at}`, command), textAnswer('ok')])
const ask = async (session: Session, text: string, options: PromptOptions = {}): Promise<void> => {
  await (
    await session.prompt(text, options)
  ).done
}
const asked = (session: Session) => happened(session.log, 'approval_asked')
const newRule = (match: RuleMatch) => ({ do: 'add' as const, rule: { effect: 'deny' as const, match } })
const never = new AbortController().signal

test('a command that is proven to only read runs without a question; the reasons of a question are in the log', async () => {
  const ran: string[] = []
  await using bench = await AgentBench.start(runs('cat a && ls', 'ls; touch x'))
  const session = await newSession(await bench.core({ tools: [fakeShell(ran)] }), 'manual')
  await ask(session, 'look')
  expect(asked(session)).toEqual([])
  const { done } = await session.prompt('touch')
  await whenHappened(session, 'approval_asked')
  expect(asked(session)).toMatchObject([
    {
      why: [{ part: 'touch x', because: 'may change something' }],
      options: [
        { optionId: 'allow_once' },
        { optionId: 'allow_prompt', remembers: { scope: 'prompt', rules: [{ shell: 'touch *' }] } },
        { optionId: 'allow_session', remembers: { scope: 'session', rules: [{ shell: 'touch *' }] } },
        { optionId: 'allow_always_exact', remembers: { rules: [{ command: 'ls; touch x' }] } },
        { optionId: 'allow_always', remembers: { rules: [{ shell: 'touch *' }] } },
        { optionId: 'reject_once' },
      ],
    },
  ])
  await session.answer('call_1', 'allow_once')
  await done
  expect(ran).toEqual(['cat a && ls', 'ls; touch x'])
})

test('“always” holds in other sessions and after a restart, for this person alone, until it is revoked', async () => {
  const ran: string[] = []
  await using bench = await AgentBench.start(
    runs('npm test', 'npm test -- -w', 'npm test', 'npm test', 'npm test'),
  )
  const core = await bench.core({ tools: [fakeShell(ran)] })
  const first = await newSession(core, 'manual')
  const { done } = await first.prompt('test')
  await whenHappened(first, 'approval_asked')
  await first.answer('call_0', 'allow_always')
  await done
  const second = await newSession(core, 'manual')
  await ask(second, 'test')
  expect(asked(second)).toEqual([])
  await core.leave()

  const restarted = await bench.core({ tools: [fakeShell(ran)] })
  const third = await newSession(restarted, 'manual')
  await ask(third, 'test')
  expect(asked(third)).toEqual([])
  const bob = await restarted.manager.create({ userId: 'u_bob', cwd: '/workspace', mode: 'manual' })
  await ask(bob, 'test', { unattended: true })
  expect(outcomes(bob.log)).toEqual({ call_3: ['failed denied'] })

  const list = await restarted.manager.rules.answer('u_ada', { do: 'list' }, never)
  expect(list).toMatchObject({ rules: [{ effect: 'allow', match: { shell: 'npm test *' }, origin: 'user' }] })
  const [rule] = 'rules' in list ? list.rules : []
  const revoke = { do: 'revoke', id: rule?.id ?? '' } as const
  await expect(restarted.manager.rules.answer('u_bob', revoke, never)).rejects.toMatchObject({
    code: 'not_found',
  })
  await restarted.manager.rules.answer('u_ada', revoke, never)
  await ask(third, 'test', { unattended: true })
  expect(outcomes(third.log)).toEqual({ call_2: ['completed'], call_4: ['failed denied'] })
})

test('what is remembered with one answer answers the other questions that it covers, and no more', async () => {
  const ran: string[] = []
  const calls = ['npm test a', 'npm test b', 'touch x'].map((command, at) => ({
    id: `call_${at}`,
    name: 'shell',
    args: { command },
  }))
  await using bench = await AgentBench.start([toolCalls(calls), textAnswer('ok')])
  const session = await newSession(await bench.core({ tools: [fakeShell(ran)] }), 'manual')
  const { done } = await session.prompt('go')
  await expect.poll(() => asked(session).length).toBe(3)
  await session.answer('call_1', 'allow_session')
  expect(happened(session.log, 'approval_answered')).toMatchObject([
    { toolCallId: 'call_1', by: 'user' },
    { toolCallId: 'call_0', by: 'rule', allowed: true },
  ])
  expect(session.pendingApprovals().map(({ toolCallId }) => toolCallId)).toEqual(['call_2'])
  await session.answer('call_2', 'reject_once')
  await done
  expect(ran).toEqual(['npm test a', 'npm test b'])
})

test('answered twice from two places: the first answer wins, and only its rule is kept', async () => {
  const ran: string[] = []
  await using bench = await AgentBench.start(runs('npm test'))
  const core = await bench.core({ tools: [fakeShell(ran)] })
  const session = await newSession(core, 'manual')
  const { done } = await session.prompt('test')
  await whenHappened(session, 'approval_asked')
  const answers = await Promise.all([
    session.answer('call_0', 'reject_once'),
    session.answer('call_0', 'allow_always'),
  ])
  await done
  expect(answers).toEqual([
    { answered: true, by: 'user' },
    { answered: false, by: 'user' },
  ])
  expect(ran).toEqual([])
  expect(await core.manager.rules.answer('u_ada', { do: 'list' }, never)).toMatchObject({ rules: [] })
})

test('everybody’s rules: what they deny is denied in yolo with the rule’s words for the model; what they ask is not remembered', async () => {
  const ran: string[] = []
  const rules = rulesSection.parse({
    deny: [{ shell: 'curl *' }],
    ask: [{ shell: 'npm publish *' }],
    allow: [{ shell: 'make *' }],
  })
  await using bench = await AgentBench.start(runs('curl example.org', 'make all', 'npm publish'))
  const core = await bench.core({ tools: [fakeShell(ran)], rules })
  await core.manager.rules.answer(
    'u_ada',
    { do: 'add', rule: { effect: 'allow', match: { shell: '*' } } },
    never,
  )
  const session = await newSession(core, 'yolo')
  await ask(session, 'curl')
  expect(outcomes(session.log)).toEqual({ call_0: ['failed denied'] })
  const denied = JSON.stringify(bench.provider.requests.at(-1)?.body.messages.at(-1))
  expect(denied).toContain('this Sandlot’s rule that denies commands that begin with curl')
  await session.setMode('manual')
  await ask(session, 'make')
  const { done } = await session.prompt('publish')
  await whenHappened(session, 'approval_asked')
  expect(asked(session)[0]?.options.map(({ optionId }) => optionId)).toEqual(['allow_once', 'reject_once'])
  expect(asked(session)[0]?.why?.[0]?.ruleId).toBe('deployment:ask:1')
  await session.answer('call_2', 'allow_once')
  await done
  expect(ran).toEqual(['make all', 'npm publish'])
})

test('where nothing may be kept, nobody can write down a rule that allows; one that expires is gone in time', async () => {
  await using bench = await AgentBench.start([])
  const core = await bench.core({ rules: rulesSection.parse({ remember: 'session' }) })
  const { rules } = core.manager
  const allow = { do: 'add', rule: { effect: 'allow', match: { shell: 'ls *' } } } as const
  await expect(rules.answer('u', allow, never)).rejects.toMatchObject({ code: 'forbidden' })
  await expect(rules.answer('u', newRule({ shell: 'a; b' }), never)).rejects.toMatchObject({
    code: 'bad_request',
  })
  await expect(rules.answer('u', newRule({ host: '10.0.0.1' }), never)).rejects.toMatchObject({
    code: 'bad_request',
  })
  const soon = { do: 'add', rule: { ...newRule({ shell: 'ls *' }).rule, expiresAt: Date.now() - 1 } } as const
  await expect(rules.answer('u', soon, never)).rejects.toMatchObject({ code: 'bad_request' })
  await core.store.people.rules.add('u', {
    id: 'old',
    effect: 'deny',
    match: { tool: '*' },
    createdAt: 1,
    expiresAt: 2,
  })
  expect(await rules.answer('u', { do: 'list' }, never)).toMatchObject({ rules: [] })
})

/** A host that a call asks for; nothing is reached. */
const hostTool = defineTool({
  name: 'host',
  description: 'Asks for a host.',
  kind: 'fetch',
  input: z.strictObject({ host: z.string().describe('The host.') }),
  readOnly: false,
  title: () => 'Host',
  requests: ({ host }) => [{ kind: 'host', host, port: 443 }],
  // oxlint-disable-next-line require-yield
  async *execute() {
    return { status: 'completed', forModel: 'ok' }
  },
})

test('a host allowed for a session is a rule like any other: listed, kept over a restart, over when it is revoked', async () => {
  const calls = ['a', 'b', 'c', 'd'].flatMap((id) => [
    toolCalls([{ id, name: 'host', args: { host: 'api.example.org' } }]),
    textAnswer('ok'),
  ])
  await using bench = await AgentBench.start(calls)
  const core = await bench.core({ tools: [hostTool] })
  const session = await newSession(core, 'yolo')
  const { done } = await session.prompt('a')
  await whenHappened(session, 'approval_asked')
  await session.answer('a', 'allow_session')
  await done
  await core.leave()

  const restarted = await bench.core({ tools: [hostTool] })
  const again = await restarted.manager.get('u_ada', session.id)
  await ask(again, 'b', { unattended: true })
  const other = await newSession(restarted, 'yolo')
  await ask(other, 'c', { unattended: true })
  expect(outcomes(other.log)).toEqual({ c: ['failed denied'] })
  const list = await restarted.manager.rules.answer('u_ada', { do: 'list' }, never)
  const endsWith = { sessionId: session.id }
  expect(list).toMatchObject({
    rules: [{ effect: 'allow', match: { host: 'api.example.org:443' }, origin: 'session', endsWith }],
  })
  const [rule] = 'rules' in list ? list.rules : []
  await restarted.manager.rules.answer('u_ada', { do: 'revoke', id: rule?.id ?? '' }, never)
  await ask(again, 'd', { unattended: true })
  expect(outcomes(again.log)).toEqual({ a: ['completed'], b: ['completed'], d: ['failed denied'] })
})

test('preview: what a rule would have answered to the calls of this person', async () => {
  const ran: string[] = []
  await using bench = await AgentBench.start(runs('ls', 'touch x', 'npm test'))
  const core = await bench.core({ tools: [fakeShell(ran)] })
  const session = await newSession(core, 'yolo')
  for (const word of ['a', 'b', 'c']) await ask(session, word)
  const preview = (rule: { effect: 'allow' | 'deny'; match: RuleMatch }) =>
    core.manager.rules.answer('u_ada', { do: 'preview', rule }, never)
  expect(await preview({ effect: 'deny', match: { shell: 'touch *' } })).toMatchObject({
    looked: 3,
    changedCount: 1,
    changed: [{ toolCallId: 'call_1', before: 'allow', after: 'deny', sessionId: session.id }],
  })
  expect(await preview({ effect: 'allow', match: { tool: 'shell' } })).toMatchObject({
    looked: 3,
    changedCount: 0,
  })
  expect(
    await core.manager.rules.answer('u_bob', { do: 'preview', rule: newRule({ tool: '*' }).rule }, never),
  ).toMatchObject({
    looked: 0,
  })
  expect(await core.manager.rules.answer('u_ada', { do: 'list' }, never)).toMatchObject({ rules: [] })
  expect(session.log.some((event) => sandlotEventOf(event)?.type === 'approval_asked')).toBe(false)
})
