/** Git in a command that runs unasked because it only reads: it starts no program that a repository names. */
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { shellEnvironment } from '../../src/approval/shell/shell-parts.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { openLocalSandboxes } from './local-sandboxes.ts'
import { useSandboxes } from './use-sandboxes.ts'

const local = useSandboxes()

const MADE =
  `git config --global user.name A && git config --global user.email a@example.org && git init -q r && cd r && printf '#!/bin/sh\\necho ran >> "$HOME/ran"\\n' > ../m && chmod +x ../m && ` +
  'echo one > a && git add . && git commit -qm one && echo two > a'
const SUBMODULE =
  'git init -q ../s && git -C ../s commit -qm s --allow-empty && git -c protocol.file.allow=always submodule add -q ../s sub && git commit -qam sub && echo x > sub/f && git -C sub add f'
/** A repository without the object that a command needs, and how it would fetch that. */
const PARTIAL =
  'git clone -q --bare . ../full && git -C ../full config uploadpack.allowFilter true && git -C ../full config uploadpack.allowAnyObject true && cd .. && git clone -q --no-checkout --filter=blob:none file://$PWD/full part && rm -rf r && mv part r && cd r'

/** Programs that the configuration of a repository names, and commands that only read and would have git run them. */
const TRAPS: [trap: string, made: string, command: string][] = [
  ['a file-system monitor', 'git config core.fsmonitor $HOME/m', 'git status'],
  ['an external diff', 'git config diff.external $HOME/m', 'git diff'],
  [
    'the diff of an attribute',
    'git config diff.x.command $HOME/m; echo "a diff=x" > .gitattributes',
    'git diff',
  ],
  ['a text conversion', 'git config diff.x.textconv $HOME/m; echo "a diff=x" > .gitattributes', 'git log -p'],
  [
    'a filter',
    'git config filter.x.clean $HOME/m; echo "a filter=x" > .gitattributes; touch -d 2001-01-01 a',
    'git diff --stat',
  ],
  [
    'a filter that is a process',
    'git config filter.x.process $HOME/m; echo "a filter=x" > .gitattributes',
    'git blame a',
  ],
  [
    'signatures',
    `git config gpg.program $HOME/m; git config log.showSignature true; git update-ref HEAD $(git cat-file commit HEAD | sed 's/^committer.*/&\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n x\\n -----END PGP SIGNATURE-----/' | git hash-object -t commit -w --stdin)`,
    'git log',
  ],
  [
    'a folder of hooks',
    'git config core.hooksPath $HOME/h && mkdir -p $HOME/h && cp $HOME/m $HOME/h/post-index-change',
    'git status',
  ],
  [
    'an included file',
    'printf "[core]\\nfsmonitor = $HOME/m\\n" > ../more && git config include.path $HOME/more',
    'git status',
  ],
  [
    'a file included for this folder',
    'printf "[core]\\nfsmonitor = $HOME/m\\n" > ../more && git config includeIf.gitdir:$HOME/.path $HOME/more',
    'git status',
  ],
  [
    'the settings of a worktree',
    'git config extensions.worktreeConfig true && git config --worktree core.fsmonitor $HOME/m',
    'git status',
  ],
  ['another worktree', 'git config core.fsmonitor $HOME/m && git worktree add -q ../w', 'git -C ../w status'],
  ['one’s own settings', 'git config --global core.fsmonitor $HOME/m', 'git status'],
  ['a submodule’s monitor', `${SUBMODULE}; git -C sub config core.fsmonitor $HOME/m`, 'git status'],
  [
    'a submodule’s filter',
    `${SUBMODULE}; git -C sub config filter.x.clean $HOME/m; echo "f filter=x" > sub/.gitattributes; echo y > sub/f`,
    'git diff',
  ],
  ['the environment', 'export GIT_EXTERNAL_DIFF=$HOME/m', 'git diff'],
  ['a trace', 'export GIT_TRACE2=$HOME/ran', 'git diff'],
  [
    'a lazy fetch by a program',
    `${PARTIAL}; git config remote.origin.uploadpack "$HOME/m; git-upload-pack"`,
    'git show HEAD:a',
  ],
  [
    'a lazy fetch by ssh',
    `${PARTIAL}; git config core.sshCommand $HOME/m; git remote set-url origin host:x`,
    'git log -p',
  ],
  [
    'a lazy fetch by a helper',
    `${PARTIAL}; git remote set-url origin "ext::$HOME/m x"; git config protocol.ext.allow always`,
    'git cat-file -p HEAD:a',
  ],
  [
    'a key that is not known',
    'git config future.program $HOME/m; git config core.fsmonitor $HOME/m',
    'cd .. && git -C r status',
  ],
]
test.each(TRAPS)('%s asks, and does not run unasked', async (_, made, command) => {
  const own = await openLocalSandboxes()
  const batch = new TestBatch({ sandboxes: () => own.sandboxes, mode: 'yolo' })
  const run = async (line: string) => (await batch.call('run_shell_command', { command: line })).forModel
  try {
    expect(await run(`${MADE}; { ${made}; } 2>&1; rm -f ../ran`)).not.toMatch(/fatal|error/)
    batch.mode = 'manual'
    const { forModel } = await batch.call('run_shell_command', { command })
    expect(forModel).toContain('needs the approval of a person')
    const { why } =
      batch.events
        .flatMap((event) => sandlotEventOf(event) ?? [])
        .find((one) => one.type === 'approval_asked') ?? {}
    expect(why).toMatchObject([{ because: expect.stringMatching(/^reads with git/) }])
    expect(await run('ls $HOME')).not.toContain('ran')
    // The program is what would have run.
    batch.mode = 'yolo'
    await run(`${command}; true > $HOME/x`)
    if (!/known|fetch/.test(_)) expect(await run('ls $HOME')).toContain('ran')
  } finally {
    await own.dispose()
  }
})

