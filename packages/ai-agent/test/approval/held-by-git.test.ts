/** In `auto` a command that deletes what git does not hold asks; what is committed goes unasked. */
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { TestBatch } from '../calls/test-batch.ts'
import { runIn, useSandboxes } from '../tools/use-sandboxes.ts'

const local = useSandboxes()
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await local.sandboxes.acquire('u_test')
  await shell(
    'git init -q made && cd made && git config user.email a@example.org && git config user.name A &&' +
      ' mkdir -p src/deep && echo one > kept.txt && echo two > src/deep/kept.txt && echo ignored > .gitignore &&' +
      ' ln -s ../loose.txt link && echo changed > src/changed.txt && git add . && git commit -qm first &&' +
      ' echo new > untracked.txt && echo x > ignored && mkdir empty && echo more >> src/changed.txt',
  )
}, 60_000)
beforeEach(() => shell('rm -rf repo && cp -a made repo && echo loose > loose.txt'))

const shell = (command: string) => runIn(sandbox, command)

const batchOf = (): TestBatch =>
  new TestBatch({
    mode: 'auto',
    sandboxes: () => local.sandboxes,
    answer: () => ({ allowed: false, by: 'user' }),
  })
const whyOf = (batch: TestBatch): string[] =>
  batch.log.flatMap((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'approval_asked' ? (happened.why ?? []).map(({ because }) => because) : []
  })

test.each([
  'rm kept.txt',
  'rm -rf src/deep',
  'rm -rf empty missing',
  'echo again > kept.txt',
  'cp kept.txt src/deep',
  'mv kept.txt src/other.txt',
  'rm link',
  'echo x > /tmp/sandlot-auto-test',
  'cd src && rm deep/kept.txt',
  'touch new && python3 -c "import os; os.remove(\'untracked.txt\')"',
])('%s runs: git holds it, or nothing is lost', async (command) => {
  const batch = batchOf()
  const outcome = await batch.call('run_shell_command', { command, cwd: 'repo' })
  expect(whyOf(batch)).toEqual([])
  expect(outcome, outcome.forModel).toMatchObject({ status: 'completed', exit: { code: 0 } })
})

test.each([
  ['rm untracked.txt', 'deletes'],
  ['rm ignored', 'deletes'],
  ['rm src/changed.txt', 'deletes'],
  ['rm -rf src', 'deletes'],
  ['rm -rf .git', 'deletes'],
  ['rm -rf ../repo', 'deletes'],
  ['echo x > untracked.txt', 'overwrites'],
  ['echo x > link', 'overwrites'],
  ['mv kept.txt untracked.txt', 'overwrites'],
  ['cd src && rm changed.txt', 'deletes'],
  ['rm kept.txt ../loose.txt', 'deletes'],
  ['git checkout -- .', 'throws away'],
])('%s asks, and says why', async (command, does) => {
  const batch = batchOf()
  const outcome = await batch.call('run_shell_command', { command, cwd: 'repo' })
  expect(outcome).toMatchObject({ status: 'failed', reason: 'denied' })
  expect(whyOf(batch)[0]).toMatch(new RegExp(`^${does} what (git does not hold|is not committed)$`))
})

test('it is looked at where the shell stands when the call’s turn has come', async () => {
  const batch = batchOf()
  const outcomes = await batch.run([
    { id: 'a', name: 'run_shell_command', args: { command: 'cd repo' } },
    { id: 'b', name: 'run_shell_command', args: { command: 'rm kept.txt' } },
    { id: 'c', name: 'run_shell_command', args: { command: 'rm untracked.txt' } },
    { id: 'd', name: 'run_shell_command', args: { command: 'echo made > made.txt' } },
    { id: 'e', name: 'run_shell_command', args: { command: 'rm made.txt' } },
  ])
  expect(outcomes.map(({ status }) => status)).toEqual([
    'completed',
    'completed',
    'failed',
    'completed',
    'failed',
  ])
})
