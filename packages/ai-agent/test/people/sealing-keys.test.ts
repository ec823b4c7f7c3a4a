import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { beforeEach, expect, test } from 'vitest'
import { sealingKeys, writeSealingKeys } from '../../src/people/sealing-keys.ts'
import { testFolder } from '../../../../test/folders.ts'

const run = promisify(execFile)
const key = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)

let folder: string
beforeEach(() => {
  folder = testFolder('sealing')
  mkdirSync(join(folder, 'keys'))
})

test('keys that the disk takes only the beginning of do not replace those that are there', async () => {
  writeSealingKeys(join(folder, 'keys'), [key(1), key(2)])
  const module = pathToFileURL(join(import.meta.dirname, '../../src/people/sealing-keys.ts')).href
  // Fifty are longer than a file may be in that process: a write takes what fits, and only the next one says no.
  const program = `
    const { writeSealingKeys } = await import(${JSON.stringify(module)})
    writeSealingKeys(${JSON.stringify(join(folder, 'keys'))}, Array.from({ length: 50 }, () => new Uint8Array(32)))`
  const node = [process.execPath, '--conditions=sandlot-source', '--input-type=module', '--eval', program]
  const limited = run('sh', ['-c', 'ulimit -f 1; exec "$@"', 'sh', ...node])
  await expect(limited).rejects.toMatchObject({ stderr: expect.stringContaining('EFBIG') })
  expect(sealingKeys(join(folder, 'keys'), key(9))).toEqual([key(1), key(2)])
})
