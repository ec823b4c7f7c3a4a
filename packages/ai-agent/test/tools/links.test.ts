/** A file is judged, read and written as what its path leads to, never by its name. */
import type { Rule, RuleMatch } from '@sandlot/shared/chat/rules'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { beforeEach, describe, expect, test } from 'vitest'
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import type { ApprovalAnswer, ToolOutcome } from '../../src/tools/tool.ts'
import { TestBatch, type TestBatchOptions } from '../calls/test-batch.ts'
import { hasRipgrep } from './local-sandboxes.ts'
import { emptySandbox, runIn, useSandboxes } from './use-sandboxes.ts'

const local = useSandboxes()
let sandbox: Sandbox
beforeEach(async () => {
  sandbox = await emptySandbox(local)
})

const shell = (command: string) => runIn(sandbox, command)

function batchIn(options: Omit<TestBatchOptions, 'sandboxes'>): TestBatch {
  return new TestBatch({ ...options, sandboxes: () => local.sandboxes })
}
function rule(effect: Rule['effect'], match: RuleMatch): Rule {
  return { id: 'r1', effect, match, origin: 'user', createdAt: 0 }
}
const content = async (path: string) => Buffer.from(await sandbox.files.read(path)).toString()
const refused = (outcome: ToolOutcome) =>
  expect(outcome, outcome.forModel).toMatchObject({ status: 'failed', reason: 'denied' })

/** Every file tool, pointed at a file below `folder`. */
const TOOLS: [string, (folder: string) => Record<string, unknown>][] = [
  ['read_file', (folder) => ({ path: `${folder}/key` })],
  ['list_directory', (folder) => ({ path: folder })],
  ['write_file', (folder) => ({ path: `${folder}/new/key`, content: 'x' })],
  ['edit_file', (folder) => ({ path: `${folder}/key`, old_text: 'secret', new_text: 'x' })],
  ['glob', (folder) => ({ path: folder, pattern: '*' })],
  ['search_text', (folder) => ({ path: folder, pattern: 'secret' })],
  ['search_text', (folder) => ({ path: `${folder}/key`, pattern: 'secret' })],
]

describe('a link in a repository', () => {
  test.each(['auto-edit', 'yolo'] as const)('gets nothing into .git, in %s', async (mode) => {
    await shell(
      'mkdir -p clone/.git; echo old > clone/.git/config; ln -s .git clone/notes; ln -s .git/config clone/c',
    )
    const batch = batchIn({ mode, answer: () => ({ allowed: true, by: 'user' }) })
    refused(await batch.call('write_file', { path: 'clone/notes/config', content: 'evil' }))
    refused(await batch.call('write_file', { path: 'clone/notes/hooks/x', content: 'evil' }))
    refused(await batch.call('write_file', { path: 'clone/c', content: 'evil' }))
    refused(await batch.call('edit_file', { path: 'clone/notes/config', old_text: 'old', new_text: 'evil' }))
    expect(await content('clone/.git/config')).toBe('old\n')
    expect((await sandbox.files.list('clone/.git')).map(({ path }) => path)).toEqual(['clone/.git/config'])
  })

  test('gets nothing into what the agent keeps to', async () => {
    await shell('mkdir clone; echo keep > AGENTS.md; ln -s ../AGENTS.md clone/README.md')
    await shell('mkdir a; echo keep > a/notes.md; ln -s notes.md a/CLAUDE.md')
    const batch = batchIn({ mode: 'auto-edit' })
    refused(await batch.call('write_file', { path: 'clone/README.md', content: 'evil' }))
    refused(await batch.call('write_file', { path: 'a/CLAUDE.md', content: 'evil' }))
    expect(await content('AGENTS.md')).toBe('keep\n')
    expect(await content('a/notes.md')).toBe('keep\n')
  })
})

