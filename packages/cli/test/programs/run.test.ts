/** Commands whose log cannot be written, as on a full disk. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { run } from '../../src/programs/run.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
beforeEach(() => void (folder = testFolder('run')))

const shell = (script: string, log: string): Promise<string> =>
  run('/bin/sh', ['-c', script], {
    cwd: folder,
    environment: nodeEnvironment(),
    log,
    fix: 'Free some space.',
  })

test('a full disk costs the log and nothing else', async () => {
  expect(await shell('echo out; echo problem >&2', '/dev/full')).toBe('out\n')
})

test('a failure does not point to a log that was not written', async () => {
  await expect(shell('echo broken >&2; exit 3', '/dev/full')).rejects.toMatchObject({
    message: expect.stringMatching(/^\/bin\/sh failed \(exit code 3\)\. Couldn’t write its log: .*ENOSPC/),
    details: 'broken',
    fix: 'Free some space.',
  })
})

test('a log that can be written has the command and what it printed', async () => {
  const log = join(folder, 'log', 'run.log')
  await expect(shell('echo out; exit 3', log)).rejects.toThrow(`Its full output is in ${log}`)
  expect(readFileSync(log, 'utf8')).toBe('\n$ /bin/sh -c echo out; exit 3\nout\n')
})
