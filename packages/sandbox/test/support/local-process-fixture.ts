import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createLocalProcessBackend } from '../../src/backends/local-process.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { slotLabels } from '../../src/names.ts'
import { claimedName, poolName } from '../../src/names.ts'
import type { BackendFixture } from '../contract/harness.ts'

const DEPLOYMENT = 'test'

/** The local-process backend in a folder of its own, with the sbxd that `build` puts there. */
export async function localProcessFixture(
  build: (directory: string) => Promise<string>,
): Promise<BackendFixture> {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-local-'))
  const backend = createLocalProcessBackend({
    sbxd: await build(directory),
    directory: join(directory, 'volumes'),
  })
  return {
    backend,
    spec(change = {}) {
      const slot = randomBytes(4).toString('hex')
      const volume = poolName(DEPLOYMENT, slot)
      return {
        name: claimedName(DEPLOYMENT, slot, randomBytes(8).toString('hex'), 1),
        slot,
        uid: 30_000,
        volume,
        image: 'none',
        limits: DEFAULT_LIMITS,
        labels: slotLabels(DEPLOYMENT, { slot, uid: 30_000, volume }),
        ...change,
      }
    },
    async dispose() {
      await backend.inventory.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