describe.each(['deny', 'ask'] as const)('a rule that %ss', (effect) => {
  test.skipIf(!hasRipgrep).each(TOOLS)('holds for %s through a link', async (name, args) => {
    await shell('mkdir secrets; echo secret > secrets/key; ln -s secrets docs')
    const batch = batchIn({ mode: 'yolo', answer: () => ({ allowed: true, by: 'user' }) })
    batch.rules = [rule(effect, { file: 'secrets/**' })]
    const outcome = await batch.call(name, args('docs'))
    refused(outcome)
    expect(outcome.forModel).not.toContain('1:secret')
    expect(await content('secrets/key')).toBe('secret\n')
    expect(batch.story().some((what) => what.startsWith('asked'))).toBe(false)
  })

  test('holds for the name too', async () => {
    await shell('mkdir plain; echo secret > plain/key; ln -s plain secrets')
    const batch = batchIn({ mode: 'yolo', answer: () => ({ allowed: true, by: 'user' }) })
    batch.rules = [rule(effect, { file: 'secrets/**' })]
    refused(await batch.call('read_file', { path: 'secrets/key' }))
  })
})

describe('a link that concerns no rule', () => {
  test.skipIf(!hasRipgrep)('is followed within the workspace', async () => {
    await shell(
      'mkdir documents; echo secret > documents/key; ln -s documents docs; ln -s documents/key last',
    )
    const batch = batchIn({ mode: 'auto-edit' })
    for (const [name, args] of TOOLS)
      expect(await batch.call(name, args('docs')), name).toMatchObject({ status: 'completed' })
    expect((await batch.call('read_file', { path: 'last' })).status).toBe('completed')
    expect(await content('documents/new/key')).toBe('x')
  })

  test.skipIf(!hasRipgrep)('leads no tool out of the workspace', async () => {
    await shell('ln -s /etc e; ln -s /etc/passwd p; mkdir in; ln -s /etc in/e')
    const batch = batchIn({ mode: 'yolo' })
    for (const [name, args] of TOOLS)
      expect(await batch.call(name, args('e')), name).toMatchObject({ reason: 'path_outside' })
    expect(await batch.call('search_text', { path: 'p', pattern: 'root' })).toMatchObject({
      reason: 'path_outside',
    })
    const found = await batch.call('search_text', { pattern: 'root:', include_ignored: true })
    expect(found.forModel).toContain('Nothing')
    expect((await batch.call('glob', { pattern: '**/passwd' })).forModel).toContain('No file')
  })

  test('an allow rule is about where it leads', async () => {
    await shell('mkdir -p docs private; ln -s ../private docs/p')
    const asked: string[] = []
    const batch = batchIn({
      mode: 'manual',
      answer: (id) => {
        asked.push(id)
        return { allowed: false, by: 'user' }
      },
    })
    batch.rules = [rule('allow', { file: 'docs/**' })]
    await batch.call('write_file', { path: 'docs/a', content: 'x' }, 'plain')
    await batch.call('write_file', { path: 'docs/p/a', content: 'x' }, 'linked')
    expect(asked).toEqual(['linked'])
  })
})