test.each([
  [
    'a repository as clone makes it',
    'git remote add origin https://example.org/x.git; git config branch.main.remote origin',
    'git status && git diff',
  ],
  ['with submodules', SUBMODULE, 'git status && git diff && git log -p'],
  ['no repository', 'cd /tmp', 'git diff --no-index /dev/null /dev/null'],
  ['a worktree', 'git worktree add -q ../w', 'cd ../w && git log -p'],
  [
    'names and colours',
    'git config --global alias.st status; git config --global color.ui never; git config --global user.name Ada; git config --global core.editor vim; git config --global credential.helper store',
    'git log',
  ],
])('%s is read unasked', async (_, made, command) => {
  const own = await openLocalSandboxes()
  const batch = new TestBatch({ sandboxes: () => own.sandboxes, mode: 'yolo' })
  try {
    await batch.call('run_shell_command', { command: `${MADE}; ${made}` })
    batch.mode = 'manual'
    const outcome = await batch.call('run_shell_command', { command })
    expect(outcome.status, outcome.forModel).toBe('completed')
  } finally {
    await own.dispose()
  }
})

test('runs no hook, and what was exported stays as it was', async () => {
  const allowed = { allowed: true, by: 'user' } as const
  const batch = new TestBatch({ sandboxes: () => local.sandboxes, mode: 'manual', answer: () => allowed })
  const asked = () => batch.story().filter((what) => what.startsWith('asked')).length
  const run = async (command: string) => (await batch.call('run_shell_command', { command })).forModel
  await run(
    `git config --global user.name A && git config --global user.email a@example.org && git init -q r && cd r && printf '#!/bin/sh\\necho ran >> "$HOME/ran"\\n' > ../m && chmod +x ../m && ` +
      `mkdir -p .git/hooks && cp ../m .git/hooks/post-index-change && touch a && git add a && rm -f ../ran && export PATH="$PATH:/own"`,
  )
  const before = asked()
  expect(await run('git status --short')).toBe('A  a')
  expect(await run('git diff --cached --stat | cat')).toContain('0')
  expect(await run('echo $PATH')).toMatch(/:\/own$/)
  expect(asked()).toBe(before)
  expect(await run('ls ..')).not.toContain('ran')
  // Allowed by a person, it is git as the repository has it.
  await run('touch b && git add b && git status --short')
  expect(await run('ls ..')).toContain('ran')
})

test.each([
  ['git status', true],
  ['cd a && git -C b log -p | head', true],
  ['timeout 5 git diff', true],
  ['bash -c "git status"', true],
  ['ls', false],
  ['git status && git commit -m x', false],
  ['git status > x', false],
  ['/usr/bin/git status', false],
  ['git -c core.fsmonitor=x status', false],
])('%s: %s', (command, reads) => {
  expect(shellEnvironment(command) !== undefined).toBe(reads)
})
