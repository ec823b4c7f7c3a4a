/** A background command belongs to the session that started it: it ends with that one, and a fork cannot touch it. */
import { isOutcome, sandlotEventOf } from '@sandlot/shared/chat/events'
import { beforeEach, describe, expect, test } from 'vitest'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { endJobs } from '../../src/tools/background/end-jobs.ts'
import { pollJobs } from '../../src/tools/background/ends.ts'
import { jobsOf } from '../../src/tools/background/jobs.ts'
import {
  AgentBench,
  type FlatParts,
  type Core,
  ask,
  happened,
  newSession,
  whenEvent,
} from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { useSandboxes } from './use-sandboxes.ts'

const local = useSandboxes()
beforeEach(async () => {
  await (await local.sandboxes.acquire('u_ada')).reset()
})

const shell = (id: string, command: string) =>
  toolCalls([{ id, name: 'run_shell_command', args: { command, background: true } }])
/** `id` → state, of all commands that the sandbox knows. */
async function known(): Promise<Map<string, string>> {
  const commands = await (await local.sandboxes.acquire('u_ada')).commands()
  return new Map(commands.map(({ id, state }) => [id, state]))
}
const commandsOf = (log: Parameters<typeof jobsOf>[0]) => jobsOf(log).map(({ command }) => command)

async function coreOn(bench: AgentBench, parts: Partial<FlatParts> = {}): Promise<Core> {
  return bench.core({
    tools: builtinTools(),
    parts: {
      sandbox: (userId, signal) => local.sandboxes.acquire(userId, signal),
      pollJobs: pollJobs(local.sandboxes),
      endJobs: (userId, jobs) => endJobs(local.sandboxes)(userId, jobs),
      ...parts,
    },
  })
}

describe('a session that is deleted', () => {
  test('ends its background commands with all they have started, and nobody else’s', async () => {
    await using bench = await AgentBench.start([
      shell('a', 'sleep 981 & sleep 982 & wait'),
      textAnswer('started'),
      shell('b', 'sleep 983'),
      textAnswer('started'),
    ])
    const core = await coreOn(bench)
    const [session, other] = [await newSession(core), await newSession(core)]
    await ask(session, 'serve')
    await ask(other, 'serve')
    const [mine, others] = [commandsOf(session.log), commandsOf(other.log)]
    expect([mine, others]).toMatchObject([{ length: 1 }, { length: 1 }])
    // Also when nothing is connected to the sandbox that runs.
    await local.restartController()
    await core.manager.removal.delete('u_ada', session.id)
    const left = await known()
    expect(mine.map((id) => left.get(id))).toEqual([undefined])
    expect(others.map((id) => left.get(id))).toEqual(['running'])
    expect(await core.store.sessions.get(session.id)).toBeUndefined()
    expect(core.warnings).toEqual([])
  })

  test('does not start a stopped sandbox for it', async () => {
    await using bench = await AgentBench.start([shell('a', 'sleep 984'), textAnswer('started')])
    const core = await coreOn(bench)
    const session = await newSession(core)
    await ask(session, 'serve')
    await local.restartSandbox('u_ada')
    await core.manager.removal.delete('u_ada', session.id)
    expect((await local.sandboxes.status('u_ada')).state).not.toBe('running')
    expect(core.warnings).toEqual([])
  })

  test('is deleted also where they cannot be ended, and that is logged', async () => {
    await using bench = await AgentBench.start([shell('a', 'sleep 985'), textAnswer('started')])
    const core = await coreOn(bench, { endJobs: () => Promise.reject(new Error('the engine is away')) })
    const session = await newSession(core)
    await ask(session, 'serve')
    const commands = commandsOf(session.log)
    await core.manager.removal.delete('u_ada', session.id)
    expect(await core.store.sessions.get(session.id)).toBeUndefined()
    expect(core.warnings).toMatchObject([{ fields: { commands, error: 'the engine is away' } }])
  })
})

test('a fork owns none of its parent’s: it says so, is not told of their end, and its own end alone', async () => {
  await using bench = await AgentBench.start([
    shell('a', 'sleep 986'),
    textAnswer('started'),
    toolCalls([
      { id: 's', name: 'stop', args: { id: 'bg1' } },
      { id: 'r', name: 'read_output', args: { id: 'bg1' } },
      { id: 'l', name: 'read_output', args: {} },
    ]),
    shell('n', 'sleep 987'),
    textAnswer('started one of my own'),
  ])
  const core = await coreOn(bench)
  const session = await newSession(core)
  const { promptId } = await ask(session, 'serve')
  const parents = commandsOf(session.log)
  const fork = await core.manager.fork('u_ada', session.id, { promptId, where: 'after' })
  await ask(fork, 'stop it')
  const said = Object.fromEntries(
    fork.log.filter(isOutcome).map((event) => [event.toolCallId, event.rawOutput?.forModel ?? '']),
  )
  expect(said['s']).toContain('bg1 (sleep 986) belongs to another chat')
  expect(said['r']).toContain('bg1 (sleep 986) belongs to another chat')
  expect(said['l']).toBe('bg1  belongs to another chat  sleep 986')
  // Ids go on: bg1 stays the other session's.
  expect(jobsOf(fork.log).map(({ id, elsewhere }) => [id, elsewhere])).toEqual([
    ['bg1', true],
    ['bg2', false],
  ])
  const own = commandsOf(fork.log).filter((id) => !parents.includes(id))
  await core.manager.removal.delete('u_ada', fork.id)
  const left = await known()
  expect(own.map((id) => left.get(id))).toEqual([undefined])
  expect(parents.map((id) => left.get(id))).toEqual(['running'])
})

describe('while no prompt runs', () => {
  test.each([
    [
      'ends by itself',
      () => Promise.resolve(),
      { exit: { code: 3 } },
      'until [ -e go ]; do sleep 0.05; done; exit 3',
    ],
    ['ends with its sandbox', () => local.restartSandbox('u_ada'), { reason: 'sandbox_lost' }, 'sleep 984'],
  ] as const)(
    'a command that %s says so to whoever reads, and once to the model',
    async (_, end, how, command) => {
      await using bench = await AgentBench.start([
        shell('a', command),
        textAnswer('started'),
        textAnswer('seen'),
      ])
      const core = await coreOn(bench)
      const session = await newSession(core)
      await ask(session, 'serve')
      expect(happened(session.log, 'background_ended')).toEqual([])
      // A reader comes first, then the end, or the other way round.
      const sandbox = await local.sandboxes.acquire('u_ada')
      await sandbox.files.write('go', Buffer.from(''))
      await end()
      const event = await whenEvent(session, (one) => sandlotEventOf(one)?.type === 'background_ended')
      expect(sandlotEventOf(event)).toMatchObject({ toolCallId: 'a', ...how })
      await ask(session, 'and now?')
      expect(happened(session.log, 'background_ended')).toHaveLength(1)
      const texts = bench.provider.requests.at(-1)?.body.messages.map(({ content }) => content) ?? []
      expect(
        texts.filter((text) => typeof text === 'string' && text.includes('background command bg1')),
      ).toHaveLength(1)
      expect(core.warnings).toEqual([])
    },
    30_000,
  )
})