describe('what was judged is what is opened', () => {
  const swap = 'mv docs real && ln -s secrets docs'

  test.skipIf(!hasRipgrep).each(TOOLS)('%s refuses a link that came with the answer', async (name, args) => {
    await shell('mkdir docs secrets; echo secret > docs/key; cp docs/key secrets/key')
    const batch = batchIn({
      mode: 'manual',
      answer: async () => {
        await shell(swap)
        return { allowed: true, by: 'user' }
      },
    })
    batch.rules = [rule('ask', { file: 'docs/**' })]
    refused(await batch.call(name, args('docs')))
    expect(await content('secrets/key')).toBe('secret\n')
    expect((await sandbox.files.list('secrets')).map(({ path }) => path)).toEqual(['secrets/key'])
  })

  test('an answer after a restart is about the file that was meant when it was asked', async () => {
    await shell('mkdir first second; ln -s first here')
    const before = batchIn({ mode: 'manual' })
    const call = { id: 'c1', name: 'write_file', args: { path: 'here/a', content: 'x' } }
    await before.run(
      [call],
      (event) => !before.story().some((what) => what.startsWith('asked')) || event === undefined,
    )
    expect(before.story()).toContain('asked c1')
    await shell('ln -sfn second here')
    const after = batchIn({ mode: 'manual', answer: () => ({ allowed: true, by: 'user' }) })
    after.log.push(...before.log)
    const [outcome] = await after.run([call])
    expect(outcome?.status).toBe('completed')
    expect(await content('first/a')).toBe('x')
    expect(await sandbox.files.list('second')).toEqual([])
  })

  const writeTo = (path: string) => ({ id: 'c1', name: 'write_file', args: { path, content: 'x' } })
  const WRITE = writeTo('here/a')
  /** A batch after a restart, of a call that was stored as far as `until`. */
  async function restarted(
    before: TestBatch,
    until: string,
    options: Omit<TestBatchOptions, 'sandboxes'>,
    call = WRITE,
  ): Promise<TestBatch> {
    await before.run([call], () => !before.story().includes(until))
    expect(before.story()).toContain(until)
    const after = batchIn(options)
    after.log.push(...before.log)
    return after
  }
  const allow = (): ApprovalAnswer => ({ allowed: true, by: 'user' })

  test('a call that had begun after an answer goes on with the file that was meant', async () => {
    await shell('mkdir first second; ln -s first here')
    const before = batchIn({ mode: 'manual', answer: allow })
    const after = await restarted(before, 'in_progress c1', { mode: 'manual', answer: allow })
    await shell('ln -sfn second here')
    expect(await after.run([WRITE])).toMatchObject([{ status: 'completed' }])
    expect(await content('first/a')).toBe('x')
    expect(await sandbox.files.list('second')).toEqual([])
  })

  test('a call that had begun without a question goes on through its link', async () => {
    await shell('mkdir first; ln -s first here')
    const after = await restarted(batchIn({ mode: 'yolo' }), 'in_progress c1', { mode: 'yolo' })
    expect(await after.run([WRITE])).toMatchObject([{ status: 'completed' }])
    expect(await content('first/a')).toBe('x')
  })

  test('a call that had begun goes on nowhere that is denied, and its effect is not known', async () => {
    await shell('mkdir first secrets; ln -s first here')
    const after = await restarted(batchIn({ mode: 'yolo' }), 'in_progress c1', { mode: 'yolo' })
    await shell('ln -sfn secrets here')
    after.rules = [rule('deny', { file: 'secrets/**' })]
    expect(await after.run([WRITE])).toMatchObject([{ status: 'failed', reason: 'unknown_effect' }])
    expect(await sandbox.files.list('secrets')).toEqual([])
  })

  const [COMPOSED, DECOMPOSED] = ['caf\u00E9', 'cafe\u0301']

  test('a name that came after the answer in another normal form is judged', async () => {
    const call = writeTo(COMPOSED)
    const manual = { mode: 'manual', answer: allow } as const
    const after = await restarted(batchIn({ mode: 'manual' }), 'asked c1', manual, call)
    await shell(`echo old > ${DECOMPOSED}`)
    const [outcome] = await after.run([call])
    expect(outcome).toMatchObject({ status: 'failed', reason: 'denied' })
    expect(await content(DECOMPOSED)).toBe('old\n')
  })

  test('an answer about a name in another normal form is about the stored name', async () => {
    await shell(`echo old > ${DECOMPOSED}`)
    const call = writeTo(COMPOSED)
    const manual = { mode: 'manual', answer: allow } as const
    const after = await restarted(batchIn({ mode: 'manual' }), 'asked c1', manual, call)
    expect(await after.run([call])).toMatchObject([{ status: 'completed' }])
    expect(await content(DECOMPOSED)).toBe('x')
  })

  /** The stored form of versions that did not resolve links. */
  function forgetLinks(batch: TestBatch): void {
    for (const event of batch.log) {
      const happened = sandlotEventOf(event)
      if (happened?.type === 'approval_asked') delete happened.links
    }
  }

  test('an answer to a question that named no link is none to where the link leads', async () => {
    await shell('mkdir first; ln -s first here')
    const after = await restarted(batchIn({ mode: 'manual' }), 'asked c1', { mode: 'manual', answer: allow })
    forgetLinks(after)
    const [outcome] = await after.run([WRITE])
    expect(outcome).toMatchObject({ status: 'failed', reason: 'denied' })
    expect(outcome?.forModel).toContain('leads to /workspace/first/a')
    expect(await sandbox.files.list('first')).toEqual([])
  })

  test('such an answer is refused by the rule for where the link leads', async () => {
    await shell('mkdir first; ln -s first here')
    const after = await restarted(batchIn({ mode: 'manual' }), 'asked c1', { mode: 'manual', answer: allow })
    forgetLinks(after)
    after.rules = [rule('deny', { file: 'first/**' })]
    const [outcome] = await after.run([WRITE])
    expect(outcome).toMatchObject({ reason: 'denied', data: { by: 'rule' } })
  })

  test('such an answer counts where the rules allow where the link leads', async () => {
    await shell('mkdir first; ln -s first here')
    const after = await restarted(batchIn({ mode: 'manual' }), 'asked c1', { mode: 'yolo', answer: allow })
    forgetLinks(after)
    expect(await after.run([WRITE])).toMatchObject([{ status: 'completed' }])
    expect(await content('first/a')).toBe('x')
  })
})

