/** Findings from an engine's description of itself. */
import { unlimited } from '../backends/docker/capabilities.ts'
import type { EngineDescription } from '../backends/docker/describe.ts'
import { check, type Finding, report } from '#shared/base/finding'
import { judgeVersions } from './versions.ts'

type EngineKind = 'Docker Engine' | 'Docker Desktop' | 'rootless Docker' | 'Podman'

/** Several engines implement this API. */
export function engineKind({ info, version }: EngineDescription): EngineKind {
  const component = (name: string): boolean =>
    (version.Components ?? []).some(({ Name }) => Name?.startsWith(name) === true)
  if (component('Podman')) return 'Podman'
  if (info.OperatingSystem?.includes('Docker Desktop') === true) return 'Docker Desktop'
  return (info.SecurityOptions ?? []).some((option) => option.startsWith('name=rootless'))
    ? 'rootless Docker'
    : 'Docker Engine'
}

/** Known names of the two supported architectures. */
export function architecture(description: EngineDescription): 'x86-64' | 'arm64' | undefined {
  const name = description.info.Architecture ?? ''
  if (/^(x86_64|amd64)$/.test(name)) return 'x86-64'
  return /^(aarch64|arm64)$/.test(name) ? 'arm64' : undefined
}

/** Findings that need no sandbox. `runtime`: that of future sandboxes. */
export function judgeEngine(description: EngineDescription, runtime?: string): Finding[] {
  const { info, version } = description
  const kind = engineKind(description)
  const security = info.SecurityOptions ?? []
  const has = (name: string): boolean => security.some((option) => option.startsWith(`name=${name}`))
  const runtimes = Object.keys(info.Runtimes ?? {})
  const chosen = runtime ?? info.DefaultRuntime ?? 'runc'
  const componentVersion = (name: string): string | undefined =>
    version.Components?.find(({ Name }) => Name === name)?.Version
  const known = architecture(description)
  const limits = unlimited(info)
  return [
    report(
      'engine-kind',
      'Engine',
      `${kind} ${info.ServerVersion ?? ''}, storage ${info.Driver ?? 'unknown'}`,
    ),
    check('must', 'architecture', 'Architecture', known !== undefined, {
      ok: known ?? '',
      bad: `${info.Architecture ?? 'not said'} has no sandbox image and no system call filter`,
      fix: 'Use an engine on x86-64 or arm64.',
    }),
    check('must', 'limits', 'Limits', limits.length === 0, {
      ok: 'memory, processes and CPU are enforced',
      bad: `the host does not enforce limits of ${limits.join(', ')}`,
      fix: 'Turn the cgroup controllers on (kernel command line: cgroup_enable=memory; rootless: delegate them to the user).',
    }),
    check('must', 'runtime', 'Runtime', runtimes.length === 0 || runtimes.includes(chosen), {
      ok: chosen,
      bad: `${chosen} is not known to the engine (it knows ${runtimes.join(', ')})`,
      fix: 'Install it and name it in the engine’s daemon.json, or change SANDLOT_SANDBOX_RUNTIME.',
    }),
    ...judgeVersions({
      ...(kind === 'Podman' || info.ServerVersion === undefined ? {} : { engine: info.ServerVersion }),
      ...(componentVersion('runc') === undefined ? {} : { runc: componentVersion('runc') ?? '' }),
    }),
    check('warn', 'lsm', 'AppArmor or SELinux', has('apparmor') || has('selinux'), {
      ok: 'active',
      bad: 'neither is active on the engine: one layer less',
      fix: 'Install apparmor (Debian, Ubuntu) and start the engine again; Docker Desktop has none.',
    }),
    check('warn', 'user-namespace', 'User ids', has('userns') || kind === 'rootless Docker', {
      ok: kind === 'rootless Docker' ? 'the engine itself is not root' : 'remapped',
      bad: 'the engine does not remap them: uid 30000 inside is uid 30000 outside',
      fix: 'Set "userns-remap": "default" in the engine’s daemon.json (its images and volumes start empty), or run it rootless.',
    }),
    check('warn', 'live-restore', 'Live-restore', info.LiveRestoreEnabled !== false, {
      ok: 'commands survive a restart of the engine',
      bad: 'off: restarting the engine ends running commands',
      fix: 'Set "live-restore": true in the engine’s daemon.json.',
    }),
    check('warn', 'cgroup', 'cgroups', info.CgroupVersion === '2', {
      ok: 'version 2',
      bad: 'version 1; version 2 accounts memory more exactly',
      fix: 'Boot with systemd.unified_cgroup_hierarchy=1, or a distribution of 2021 or later.',
    }),
    check('warn', 'swap', 'Swap', info.SwapLimit !== false, {
      ok: 'accounted',
      bad: 'not accounted: a sandbox may use swap beyond its memory limit',
      fix: 'Add swapaccount=1 to the kernel’s command line, or use no swap.',
    }),
  ]
}
