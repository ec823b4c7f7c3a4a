import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createLocalProcessBackend } from '../src/backends/local-process.ts'
import { DEFAULT_LIMITS } from '../src/limits.ts'
import { buildSbxd } from './build-sbxd.ts'
import { testBackend } from './contract.ts'

testBackend({
  name: 'local-process',
  async open() {
    const directory = await mkdtemp(join(tmpdir(), 'sandlot-local-'))
    const backend = createLocalProcessBackend({
      sbxd: await buildSbxd(directory),
      directory: join(directory, 'volumes'),
    })
    return {
      backend,
      spec(change = {}) {
        const slot = randomBytes(4).toString('hex')
        const name = `sbx-test-${slot}-owner-${randomBytes(2).toString('hex')}`
        return {
          name,
          slot,
          uid: 30_000,
          volume: `vol-${slot}`,
          image: 'none',
          limits: DEFAULT_LIMITS,
          labels: {},
          ...change,
        }
      },
      async dispose() {
        await backend.close()
        await rm(directory, { recursive: true, force: true })
      },
    }
  },
})
