import { diffsId, type FilesChanged, promptDiffs } from '@sandlot/shared/chat/file-changes'
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { beforeEach, expect, test } from 'vitest'
import type { Session } from '../../src/session/session.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { AgentBench, ask, type Core, newSession } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { emptySandbox, useSandboxes } from '../tools/use-sandboxes.ts'

const local = useSandboxes()
let bench: AgentBench
let core: Core
let session: Session
beforeEach(async () => {
  bench = await AgentBench.start()
  core = await bench.core({
    tools: builtinTools(),
    parts: { sandbox: (userId, signal) => local.sandboxes.acquire(userId, signal) },
  })
  session = await newSession(core)
  await emptySandbox(local, 'u_ada')
  return () => bench[Symbol.asyncDispose]()
})

let calls = 0
/** One prompt in which the model makes these calls, one after the other. */
async function prompt(...made: { name: string; args: Record<string, unknown> }[]): Promise<string> {
  for (const call of made) bench.provider.add(toolCalls([{ id: `c${++calls}`, ...call }]))
  bench.provider.add(textAnswer('Done.'))
  const { promptId } = await ask(session, 'go')
  return promptId
}
/** In a shell of its own: the next command begins in the workspace again. */
const shell = (command: string) => ({ name: 'run_shell_command', args: { command: `(${command})` } })

function told(): FilesChanged | undefined {
  const happened = session.log.map(sandlotEventOf).filter((event) => event !== undefined)
  const ends = happened.findLastIndex(({ type }) => type === 'prompt_ended')
  const before = happened[ends - 1]
  return before?.type === 'files_changed' ? before : undefined
}
const lines = (): string[] =>
  (told()?.files ?? []).map(({ path, kind, size, lines: counted, diff }) => {
    const count = counted === undefined ? '' : ` +${counted.added} −${counted.removed}`
    return `${kind} ${path} ${size}${count}${diff === true ? ' diff' : ''}`
  })
async function diffsOf(promptId: string) {
  const stored = await core.store.outputs.read(session.id, diffsId(promptId), 0, 1_000_000)
  return promptDiffs.parse(JSON.parse(Buffer.from(stored).toString())).diffs
}

test('a prompt ends with the files that anything in it created, changed and removed', async () => {
  await prompt(shell('echo 1 > gone; echo 1 > kept; printf "\\0\\1" > picture'))
  expect(lines()).toEqual(['created gone 2 +1 −0 diff', 'created kept 2 +1 −0 diff', 'created picture 2'])
  const promptId = await prompt(
    { name: 'write_file', args: { path: 'a/new.txt', content: 'one\ntwo\n' } },
    { name: 'edit_file', args: { path: 'kept', old_text: '1', new_text: '2' } },
    shell('rm gone; echo 3 >> kept'),
  )
  expect(lines()).toEqual(['removed gone 2', 'changed kept 4 +2 −1 diff', 'created a/new.txt 8 +2 −0 diff'])
  expect(await diffsOf(promptId)).toEqual([
    { path: 'kept', oldText: '1\n', newText: '2\n3\n' },
    { path: 'a/new.txt', oldText: null, newText: 'one\ntwo\n' },
  ])
})

test('a file that git tracks is compared with what it was before the prompt, also where that was not committed', async () => {
  await prompt(
    shell(
      'git init -q code && cd code && git config user.email a@b.c && git config user.name A && seq 5 > clean && seq 5 > dirty && seq 5 > removed && mkdir deep && seq 3 > deep/file && git add . && git commit -qm one && echo before >> dirty && echo loose > loose',
    ),
  )
  const promptId = await prompt(
    shell(
      'cd code && sed -i s/3/three/ clean && echo after >> dirty && git add -A && git commit -qm two && rm removed && echo 4 >> deep/file && echo x >> loose',
    ),
  )
  expect(lines()).toEqual([
    'changed code/clean 14 +1 −1 diff',
    'changed code/dirty 23 +1 −0 diff',
    'changed code/loose 8',
    'removed code/removed 10 +0 −5 diff',
    'changed code/deep/file 8 +1 −0 diff',
  ])
  expect(await diffsOf(promptId)).toContainEqual({
    path: 'code/dirty',
    oldText: '1\n2\n3\n4\n5\nbefore\n',
    newText: '1\n2\n3\n4\n5\nbefore\nafter\n',
  })
})

test('asking git what it tracks runs no program of the repository and leaves nothing in it', async () => {
  await prompt(
    shell(
      'git init -q code && cd code && echo 1 > file && git add . && git -c user.email=a@b.c -c user.name=A commit -qm one && echo 2 > file && ' +
        'git config filter.evil.clean "touch $PWD/../ran; cat" && echo "* filter=evil" > .git/info/attributes && ' +
        'git config core.fsmonitor "touch $PWD/../ran" && find .git -type f | sort > ../listed',
    ),
  )
  await prompt(
    shell('cd code && find .git -type f | sort | diff - ../listed && test ! -e ../ran && echo 3 > free'),
  )
  expect(lines()).toEqual(['created code/free 2 +1 −0 diff'])
})

test('a prompt that reads, or changes nothing, says nothing; nor does one whose sandbox is gone', async () => {
  await prompt({ name: 'list_directory', args: { path: '.' } }, shell('true'))
  expect(told()).toBeUndefined()
  bench.provider.add(toolCalls([{ id: `c${++calls}`, ...shell('echo 1 > made') }]), async () => {
    await local.restartSandbox('u_ada')
    return textAnswer('Done.')
  })
  await ask(session, 'go')
  expect(told()).toBeUndefined()
  expect(session.log.map(sandlotEventOf).at(-1)).toMatchObject({ type: 'prompt_ended', reason: 'completed' })
})

test('a hundred files are named, and the others counted', async () => {
  await prompt(shell('mkdir many; seq -f "many/%.0f" 150 | xargs touch'))
  expect(told()).toMatchObject({ more: 50 })
  expect(told()?.files).toHaveLength(100)
})
