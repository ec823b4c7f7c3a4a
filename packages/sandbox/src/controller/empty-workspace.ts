/**
 * Empties a workspace before its volume is removed: an engine that recurses 60,000 levels runs out
 * of descriptors.
 */
import { connectOpened, open } from './connect-opened.ts'
import { type ContainerOptions, specOf } from './start-container.ts'
import { collect, newCommandId } from '../sbxd/collect.ts'
import { SandboxError } from '../errors.ts'
import type { LedgerSlot } from '../ledger.ts'
import { poolName } from '../names.ts'
import type { Sandbox } from '../sandbox.ts'

/** Milliseconds for the start of the sandbox that empties the workspace. */
const START_MS = 60_000
/** The files to remove may exceed every budget. */
const UNLIMITED = { bytes: 0, entries: 0 }
/** Milliseconds for the removal, which holds the lock of its user. */
const REMOVE_MS = 600_000
/**
 * Works for any names. A folder that its owner closed cannot be moved. Two passes: find runs each
 * action in its own batches, so of many folders some would be moved before they are opened.
 */
const GATHER = `
  folders() { find . -mindepth 1 -maxdepth 1 -type d ! -name "$0" "$@"; }
  mkdir "$0" && folders -exec chmod u+rwx {} + && folders -exec mv -t "$0" {} +
`

/** Receives a workspace that was not emptied before its volume was removed. */
export type RemovalLog = (message: string, details: { slot: string; error: unknown }) => void

/**
 * Removes the volume of a slot without containers, emptied where a sandbox can be created for that,
 * which requires an image and disk space. Idempotent. Rejects with a `SandboxError` where the
 * engine refuses the volume.
 */
export async function removeWorkspace(
  workspace: Workspace,
  options: ContainerOptions,
  log: RemovalLog,
): Promise<void> {
  const { volumes } = options.backend.inventory
  try {
    if (volumes.emptyFirst) await emptyWorkspace(workspace, options)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    if (error.code === 'workspace_missing') return
    log('a workspace could not be emptied, so the engine removes it as it is', {
      slot: workspace.slot,
      error,
    })
  }
  await volumes.remove(workspace.volume)
}

type Workspace = Pick<LedgerSlot, 'slot' | 'uid' | 'volume'>

/**
 * Removes every tree in the volume of a slot without containers, in a temporary sandbox. The rest
 * is flat. Idempotent. Rejects with a `SandboxError`, `timeout` when `limit` aborts.
 */
export async function emptyWorkspace(
  { slot, uid, volume }: Workspace,
  options: ContainerOptions,
  limit: AbortSignal = AbortSignal.timeout(REMOVE_MS),
): Promise<void> {
  const { backend, deploymentId, ledger } = options
  const row: LedgerSlot = { slot, uid, volume, state: 'condemned', generation: 0, createdAt: Date.now() }
  const spec = { ...specOf(row, poolName(deploymentId, slot), options), hasWorkspace: true }
  const container = await backend.create(spec)
  try {
    const epoch = await ledger.nextEpoch()
    const signal = AbortSignal.timeout(START_MS)
    const opened = await open(container, backend, signal)
    const sandbox = await connectOpened(slot, opened, options, { epoch, signal, disk: UNLIMITED })
    // Without the connection neither a command nor a removal is awaited.
    const giveUp = (): void =>
      void sandbox.close(new SandboxError('timeout', 'The workspace was not emptied in time.'))
    limit.addEventListener('abort', giveUp)
    if (limit.aborted) giveUp()
    try {
      await removeTrees(sandbox)
    } finally {
      limit.removeEventListener('abort', giveUp)
      await sandbox.close()
    }
  } finally {
    await backend.remove(container.id)
  }
}

/** By sbxd, which needs few descriptors for any depth, width or mode of a tree. */
async function removeTrees(sandbox: Sandbox): Promise<void> {
  const gathered = newCommandId()
  const { code, stderr } = await collect(sandbox, { command: ['/bin/bash', '-c', GATHER, gathered] })
  if (code !== 0)
    throw new SandboxError('disk_quota', `The workspace could not be emptied: ${stderr.slice(-500)}`)
  await sandbox.files.remove(gathered, { recursive: true })
}
