import type { BackendSandbox } from './backend.ts'
import { type BringUpOptions, containersOf, open } from './bring-up.ts'
import { connectSandbox, type ConnectedSandbox } from './client.ts'
import type { Prove } from './doctor/proof.ts'
import { deriveSandboxKey } from './key.ts'
import type { LedgerSlot } from './ledger.ts'
import { diskBudget } from './limits.ts'
import { parseName } from './names.ts'

/** Started, answered, and not yet anybody's. */
export interface Warm {
  slot: LedgerSlot
  sandbox: ConnectedSandbox
  /** Its stream is gone. */
  ended: boolean
}

export interface WarmContext extends BringUpOptions {
  prove: Prove
}

/** Connect to the container of a warm slot, in whatever state it is. Rejects with a `SandboxError`. */
export async function openWarm(
  slot: LedgerSlot,
  container: BackendSandbox,
  context: WarmContext,
  signal: AbortSignal,
): Promise<Warm> {
  // First: were it refused, nobody would let go of the stream.
  const epoch = await context.ledger.nextEpoch()
  const { id, stream, profile } = await open(container, context.backend, signal)
  // `connectSandbox` proves by a round trip that it serves, not only that it runs.
  const sandbox = await connectSandbox({
    id,
    stream,
    key: deriveSandboxKey(context.deploymentKey, id),
    epoch,
    signal,
    disk: diskBudget(context.limits),
  })
  try {
    await context.prove(sandbox, profile)
  } catch (error) {
    await sandbox.close()
    throw error
  }
  return { slot, sandbox, ended: false }
}

/** Remove a slot that nobody ever claimed: the engine must say so, then the ledger, which can not be undone. */
export async function drain({ slot, volume }: LedgerSlot, context: WarmContext): Promise<void> {
  const { backend, ledger, deploymentId } = context
  const containers = await containersOf(slot, context)
  if (!containers.every((container) => hasPoolName(container, deploymentId))) return
  if (!(await ledger.condemn(slot))) return
  for (const { id } of containers) await backend.remove(id)
  await backend.removeVolume(volume)
  await ledger.release(slot)
}

/** Whether the engine says that this container was never anybody's. */
export function hasPoolName(container: BackendSandbox, deploymentId: string): boolean {
  return parseName(deploymentId, container.name)?.kind === 'pool'
}
