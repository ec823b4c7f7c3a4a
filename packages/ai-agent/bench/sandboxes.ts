/**
 * Sandboxes for the bench, without an engine: sbxd and its commands are child processes of the bench. A Stop takes the same
 * way as into a container (the frames, sbxd, its walk through the tree of processes); only the container round it is missing.
 */
import { join } from 'node:path'
import { createLocalProcessBackend } from '@sandlot/sandbox/backends/local-process'
import { type Sandboxes, createSandboxes } from '@sandlot/sandbox/sandboxes'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { buildSbxd } from '../../sandbox/test/support/build-sbxd.ts'

export interface BenchSandboxes extends AsyncDisposable {
  sandboxes: Sandboxes
}

/** `folder` exists. Rejects where sbxd cannot be compiled. */
export async function openSandboxes(folder: string, { ledger }: SessionStore): Promise<BenchSandboxes> {
  const backend = createLocalProcessBackend({
    sbxd: await buildSbxd(folder),
    directory: join(folder, 'volumes'),
  })
  const deployment = { deploymentId: 'bench', deploymentKey: new Uint8Array(32).fill(7), image: 'none' }
  const sandboxes = createSandboxes({ backend, ledger, ...deployment })
  return {
    sandboxes,
    async [Symbol.asyncDispose]() {
      await sandboxes.close()
      await backend.inventory.close()
    },
  }
}
