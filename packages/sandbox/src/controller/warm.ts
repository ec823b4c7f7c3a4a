import type { BackendSandbox } from '../backend.ts'
import { connectOpened, open } from './connect-opened.ts'
import { type ContainerOptions, containersOf } from './start-container.ts'
import { collect } from '../sbxd/collect.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import type { Prove } from './proof.ts'
import { SandboxError } from '../errors.ts'
import { deriveStateKey } from './key.ts'
import type { LedgerSlot } from '../ledger.ts'
import { diskBudget } from '../limits.ts'
import { parseName } from '../names.ts'
import { ownedElsewhere } from './shared-engine.ts'
import { orAborted } from '#shared/async/or-aborted'

/** A warm sandbox: started, connected and not claimed. */
export interface Warm {
  slot: LedgerSlot
  sandbox: ConnectedSandbox
  /** Its stream has ended. */
  ended: boolean
}

/** Milliseconds for the first command in a new sandbox, while others are queued to be created. */
const READY_MS = 30_000

export interface WarmContext extends ContainerOptions {
  prove: Prove
}

/**
 * Connects to the container of a warm slot, in any state. Rejects with a `SandboxError`, `fenced`
 * when another controller has claimed it.
 */
export async function openWarm(
  slot: LedgerSlot,
  container: BackendSandbox,
  context: WarmContext,
  signal: AbortSignal,
): Promise<Warm> {
  // First: a failure later would leave the stream open.
  const epoch = await context.ledger.nextEpoch()
  // After the epoch: a later claim has a greater one, and takes the sandbox over from us.
  const rows = await context.ledger.list()
  if (!rows.some((row) => row.slot === slot.slot && row.state === 'warm')) throw ownedElsewhere()
  const opened = await open(container, context.backend, signal)
  // Connecting verifies by a round trip that it serves, not only that it runs.
  const sandbox = await connectOpened(slot.slot, opened, context, {
    stateKey: deriveStateKey(context.deploymentKey, slot.slot),
    epoch,
    signal,
    disk: diskBudget(context.limits),
    profile: context.profileFor?.(undefined) ?? 'default',
  })
  try {
    await context.prove(sandbox, opened.profile)
    await checkReady(sandbox, signal)
  } catch (error) {
    await sandbox.close()
    throw error
  }
  return { slot, sandbox, ended: false }
}

/** Checks that it can run a command, so that the slow first run of a program precedes a user's. */
async function checkReady(sandbox: ConnectedSandbox, signal: AbortSignal): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(READY_MS)])
  // Not the command's own timeout: a program may hang where no signal reaches it.
  const { code, cause, stderr } = await orAborted(
    collect(sandbox, { command: ['/bin/bash', '-c', ':'] }),
    limit,
    () =>
      new SandboxError(
        'timeout',
        'A new sandbox did not run /bin/bash in time. Look at the load of its host.',
      ),
  )
  if (code === 0) return
  const end = code === null ? cause : `exit code ${code}`
  throw new SandboxError(
    'sandbox_lost',
    `A new sandbox could not run /bin/bash (${end}${stderr === '' ? '' : `: ${stderr.slice(-500)}`}). Look at the sandbox image.`,
  )
}

/**
 * Removes a slot that was never claimed: by the engine first, then by the ledger, which is
 * irreversible.
 */
export async function drain({ slot, volume }: LedgerSlot, context: WarmContext): Promise<void> {
  const { backend, ledger, deploymentId } = context
  const containers = await containersOf(slot, context)
  if (!containers.every((container) => hasPoolName(container, deploymentId))) return
  if (!(await ledger.condemn(slot))) return
  for (const { id } of containers) await backend.remove(id)
  await backend.inventory.volumes.remove(volume)
  await ledger.release(slot)
}

/** True for a container that was never claimed, by its name on the engine. */
export function hasPoolName(container: BackendSandbox, deploymentId: string): boolean {
  return parseName(deploymentId, container.name)?.kind === 'pool'
}