test.each(['auto-edit', 'yolo'] as const)(
  'no tool writes where Sandlot keeps its own, in %s',
  async (mode) => {
    await shell('mkdir .tool-outputs; echo kept > .tool-outputs/kept; ln -s .tool-outputs o')
    const batch = batchIn({ mode, answer: () => ({ allowed: true, by: 'user' }) })
    batch.rules = [rule('allow', { file: '**' })]
    for (const folder of ['.tool-outputs', 'o']) {
      refused(await batch.call('write_file', { path: `${folder}/.sessions`, content: 'evil' }))
      refused(await batch.call('edit_file', { path: `${folder}/kept`, old_text: 'kept', new_text: 'evil' }))
      expect((await batch.call('read_file', { path: `${folder}/kept` })).status).toBe('completed')
    }
    expect(await content('.tool-outputs/kept')).toBe('kept\n')
  },
)

describe.skipIf(!hasRipgrep)('search_text', () => {
  test('a pipe is no file to search, and is said at once', async () => {
    await shell('mkfifo pipe')
    const outcome = await batchIn({ mode: 'yolo' }).call('search_text', { path: 'pipe', pattern: 'x' })
    expect(outcome).toMatchObject({ reason: 'tool_error' })
    expect(outcome.forModel).toContain('neither a directory nor a regular file')
  })
})

describe('a path that a person changed before they allowed the call', () => {
  const changedTo = (path: string): TestBatch =>
    batchIn({
      mode: 'manual',
      answer: () => ({ allowed: true, by: 'user', input: { path, content: 'x' } }),
    })

  test('is the file that is written', async () => {
    const outcome = await changedTo('sub/b.txt').call('write_file', { path: 'a.txt', content: 'x' })
    expect(outcome, outcome.forModel).toMatchObject({ status: 'completed' })
    expect(outcome.forModel).toMatch(
      /^\[The user changed this call before it ran: path is now "sub\/b.txt"\]\n/,
    )
    expect((await sandbox.files.list('')).map(({ path }) => path)).toEqual(['sub'])
  })

  test('and leads through a link to what they were not shown, is refused, also where a rule denies it', async () => {
    await shell('mkdir secrets; echo secret > secrets/key; ln -s secrets docs')
    refused(await changedTo('docs/key').call('write_file', { path: 'a.txt', content: 'x' }))
    const batch = changedTo('docs/key')
    batch.rules = [rule('deny', { file: 'secrets/**' })]
    refused(await batch.call('write_file', { path: 'a.txt', content: 'x' }))
    expect(await content('secrets/key')).toBe('secret\n')
  })
})
