/**
 * Listening ports of the sandbox are shown in the chat whose background commands run, and not
 * stored.
 */
import { type SessionEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { expect, onTestFinished, test } from 'vitest'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { pollJobs } from '../../src/tools/background/ends.ts'
import { AgentBench, ask, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { openLocalSandboxes } from '../tools/local-sandboxes.ts'

const PATIENCE = { timeout: 15_000 }

test('a port that opens is shown to who reads, also to who comes later, until the commands have ended', async () => {
  const local = await openLocalSandboxes()
  const args = { command: 'read -r line < gate', background: true }
  const bench = await AgentBench.start([
    toolCalls([
      { id: 'c0', name: 'run_shell_command', args: { command: 'mkfifo gate' } },
      { id: 'c1', name: 'run_shell_command', args },
    ]),
    textAnswer('It runs.'),
  ])
  const closing: (() => void)[] = []
  onTestFinished(async () => {
    for (const close of closing) close()
    await bench[Symbol.asyncDispose]()
    await local.dispose()
  })
  let ports: readonly number[] = []
  const core = await bench.core({
    tools: builtinTools(),
    parts: {
      sandbox: (userId, signal) => local.sandboxes.acquire(userId, signal),
      pollJobs: pollJobs(local.sandboxes),
      portsOf: () => Promise.resolve(ports),
    },
  })
  const session = await newSession(core)
  const reader = () => {
    const { catchUp, live, close } = session.subscribe(0)
    closing.push(close)
    const seen: SessionEvent[] = [...catchUp]
    void (async () => {
      for await (const event of live) seen.push(event)
    })()
    return () => seen.reduce(foldTranscript, emptyTranscript()).ports
  }
  const first = reader()
  await ask(session, 'start the server')
  expect(first()).toEqual([])
  ports = [8000]
  await expect.poll(first, PATIENCE).toEqual([8000])
  await expect.poll(reader(), PATIENCE).toEqual([8000])
  expect(session.log.some((event) => sandlotEventOf(event)?.type === 'ports_open')).toBe(false)
  const sandbox = await local.sandboxes.acquire(session.userId)
  const open = await sandbox.run({ id: 'f'.repeat(32), command: 'echo go > gate', autoAcknowledge: true })
  await open.exit
  await expect.poll(first, PATIENCE).toEqual([])
}, 60_000)
