/** In `auto` every line that loses what git does not hold asks; what sessions usually do is asked about as rarely as before. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '../../../../test/campaign.ts'
import { judge } from '../../src/approval/engine.ts'
import { lostToGit } from '../../src/approval/held-by-git.ts'
import type { CallRequest } from '../../src/approval/request.ts'
import { losing } from './corpus/losing.ts'
import { usual } from './corpus/usual.ts'
import { useSandboxes } from '../tools/use-sandboxes.ts'

/** Questions about the usual lines as they were before utilities had lists of known options. */
const BEFORE = 9

const MADE = `
git init -q -b main repo; cd repo; git config user.email a@example.org; git config user.name A
mkdir -p src/deep new draft build node_modules
printf 'one\\ntwo\\n' > kept.txt; echo deep > src/deep/kept.txt; printf 'all:\\n\\ttrue\\n' > Makefile; echo 'int main;' > src/main.c
echo '{"name":"x"}' > package.json; echo other > new/d1.txt; printf 'ignored\\nbuild\\nnode_modules\\n*.log\\n' > .gitignore
echo was > src/changed.txt; echo 'first notes' > notes.md; printf '%s\\n' '--- kept.txt' '+++ kept.txt' '@@ -1,2 +1,2 @@' '-one' '+uno' ' two' > fix.patch
git add .; git commit -qm first; git rm -q --cached notes.md; git commit -qm second
tar cf a.tar notes.md; zip -q a.zip notes.md; echo old | gzip > old.gz; printf '%s\\n' '--- data.csv' '+++ data.csv' '@@ -1,2 +1,2 @@' '-b,2' '+b,9' ' a,1' > data.patch; git add -f a.tar a.zip fix.patch data.patch; git commit -qm third
echo 'changed since' > src/changed.txt; git diff -R > undo.patch; git add undo.patch; git commit -qm fourth -- undo.patch
printf 'precious notes\\nand more\\n' > notes.md; printf 'b,2\\na,1\\n' > data.csv; echo log > app.log; echo object > build/out.o; echo module > node_modules/m.js
echo draft-1 > draft/d1.txt; echo draft-2 > draft/d2.txt; echo part > xaa; echo part > xx00`

const local = useSandboxes()
let sandbox: Sandbox
let made: string
beforeAll(async () => {
  made = mkdtempSync(join(tmpdir(), 'sandlot-losing-'))
  execFileSync('bash', ['-c', MADE], { cwd: made })
  sandbox = await local.sandboxes.acquire('u_test')
  cpSync(made, sandbox.workspace, { recursive: true, preserveTimestamps: true })
}, 60_000)
afterAll(() => rmSync(made, { recursive: true }))

async function asks(command: string): Promise<boolean> {
  const call: CallRequest = {
    tool: 'run_shell_command',
    kind: 'execute',
    readOnly: false,
    asks: [{ kind: 'shell', command, cwd: 'repo' }],
  }
  const { verdict, atRisk } = judge(call, [], 'auto', { externalAccess: undefined })
  if (atRisk.length === 0) return verdict === 'ask'
  const lost = await lostToGit(sandbox, atRisk, { cwd: '/workspace/repo', sessionId: 's' })
  return judge(call, [], 'auto', { externalAccess: undefined, lost }).verdict === 'ask'
}

/** Files that git does not hold, by path. */
function precious(folder: string): string {
  const paths = [
    'notes.md',
    'data.csv',
    'src/changed.txt',
    'draft/d1.txt',
    'draft/d2.txt',
    'old.gz',
    'a.zip',
    'xaa',
    'xx00',
  ]
  return paths
    .map((path) => join(folder, 'repo', path))
    .map((path) => (existsSync(path) ? readFileSync(path, 'base64') : 'gone'))
    .join(' ')
}

test('there are more than a hundred lines that lose something', () => {
  expect(new Set(losing).size).toBeGreaterThan(190)
})

test.each(sample('losing lines', losing, 40))('%s asks, and really loses something', async (line) => {
  const copy = mkdtempSync(join(tmpdir(), 'sandlot-loses-'))
  try {
    cpSync(made, copy, { recursive: true, preserveTimestamps: true })
    const before = precious(copy)
    try {
      execFileSync('timeout', ['20', 'bash', '-c', line], { cwd: join(copy, 'repo'), stdio: 'ignore' })
    } catch {
      // Its own statements do not count.
    }
    expect(precious(copy)).not.toBe(before)
    expect(await asks(line)).toBe(true)
  } finally {
    for (const folder of [copy, '/tmp/sandlot-lost', '/dev/shm/sandlot-lost'])
      rmSync(folder, { recursive: true, force: true })
  }
})

test('of two hundred usual lines no more ask than before, and a twentieth', async () => {
  expect(usual.length).toBeGreaterThanOrEqual(200)
  const asked: string[] = []
  for (const line of usual) if (await asks(line)) asked.push(line)
  expect(asked.length, asked.join('\n')).toBeLessThanOrEqual(BEFORE * 1.05)
}, 60_000)
