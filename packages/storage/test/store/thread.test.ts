/** Threads that are ended while they start: a native module that is being loaded then aborts the whole process. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { testFolder } from '../../../../test/folders.ts'

test(
  'a process that ends them at any moment of their start ends by itself',
  { timeout: 120_000 },
  async () => {
    const args = [
      '--conditions=sandlot-source',
      join(import.meta.dirname, 'end-threads.ts'),
      testFolder('thread'),
    ]
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: nodeEnvironment() })
    expect(stdout).toBe('ended 60\n')
  },
)
