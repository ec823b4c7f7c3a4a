import type { BackendSandbox, SandboxBackend, SandboxLimits } from '../backend.ts'
import { SandboxError } from '../errors.ts'
import { createGate } from '#shared/async/keyed-lock'
import { parseName } from '../names.ts'

/** Limits for all sandboxes of a deployment on one host. Absent: unlimited. */
export interface HostLimits {
  /** Running and paused ones; a stopped sandbox uses only disk. */
  sandboxes?: number
  /** Sum of their memory limits, in bytes. */
  memoryBytes?: number
}

interface HostUse {
  sandboxes: number
  memoryBytes: number
}

/** Maximum usage of this many sandboxes with these limits. */
function hostUse(sandboxes: number, limits: Pick<SandboxLimits, 'memoryBytes'>): HostUse {
  return { sandboxes, memoryBytes: sandboxes * limits.memoryBytes }
}

/** Message for usage above the limits; undefined below them. */
function overHostLimit(use: HostUse, limits: HostLimits): string | undefined {
  if (limits.sandboxes !== undefined && use.sandboxes > limits.sandboxes)
    return `${limits.sandboxes} sandboxes may run at once on this host (SANDLOT_HOST_SANDBOXES)`
  if (limits.memoryBytes !== undefined && use.memoryBytes > limits.memoryBytes) {
    const mib = Math.floor(limits.memoryBytes / 1024 / 1024)
    return `the sandboxes of this host may have ${mib} MiB of memory together (SANDLOT_HOST_MEMORY_MB)`
  }
  return undefined
}

interface HostLimitsOptions {
  deploymentId: string
  /** Limits of each sandbox. */
  limits: SandboxLimits
  host: HostLimits
  /** Stops one idle sandbox; false when there is none. */
  makeRoom: () => Promise<boolean>
}

/**
 * A backend that starts a sandbox only when the host has room for it. Otherwise an idle one is
 * stopped first; when all are busy, `open` rejects with `host_full`. A pool sandbox never stops
 * another one.
 */
export function withHostLimits(backend: SandboxBackend, options: HostLimitsOptions): SandboxBackend {
  const { host, limits, makeRoom } = options
  if (host.sandboxes === undefined && host.memoryBytes === undefined) return backend
  /** Admitted, and not yet listed as running. */
  const starting = new Set<string>()
  const oneAtATime = createGate(1)

  /** Undefined when there is room. */
  async function problem(id: string): Promise<{ why: string; isWarm: boolean } | undefined> {
    const all = await backend.list({})
    const busy = new Set(all.filter(usesMemory).map((container) => container.id))
    for (const other of starting) busy.add(other)
    busy.add(id)
    const why = overHostLimit(hostUse(busy.size, limits), host)
    const name = all.find((container) => container.id === id)?.name ?? ''
    return why === undefined
      ? undefined
      : { why, isWarm: parseName(options.deploymentId, name)?.kind === 'pool' }
  }

  async function letIn(id: string): Promise<void> {
    for (;;) {
      const found = await problem(id)
      if (found === undefined) break
      if (found.isWarm || !(await makeRoom()))
        throw new SandboxError(
          'host_full',
          `There is no room for another sandbox: ${found.why}, and all of them are in use. Wait until one is idle, or ask the operator for more.`,
        )
    }
    starting.add(id)
  }

  return {
    ...backend,
    async open(sandbox, signal) {
      if (sandbox.state === 'running') return backend.open(sandbox, signal)
      await oneAtATime(() => letIn(sandbox.id))
      try {
        return await backend.open(sandbox, signal)
      } finally {
        starting.delete(sandbox.id)
      }
    },
  }
}

function usesMemory({ state }: BackendSandbox): boolean {
  return state === 'running' || state === 'paused'
}
