import type { BackendCapabilities } from '../../backend.ts'
import { DEADLINE, type Engine } from './engine.ts'

/** Fields of `GET /info` that are read here. */
export interface EngineInfo {
  ID: string
  ServerVersion: string
  NCPU: number
  CgroupVersion?: string
  Runtimes?: Record<string, unknown>
  SecurityOptions?: string[]
  Driver?: string
  /** Pairs of name and value. */
  DriverStatus?: [string, string][]
  DockerRootDir?: string
  PidsLimit?: boolean
  MemoryLimit?: boolean
  SwapLimit?: boolean
  CpuCfsQuota?: boolean
  LiveRestoreEnabled?: boolean
}

export function readInfo(engine: Engine, signal?: AbortSignal): Promise<EngineInfo> {
  return engine.call('describe itself', DEADLINE.read, (docker): Promise<EngineInfo> => docker.info(), signal)
}

/**
 * Those of `memory`, `processes` and `CPU` that the engine cannot limit. It creates containers
 * anyway, without the limit.
 */
export function unlimited(info: Pick<EngineInfo, 'MemoryLimit' | 'PidsLimit' | 'CpuCfsQuota'>): string[] {
  const limits = { memory: info.MemoryLimit, processes: info.PidsLimit, CPU: info.CpuCfsQuota }
  return Object.entries(limits).flatMap(([name, enforced]) => (enforced === false ? [name] : []))
}

/** Each warning is one plain sentence for an operator. */
export function capabilitiesFrom(
  info: EngineInfo,
  apiVersion: string,
  quota: QuotaKind,
): BackendCapabilities {
  const security = info.SecurityOptions ?? []
  const has = (name: string): boolean => security.some((option) => option.startsWith(`name=${name}`))
  const cgroup = info.CgroupVersion === '2' ? 'v2' : 'v1'
  const warnings: string[] = []
  if (!has('seccomp'))
    warnings.push('The Docker engine has no seccomp: sandboxes would run without a system call filter.')
  const missing = unlimited(info)
  if (missing.length > 0) warnings.push(`The host does not enforce limits of ${missing.join(', ')}.`)
  if (info.SwapLimit === false)
    warnings.push('The host does not account swap: a sandbox may use swap beyond its memory limit.')
  if (!has('apparmor') && !has('selinux'))
    warnings.push('Neither AppArmor nor SELinux is active on the engine.')
  if (!has('userns') && !has('rootless'))
    warnings.push('The engine does not remap user ids (userns-remap) and is not rootless.')
  if (info.LiveRestoreEnabled === false)
    warnings.push('Live-restore is off: restarting the Docker engine ends running commands.')
  if (cgroup === 'v1') warnings.push('The host uses cgroup v1; v2 accounts memory more exactly.')
  if (quota === 'soft')
    warnings.push(
      'The disk budget of a sandbox is watched, not a wall: a fast writer passes it by what it writes in a moment. With the engine’s data root on xfs, mounted with pquota, it is one.',
    )
  return {
    name: 'docker',
    isolates: true,
    version: info.ServerVersion,
    apiVersion,
    runtimes: Object.keys(info.Runtimes ?? {}),
    cgroup,
    quota,
    pause: true,
    warnings,
  }
}

/** `hard`: the file system holds a volume to its size. `soft`: sbxd watches it. */
export type QuotaKind = 'hard' | 'soft'
