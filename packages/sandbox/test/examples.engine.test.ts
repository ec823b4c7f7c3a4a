/** The examples do what they say, as a reader would run them. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fileURLToPath } from 'node:url'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { docker } from './support/docker-fixture.ts'

const EXAMPLES = fileURLToPath(new URL('../examples/', import.meta.url))
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-examples-'))
})
afterAll(async () => {
  const { id } = JSON.parse(await readFile(join(folder, 'deployment.json'), 'utf8')) as { id: string }
  const label = `label=sandlot.deployment=${id}`
  const lines = (text: string): string[] => text.split('\n').filter(Boolean)
  const containers = lines(await docker('ps', '-aq', '--filter', label))
  if (containers.length > 0) await docker('rm', '-f', ...containers)
  const volumes = lines(await docker('volume', 'ls', '-q', '--filter', label))
  if (volumes.length > 0) await docker('volume', 'rm', ...volumes)
  await rm(folder, { recursive: true, force: true })
})

test.each([
  ['1-run.ts', ['stdout: I am user', 'No such file or directory', 'exited with 3, 10 bytes printed']],
  ['2-survive.ts', ['step 1\nstep 2\nstep 3\nended: exited']],
  ['3-files.ts', ['second line: two', 'listed: notes/today.txt (14 bytes)', 'outside: path_outside']],
  ['4-terminal.ts', ['columns 100']],
  [
    '5-look-after.ts',
    [
      String.raw`4 bytes from 0: "y\ny\n"`,
      String.raw`4 bytes from 999996: "y\ny\n"`,
      'printed in all: 1000000',
      'refused: invalid_arguments',
    ],
  ],
])('%s', async (name, said) => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=sandlot-source', join(EXAMPLES, name), folder],
    { timeout: 60_000 },
  )
  for (const line of said) expect(stdout).toContain(line)
})
