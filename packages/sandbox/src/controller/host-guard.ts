import type { SandboxBackend, SandboxLimits } from '../backend.ts'
import type { ConnectedSandbox } from '../sbxd/client.ts'
import { createDiskBreaker, type DiskBreakerState, type DiskFloor, type FreeDisk } from './disk-breaker.ts'
import { SandboxError } from '../errors.ts'
import { type HostLimits, withHostLimits } from './host-limits.ts'
import type { LiveSandbox } from './idle.ts'
import { LABEL } from '../names.ts'
import { diskBudget } from '../limits.ts'
import type { DiskBudget, SandboxStat } from '../sandbox.ts'

/** Limits for all sandboxes of a host together. */
export interface HostOptions extends HostLimits {
  /** Default none. */
  diskFloor?: DiskFloor
  /** Milliseconds between two measurements of the host's disk. Default 1,000. */
  lookEveryMs?: number
}

interface HostGuardOptions {
  backend: SandboxBackend
  deploymentId: string
  limits: SandboxLimits
  host: HostOptions
  makeRoom: () => Promise<boolean>
  /** Sandboxes with a stream. */
  connected: () => Pick<LiveSandbox, 'sandbox'>[]
  log: (message: string, details: { error?: unknown }) => void
}

interface HostGuard {
  /** The same backend with the limits of the host. */
  backend: SandboxBackend
  /** Current budget of a workspace. */
  budget(): DiskBudget
  /**
   * Sends the current budget to a sandbox that does not have it yet. Free while disk space is
   * ample.
   */
  adjust(sandbox: ConnectedSandbox): Promise<void>
  disk(): DiskBreakerState
  begin(): void
  close(): void
}

/** Limits the number and memory of sandboxes on a host, and protects its disk. */
export function createHostGuard(options: HostGuardOptions): HostGuard {
  const { backend, limits, host, connected } = options
  const measure = createDiskProbe(options)
  const breaker = createDiskBreaker({
    floor: host.diskFloor ?? { bytes: 0, files: 0 },
    measure,
    onChange: (open) => {
      options.log(open ? 'the host is short of disk: nothing may grow' : 'the host has disk space again', {})
      // A paused one writes nothing; it is updated when it is used again.
      for (const { sandbox } of connected()) if (!sandbox.paused) void follow(sandbox)
    },
    everyMs: host.lookEveryMs,
  })

  function budget(): DiskBudget {
    return {
      ...diskBudget(limits),
      // sbxd measures the disk it writes to, faster than any measurement from here.
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
        // Users with files must be able to start, to delete some.
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

/** Undefined for one that does not answer: another one can measure. */
async function statOf(sandbox: ConnectedSandbox): Promise<SandboxStat | undefined> {
  try {
    return await sandbox.stat()
  } catch (error) {
    if (error instanceof SandboxError) return undefined
    throw error
  }
}

/**
 * Measures the host's disk: directly where it is visible from here, else through a sandbox that is
 * awake anyway.
 */
function createDiskProbe({
  backend,
  connected,
}: Pick<HostGuardOptions, 'backend' | 'connected'>): () => Promise<FreeDisk | undefined> {
  /** Last use of each before our query, so that the query keeps none awake. */
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
