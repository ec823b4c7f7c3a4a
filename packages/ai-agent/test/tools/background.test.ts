import { metaOf, sandlotEventOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { beforeEach, describe, expect, test } from 'vitest'
import { type PollJobs, pollJobs, takeEndedJobs } from '../../src/tools/background/ends.ts'
import { jobsOf } from '../../src/tools/background/jobs.ts'
import { SHUTDOWN } from '../../src/tools/tool-error.ts'
import type { ToolOutcome } from '../../src/tools/tool.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { useSandboxes } from './use-sandboxes.ts'

const local = useSandboxes()
let batch: TestBatch
let call: (name: string, args: Record<string, unknown>) => Promise<ToolOutcome>
beforeEach(async () => {
  await (await local.sandboxes.acquire('u_test')).reset()
  batch = new TestBatch({ sandboxes: () => local.sandboxes })
  let calls = 0
  call = (name, args) => batch.call(name, args, `c${++calls}`)
})

const text = (outcome: ToolOutcome): string => outcome.forModel
const start = (command: string) => call('run_shell_command', { command, background: true })
/** The sandbox's record of this test's commands. */
async function known() {
  const ours = jobsOf(batch.log).map(({ command }) => command)
  const commands = await (await local.sandboxes.acquire('u_test')).commands()
  return commands.filter(({ id }) => ours.includes(id))
}
/** The text for the next request of the session's model. */
async function nextTurn(look: PollJobs = pollJobs(local.sandboxes)): Promise<string[]> {
  const told: string[] = []
  const ends = takeEndedJobs({
    promptId: 'p',
    log: () => batch.log,
    poll: (jobs) => look('u_test', jobs),
    now: Date.now,
  })
  for await (const group of ends) {
    batch.log.push(...group)
    told.push(...group.map((event) => endedText(event) ?? '(known)'))
  }
  return told
}
function endedText(event: SessionEvent): string | undefined {
  const happened = sandlotEventOf(event)
  return happened?.type === 'background_ended' ? happened.text : undefined
}

describe('a background command', () => {
  test('returns at once with an id, is read as it goes, waits for a line, and is told at the next turn', async () => {
    await call('run_shell_command', { command: 'rm -f gate; mkfifo gate' })
    const outcome = await start('echo one; read -r line < gate; echo "two $line"; echo three; exit 4')
    expect(outcome).toMatchObject({ status: 'completed', data: { background: { id: 'bg1' } } })
    expect(text(await call('read_output', { id: 'bg1', wait_ms: 10_000 }))).toBe(
      'one\n[still running; 4 bytes in all]',
    )
    expect(text(await call('read_output', { id: 'bg1' }))).toBe(
      'Nothing new was printed.\n[still running; 4 bytes in all]',
    )
    expect(await nextTurn()).toEqual([])
    await call('run_shell_command', { command: 'echo go > gate' })
    const waited = await call('read_output', { id: 'bg1', wait_ms: 10_000, pattern: '^two' })
    expect(text(waited)).toMatch(/^two go\n/)
  })

  test('its end is told once, with its exit code, and then forgotten by the sandbox', async () => {
    await start('echo done; exit 3')
    await call('run_shell_command', {
      command: 'while pgrep -f "[e]cho done" >/dev/null; do sleep 0.05; done; sleep 0.2',
    })
    const told = await nextTurn()
    expect(told).toEqual([
      '[The background command bg1 (echo done; exit 3) ended with exit code 3. read_output (id bg1) shows what it printed.]',
    ])
    expect(await nextTurn()).toEqual([])
    expect(await known()).toEqual([])
    // Its output is there all the same.
    expect(text(await call('read_output', { id: 'bg1' }))).toContain('done\n')
    expect(text(await call('read_output', {}))).toBe('bg1  ended  echo done; exit 3')
  })

  test('an end that a result has told is in the log, and not told again', async () => {
    await start('exit 5')
    const seen = await call('read_output', { id: 'bg1', wait_ms: 10_000 })
    expect(text(seen)).toBe('Nothing new was printed.\n[ended with exit code 5; 0 bytes in all]')
    expect(await nextTurn()).toEqual(['(known)'])
  })

  test('stop ends it with everything it has started', async () => {
    // Nobody else on this machine sleeps for so long.
    const seconds = (900 + Math.random()).toFixed(9)
    const line = `sleep ${seconds} & sleep ${seconds} & wait`
    await start(line)
    expect(text(await call('stop', { id: 'bg1' }))).toContain('Stopped bg1')
    const left = await call('run_shell_command', { command: `pgrep -fc "[s]leep ${seconds}"; true` })
    expect(text(left)).toBe('0')
    expect(text(await call('stop', { id: 'bg1' }))).toBe(`bg1 (${line}) was stopped already.`)
  })

  test('a restart of the agent loses nothing: the command goes on, its output and its end are read', async () => {
    await start('echo before; sleep 0.5; echo after; exit 6')
    await local.restartController()
    const seen = await call('read_output', { id: 'bg1', wait_ms: 20_000, pattern: 'after' })
    expect(text(seen)).toMatch(/^after\n/)
    const end = await call('read_output', { id: 'bg1', offset: 0, wait_ms: 10_000 })
    expect(text(end)).toMatch(/^before\nafter\n/)
  })

  test('a call that a crash interrupted starts it once', async () => {
    await call('run_shell_command', { command: 'rm -f starts' })
    const calls = [
      {
        id: 'first',
        name: 'run_shell_command',
        args: { command: 'echo x >> starts; sleep 100', background: true },
      },
    ]
    // Let go as soon as the attempt is in the log, as a process that ends there; then the same call again.
    await batch.run(calls, (event) => metaOf(event).attempt === undefined)
    const again = await batch.run(calls)
    expect(again[0]).toMatchObject({ data: { background: { id: 'bg1' } } })
    await call('run_shell_command', { command: 'until [ -e starts ]; do sleep 0.02; done' })
    expect(text(await call('read_file', { path: 'starts' }))).toBe('1\tx')
  })

  test('a sandbox that is stopped is not started to look: what ran in it has ended', async () => {
    await start('sleep 100')
    await local.restartSandbox('u_test')
    expect(await nextTurn()).toEqual([
      '[The background command bg1 (sleep 100) ended together with its sandbox; its exit code is not known. read_output (id bg1) shows what it printed.]',
    ])
    expect((await local.sandboxes.status('u_test')).state).not.toBe('running')
  })

  test('ids count up, and a wrong one names those there are', async () => {
    expect(text(await call('read_output', { id: 'bg1' }))).toContain(
      'No command was started in the background',
    )
    await start('true')
    await start('sleep 100')
    expect(jobsOf(batch.log).map(({ id }) => id)).toEqual(['bg1', 'bg2'])
    expect(text(await call('stop', { id: 'bg9' }))).toContain('There are: bg1 (true), bg2 (sleep 100)')
  })

  test('long output: the newest page, and where the rest is', async () => {
    await start('seq 10000')
    await call('read_output', { id: 'bg1', wait_ms: 10_000, pattern: '^10000$' })
    const page = text(await call('read_output', { id: 'bg1' }))
    expect(page.length).toBeLessThanOrEqual(10_000)
    expect(page).toMatch(/bytes before this are left out: offset 0\][^]*\n10000\n\[/)
    expect(text(await call('read_output', { id: 'bg1', offset: 0 }))).toMatch(
      /^1\n2\n3\n[^]*go on with offset \d+/,
    )
  })
})

test('a shutdown while it waits leaves the command alone', async () => {
  await start('sleep 100')
  const waiting = call('read_output', { id: 'bg1', wait_ms: 50_000 })
  batch.stop.abort(SHUTDOWN)
  await expect(waiting).rejects.toBeDefined()
  expect(await known()).toMatchObject([{ state: 'running', background: true }])
})
