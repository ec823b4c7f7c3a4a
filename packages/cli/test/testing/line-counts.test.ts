import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { countLines, lineCounts } from '../../src/testing/line-counts.ts'

let root: string
const git = (...args: string[]): void => {
  const who = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org']
  execFileSync('git', [...who, ...args], { cwd: root, stdio: 'ignore' })
}
const write = (path: string, lines: number): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), 'x\n'.repeat(lines))
}
const commit = (): void => {
  git('add', '--all')
  git('commit', '--message', 'one')
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sandlot-lines-'))
  git('init', '--initial-branch', 'main')
  write('packages/a/src/one.ts', 10)
  write('packages/a/test/one.test.ts', 20)
  write('docs/a.md', 50)
  commit()
})
afterEach(() => rmSync(root, { recursive: true }))

test('source and tests of each package, beside the commit before', async () => {
  write('packages/a/src/one.ts', 4)
  write('packages/a/src/two.ts', 3)
  write('mcp/b/test/b.test.ts', 7)
  write('docs/a.md', 60)
  commit()
  expect(lineCounts(await countLines(root))).toEqual([
    'mcp/b                     0 (+0) lines of source, 7 (+7) of tests',
    'packages/a                7 (-3) lines of source, 20 (+0) of tests',
  ])
})

test('on a branch, beside where it left origin/main', async () => {
  git('update-ref', 'refs/remotes/origin/main', 'HEAD')
  for (const lines of [11, 12]) {
    write('packages/a/src/one.ts', lines)
    commit()
  }
  expect(lineCounts(await countLines(root))).toEqual([
    'packages/a                12 (+2) lines of source, 20 (+0) of tests',
  ])
})

test('without another commit there is nothing to compare with', async () => {
  await expect(countLines(root)).rejects.toThrow('HEAD~1')
})
