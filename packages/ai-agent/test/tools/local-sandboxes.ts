/** Real sandboxes for unit tests: sbxd as a child process, a temporary workspace, the real acquire. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import type { SandboxBackend } from '@sandlot/sandbox/backend'
import { createLocalProcessBackend } from '@sandlot/sandbox/backends/local-process'
import { listWorkspaces } from '@sandlot/sandbox/controller/workspaces'
import { createFileLedger } from '@sandlot/sandbox/file-ledger'
import { type Sandboxes, type SandboxesOptions, createSandboxes } from '@sandlot/sandbox/sandboxes'
import { buildSbxd } from '../../../sandbox/test/support/build-sbxd.ts'

/** The search tools need ripgrep, which the sandbox image has; a machine that runs unit tests may not. */
export const hasRipgrep = ['/usr/bin/rg', '/usr/local/bin/rg', '/bin/rg'].some((path) => existsSync(path))

export interface LocalSandboxes {
  sandboxes: Sandboxes
  workspaces(): ReturnType<typeof listWorkspaces>
  /**
   * Acts like a restart of the controller: every stream is closed, commands continue, the next
   * acquire reconnects.
   */
  restartController(): Promise<void>
  /** Acts like a restart of the container: another boot, the same workspace. */
  restartSandbox(userId: string): Promise<void>
  /** Acts like an operator who removes the volume of a stopped sandbox. Returns its name. */
  loseWorkspace(userId: string): Promise<string>
  dispose(): Promise<void>
}

/**
 * `passing`: called with every piece that is written to a sandbox; what it returns is written.
 * `freezes`: idle ones are paused.
 */
export async function openLocalSandboxes(
  change: Partial<SandboxesOptions> = {},
  passing?: (piece: Buffer) => Buffer,
  freezes = false,
): Promise<LocalSandboxes> {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-tools-'))
  const sbxd = await buildSbxd(directory)
  const backend = createLocalProcessBackend({ sbxd, directory: join(directory, 'volumes'), freezes })
  const options = {
    backend: passing === undefined ? backend : { ...backend, open: openPassing(backend, passing) },
    ledger: createFileLedger(join(directory, 'ledger.json')),
    deploymentKey: randomBytes(32),
    deploymentId: 'test',
    image: 'none',
    ...change,
  }
  const open = {
    sandboxes: createSandboxes(options),
    workspaces: () => listWorkspaces(options),
    async restartController() {
      const before = open.sandboxes
      open.sandboxes = createSandboxes(options)
      await before.close()
    },
    async restartSandbox(userId: string) {
      await open.sandboxes.stop(userId)
    },
    async loseWorkspace(userId: string) {
      await open.sandboxes.stop(userId)
      const { volume = '' } = (await options.ledger.find(userId)) ?? {}
      await rm(join(directory, 'volumes', volume), { recursive: true })
      return volume
    },
    async dispose() {
      await open.sandboxes.close()
      await backend.inventory.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
  return open
}

function openPassing(backend: SandboxBackend, passing: (piece: Buffer) => Buffer): SandboxBackend['open'] {
  return async (sandbox) => {
    const { stream: inner, keyId } = await backend.open(sandbox)
    const outer = new Duplex({
      read: () => {},
      write: (piece: Buffer, _encoding, done) => void inner.write(passing(piece), () => done()),
      destroy(error, done) {
        inner.destroy()
        done(error)
      },
    })
    inner.on('data', (piece: Buffer) => outer.push(piece))
    inner.on('error', () => {}).on('close', () => outer.destroy())
    return { stream: outer, keyId }
  }
}
