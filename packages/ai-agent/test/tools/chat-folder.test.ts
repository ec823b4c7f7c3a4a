/** A chat with a folder of its own: its shell begins there, and relative paths of the tools too. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isOutcome } from '@sandlot/shared/chat/events'
import { expect, onTestFinished, test } from 'vitest'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { AgentBench, type CoreOptions, ask, textsForModel } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { openLocalSandboxes } from './local-sandboxes.ts'

const call = (name: string, args: Record<string, unknown>) =>
  toolCalls([{ id: `c_${Math.random()}`, name, args }])

async function open(rules?: CoreOptions['rules']) {
  const bench = await AgentBench.start()
  const local = await openLocalSandboxes()
  onTestFinished(async () => {
    await bench[Symbol.asyncDispose]()
    await local.dispose()
  })
  const core = await bench.core({
    tools: builtinTools(),
    rules,
    parts: { sandbox: (userId, signal) => local.sandboxes.acquire(userId, signal) },
  })
  const session = await core.manager.create({ userId: 'u_ada', cwd: '/workspace/plans/may', mode: 'yolo' })
  const { workspace } = await local.sandboxes.acquire('u_ada')
  const calls = async (...turns: ReturnType<typeof call>[]) => {
    bench.provider.add(...turns, textAnswer('Done.'))
    const texts = () => Object.values(textsForModel(session.log))
    const before = texts().length
    await ask(session, 'go')
    return texts().slice(before)
  }
  return {
    bench,
    manager: core.manager,
    session,
    workspace,
    calls,
    restart: () => local.restartSandbox('u_ada'),
  }
}

const shell = (command: string, more: object = {}) => call('run_shell_command', { command, ...more })

test('commands begin in it, also after a restart of the sandbox, until one has gone elsewhere', async () => {
  const { workspace, calls, bench, restart } = await open()
  await mkdir(join(workspace, 'plans/may'), { recursive: true })
  const here = `${workspace}/plans/may`
  expect(await calls(shell('pwd; mkdir sub'), shell('pwd', { cwd: 'sub' }))).toEqual([here, `${here}/sub`])
  expect(bench.provider.requests[0]?.body.messages[0]?.content).toContain(
    'The folder of this chat is /workspace/plans/may: commands begin in it',
  )
  expect(await calls(shell('cd ../..'), shell('pwd'), shell('pwd', { cwd: '/workspace' }))).toEqual([
    expect.stringContaining('printed nothing'),
    `${workspace}/plans`,
    workspace,
  ])
  await restart()
  const [background] = await calls(shell('pwd > begun', { background: true }))
  expect(background).toContain('Started in the background')
})

test('where it is gone, a command says so and begins in the workspace', async () => {
  const { workspace, calls } = await open()
  const [said] = await calls(shell('pwd'))
  expect(said).toContain(
    `${workspace}\n[The directory where this command should have begun, /workspace/plans/may`,
  )
  await mkdir(join(workspace, 'plans/may'), { recursive: true })
  await calls(shell('cd /workspace 2>/dev/null; cd "$OLDPWD"', { cwd: '.' }))
  await rm(join(workspace, 'plans'), { recursive: true })
  const [again] = await calls(shell('pwd'))
  expect(again).toContain('is not there; it began in the workspace.')
})

test('relative paths of file tools count from it, and what they find is named so that it is found again', async () => {
  const { workspace, calls, session } = await open()
  await mkdir(join(workspace, 'plans/may/src'), { recursive: true })
  await writeFile(join(workspace, 'outside.txt'), 'needle outside')
  await writeFile(join(workspace, 'plans/may/src/a.txt'), 'needle\n')
  const [wrote, read, listed, found, globbed, above] = await calls(
    call('write_file', { path: 'src/b.txt', content: 'needle' }),
    call('read_file', { path: 'src/b.txt' }),
    call('list_directory', {}),
    call('search_text', { pattern: 'needle' }),
    call('glob', { pattern: '*.txt', path: 'src' }),
    call('read_file', { path: '../../outside.txt' }),
  )
  expect(wrote).toBe('Wrote 6 bytes to /workspace/plans/may/src/b.txt')
  expect(await readFile(join(workspace, 'plans/may/src/b.txt'), 'utf8')).toBe('needle')
  expect(read).toContain('needle')
  expect(listed).toContain('/workspace/plans/may has 1 entry')
  expect(found).toBe('/workspace/plans/may/src/a.txt:1:needle\n/workspace/plans/may/src/b.txt:1:needle')
  expect(globbed).toBe('/workspace/plans/may/src/a.txt\n/workspace/plans/may/src/b.txt')
  expect(above).toContain('needle outside')
  const announced = session.log.filter((event) => event.sessionUpdate === 'tool_call')
  expect(announced.map((event) => [event.title, event.locations?.[0]?.path])).toEqual([
    ['Write src/b.txt', '/workspace/plans/may/src/b.txt'],
    ['Read src/b.txt', '/workspace/plans/may/src/b.txt'],
    ['List /workspace/plans/may/.', '/workspace/plans/may'],
    ['Search for needle', '/workspace/plans/may'],
    ['Find files *.txt', '/workspace/plans/may/src'],
    ['Read ../../outside.txt', '/workspace/outside.txt'],
  ])
})

test('rules judge the files that are meant', async () => {
  const { workspace, calls, session, manager } = await open({
    deny: [{ file: 'plans/may/kept/**' }],
  } as NonNullable<CoreOptions['rules']>)
  await mkdir(join(workspace, 'plans/may/kept'), { recursive: true })
  const [denied] = await calls(call('write_file', { path: 'kept/x', content: '1' }))
  expect(denied).toContain('not allowed here')
  expect(session.log.findLast(isOutcome)).toMatchObject({ status: 'failed' })
  await calls(call('write_file', { path: 'free/x', content: '1' }))
  // Also what a rule would have said of them before.
  const rule = { effect: 'deny', match: { file: 'plans/may/free/**' } } as const
  const signal = new AbortController().signal
  const previewed = await manager.rules.answer('u_ada', { do: 'preview', rule }, signal)
  expect(previewed).toMatchObject({ changed: [{ title: 'Write free/x' }] })
})
