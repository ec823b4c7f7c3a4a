/** The demo model with the real loop, scheduler, tools and a sandbox: whatever it promises is really done. */
import { type SessionEvent, isOutcome, metaOf, textOf } from '@sandlot/shared/chat/events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createDemoModel } from '../../src/model/demo/demo.ts'
import type { Session } from '../../src/session/session.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { type Core, AgentBench, ask, newSession } from '../support/agent-fixture.ts'
import { type LocalSandboxes, hasRipgrep } from '../tools/local-sandboxes.ts'
import { useSandboxes } from '../tools/use-sandboxes.ts'

const local = useSandboxes()

let bench: AgentBench
let core: Core
let session: Session
beforeEach(async () => {
  bench = await AgentBench.start()
  const sandbox = (): ReturnType<LocalSandboxes['sandboxes']['acquire']> => local.sandboxes.acquire('u_ada')
  core = await bench.core({ tools: builtinTools(), parts: { model: createDemoModel({ pace: 0 }), sandbox } })
  session = await newSession(core)
})
afterEach(() => bench[Symbol.asyncDispose]())

interface Told {
  calls: { name: string; status: string; text: string; truncated: boolean }[]
  /** The last message. */
  text: string
}

async function tell(text: string): Promise<Told> {
  const before = (await core.store.sessions.get(session.id))?.lastSeq ?? 0
  await ask(session, text)
  const log = await core.store.log.read(session.id, before)
  const outcomes = new Map(log.filter(isOutcome).map((event) => [event.toolCallId, event]))
  return {
    calls: log.flatMap((event) => {
      if (event.sessionUpdate !== 'tool_call') return []
      const outcome = outcomes.get(event.toolCallId)
      return [
        {
          name: event.name,
          status: [outcome?.status, outcome && metaOf(outcome).reason].filter(Boolean).join(' '),
          text: outcome?.rawOutput?.forModel ?? '',
          truncated: outcome !== undefined && metaOf(outcome).outputInfo?.truncated === true,
        },
      ]
    }),
    text:
      log
        .flatMap((event: SessionEvent) =>
          event.sessionUpdate === 'agent_message_chunk' ? [textOf(event)] : [],
        )
        .at(-1) ?? '',
  }
}

test('what people ask first', async () => {
  const primes = await tell('make a file hello.py that prints the primes below 50 and run it')
  expect(primes.calls.map((call) => call.status)).toEqual(['completed', 'completed'])
  expect(primes.text).toContain('[2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]')

  const disk = await tell('run `df -h`')
  expect(disk.calls).toMatchObject([{ name: 'run_shell_command', status: 'completed' }])
  expect(disk.text).toContain('Filesystem')

  const listed = await tell('what is in my workspace?')
  expect(listed.text).toContain('hello.py')

  expect((await tell('run hello.py')).text).toContain('[2, 3, 5, 7')
  expect((await tell('read hello.py')).text).toContain('range(50)')
  await tell('create a file called notes.txt with content "TODO: later"')
  expect((await tell('read notes.txt')).text).toContain('TODO: later')

  const failing = await tell('run no-such-command')
  expect(failing.text).toMatch(/exit code 127.*no command of that name/s)
})

test('the tour, on real tools', async () => {
  const told = await tell('show me what you can do')
  const failed = told.calls.filter((call) => !call.status.startsWith('completed'))
  expect(hasRipgrep ? failed : failed.filter((call) => !['search_text', 'glob'].includes(call.name))).toEqual(
    [],
  )
  expect(told.calls.find((call) => call.truncated)?.text).toContain('.tool-outputs/')
  const read = told.calls.filter((call) => call.name === 'read_file').at(-1)
  expect(read?.text).toContain('line 10000 of a long output')
  expect(told.calls.some((call) => call.text.includes('[exit code 1]'))).toBe(true)
  expect(told.text).toMatch(/That was the tour/)
  expect((await tell('run `rm -r sandlot-demo`')).calls).toMatchObject([{ status: 'completed' }])
})
