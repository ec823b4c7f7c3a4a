import type { SandboxBackend, SandboxLimits } from '../backend.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { createDiskBreaker, type DiskBreakerState, type DiskFloor, type FreeDisk } from './disk-breaker.ts'
import { SandboxError } from '../errors.ts'
import { type HostLimits, withHostLimits } from './host-limits.ts'
import type { LiveSandbox } from './idle.ts'
import { LABEL } from '../names.ts'
import { diskBudget } from '../limits.ts'
import type { DiskBudget, SandboxStat } from '../sandbox.ts'

/** What all sandboxes together may use of their host. */
export interface HostOptions extends HostLimits {
  /** Default none. */
  diskFloor?: DiskFloor
  /** Milliseconds between two looks at the host's disk. Default 1,000. */
  lookEveryMs?: number
}

interface HostGuardOptions {
  backend: SandboxBackend
  deploymentId: string
  limits: SandboxLimits
  host: HostOptions
  makeRoom: () => Promise<boolean>
  /** The sandboxes that there is a stream to. */
  connected: () => Pick<LiveSandbox, 'sandbox'>[]
  log: (message: string, details: { error?: unknown }) => void
}

interface HostGuard {
  /** The same backend, held to the limits of the host. */
  backend: SandboxBackend
  /** What a workspace may hold just now. */
  budget(): DiskBudget
  /**
   * Make this sandbox follow the host's disk if it does not yet. Costs nothing while there is
   * plenty.
   */
  adjust(sandbox: ConnectedSandbox): Promise<void>
  disk(): DiskBreakerState
  begin(): void
  close(): void
}

/** Keeps a host from being filled: number and memory of sandboxes, and its disk. */
export function createHostGuard(options: HostGuardOptions): HostGuard {
  const { backend, limits, host, connected } = options
  const looker = createLooker(options)
  const breaker = createDiskBreaker({
    floor: host.diskFloor ?? { bytes: 0, files: 0 },
    look: looker,
    onChange: (open) => {
      options.log(open ? 'the host is short of disk: nothing may grow' : 'the host has disk space again', {})
      // One that rests writes nothing; it follows when it is used again.
      for (const { sandbox } of connected()) if (!sandbox.paused) void follow(sandbox)
    },
    everyMs: host.lookEveryMs,
  })

  function budget(): DiskBudget {
    return {
      ...diskBudget(limits),
      // sbxd sees the disk it writes to, and is faster than any look from here.
      hostFloor: host.diskFloor,
      ...(breaker.state().open ? { freeze: true } : {}),
    }
  }

  async function follow(sandbox: ConnectedSandbox): Promise<void> {
    try {
      await sandbox.setDiskBudget(budget())
    } catch (error) {
      options.log('a sandbox could not get the disk budget of its host', { error })
    }
  }

  const limited = withHostLimits(backend, { ...options, host })
  return {
    backend: {
      ...limited,
      async create(spec, signal) {
        // Who has files already must get in, to delete some.
        if (breaker.state().open && (await backend.list({ [LABEL.slot]: spec.slot })).length === 0)
          breaker.check()
        return limited.create(spec, signal)
      },
    },
    budget,
    async adjust(sandbox) {
      if ((sandbox.disk?.frozen ?? false) !== breaker.state().open) await follow(sandbox)
    },
    disk: () => breaker.state(),
    begin: () => breaker.begin(),
    close: () => breaker.close(),
  }
}

/** Undefined of one that does not answer: another one can tell. */
async function statOf(sandbox: ConnectedSandbox): Promise<SandboxStat | undefined> {
  try {
    return await sandbox.stat()
  } catch (error) {
    if (error instanceof SandboxError) return undefined
    throw error
  }
}

/**
 * How full the host is: seen by ourselves where its disk is ours too, else by a sandbox that is
 * awake anyway.
 */
function createLooker({
  backend,
  connected,
}: Pick<HostGuardOptions, 'backend' | 'connected'>): () => Promise<FreeDisk | undefined> {
  /** When each was used last before we asked, so that our asking keeps none awake. */
  const asked = new WeakMap<ConnectedSandbox, { usedAt: number; commands: number }>()
  return async () => {
    const own = await backend.inventory.hostDisk?.()
    if (own !== undefined) return own
    for (const { sandbox } of connected()) {
      const before = asked.get(sandbox)
      if (sandbox.paused || (before && before.commands === 0 && before.usedAt === sandbox.usedAt)) continue
      const stat = await statOf(sandbox)
      if (stat === undefined) continue
      asked.set(sandbox, { usedAt: sandbox.usedAt, commands: stat.load.commands })
      const { freeBytes, freeFiles, files } = stat.fileSystem
      return { bytes: freeBytes, files: files === 0 ? Number.POSITIVE_INFINITY : freeFiles }
    }
    return undefined
  }
}
