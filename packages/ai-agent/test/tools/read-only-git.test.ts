/** Git in a command that runs unasked because it only reads: it starts no program that a repository names. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { shellEnvironment } from '../../src/approval/shell/shell-parts.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { type LocalSandboxes, openLocalSandboxes } from './local-sandboxes.ts'

let local: LocalSandboxes
beforeAll(async () => {
  local = await openLocalSandboxes()
}, 60_000)
afterAll(() => local.dispose())

test('runs no file-system monitor and no hook, and what was exported stays as it was', async () => {
  const allowed = { allowed: true, by: 'user' } as const
  const batch = new TestBatch({ sandboxes: () => local.sandboxes, mode: 'manual', answer: () => allowed })
  const asked = () => batch.story().filter((what) => what.startsWith('asked')).length
  const run = async (command: string) => (await batch.call('run_shell_command', { command })).forModel
  await run(
    `git init -q r && cd r && printf '#!/bin/sh\\necho ran >> "$HOME/ran"\\n' > ../m && chmod +x ../m && ` +
      `git config core.fsmonitor "$PWD/../m" && mkdir -p .git/hooks && cp ../m .git/hooks/post-index-change && touch a && git add a && rm -f ../ran && export PATH="$PATH:/own"`,
  )
  const before = asked()
  expect(await run('git status --short')).toBe('A  a')
  expect(await run('git diff --cached --stat | cat')).toContain('0')
  expect(await run('echo $PATH')).toMatch(/:\/own$/)
  expect(asked()).toBe(before)
  expect(await run('ls ..')).not.toContain('ran')
  // Allowed by a person, it is git as the repository has it.
  await run('git add a && git status --short && true > x')
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
