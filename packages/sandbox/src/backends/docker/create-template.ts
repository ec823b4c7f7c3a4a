import type { SandboxLimits, SandboxSpec } from '../../backend.ts'
import { processLimits, RUN_BYTES, shmBytes } from '../../limits.ts'
import { LABEL, slotLabels } from '../../names.ts'
import { checkSpec, ENVIRONMENT, WORKSPACE } from '../template-parts.ts'

/** Facts about the engine's host for the template. */
export interface EngineFacts {
  cgroup: 'v1' | 'v2'
  /** CPUs of the host: the `thermal_throttle` folder of each is masked. */
  cpus: number
  /** Uids are remapped or the engine is rootless: no user inside is root on the host's kernel. */
  remapped?: boolean
}

/** Reads these facts from `GET /info`. */
export function engineFacts(info: {
  NCPU: number
  CgroupVersion?: string | undefined
  SecurityOptions?: string[] | undefined
}): EngineFacts {
  const cgroup = info.CgroupVersion === '2' ? 'v2' : 'v1'
  const remapped = info.SecurityOptions?.some((option) => /^name=(userns|rootless)/.test(option)) === true
  return { cgroup, cpus: info.NCPU, ...(remapped ? { remapped } : {}) }
}

interface TemplateInput {
  deployment: string
  spec: SandboxSpec
  /** `sha256:…`; never a tag, so that the checked image is the one that runs. */
  imageId: string
  /** The text of the profile that `spec.profile` names, not a path. */
  seccompProfile: string
  engine: EngineFacts
  /** Value of the label `sandlot.spec`. */
  fingerprint: string
}

/** Body of `POST /containers/create`, exactly our fields. */
export type CreateBody = ReturnType<typeof createTemplate>

/**
 * Without it, sbxd lets no command trace. No argument, as in a Pod: an earlier sbxd, in an
 * operator's own image, would not start with one. sbxd does not pass it on.
 */
const DEBUG_MARK = 'SBXD_PROFILE=debug'

/** The engine's own list. Ours replaces it, so it is included in full. */
const ENGINE_MASKED = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/interrupts',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
]

/** Paths that reveal the host, or help an attack on its kernel, and that no command needs. */
const OUR_MASKED = [
  '/proc/kallsyms',
  '/proc/modules',
  '/proc/config.gz',
  '/proc/kpagecount',
  '/proc/kpageflags',
  '/proc/kpagecgroup',
  '/sys/class/dmi',
  '/sys/devices/virtual/dmi',
  '/sys/kernel/debug',
  '/sys/kernel/tracing',
]

const READONLY = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

/**
 * The only create body: pure, with every control of the hardening checklist, and every field sent
 * even where it equals the engine's default. Throws `invalid_arguments` for invalid limits or an
 * invalid uid.
 */
export function createTemplate({
  deployment,
  spec,
  imageId,
  seccompProfile,
  engine,
  fingerprint,
}: TemplateInput) {
  checkSpec(spec)
  const { limits } = spec
  // Absent rather than undefined: the gate compares member by member.
  const runtime = spec.runtime === undefined ? {} : { Runtime: spec.runtime }
  return {
    Image: imageId,
    Entrypoint: ['/usr/bin/sbxd'],
    Cmd: [],
    User: `${spec.uid}:${spec.uid}`,
    Hostname: 'sandbox',
    Domainname: '',
    WorkingDir: WORKSPACE,
    Env: spec.profile === 'debug' ? [...ENVIRONMENT, DEBUG_MARK] : ENVIRONMENT,
    Labels: {
      ...spec.labels,
      ...slotLabels(deployment, spec),
      ...(spec.profile === 'debug' ? { [LABEL.profile]: spec.profile } : {}),
      [LABEL.spec]: fingerprint,
    },
    // With StdinOnce the first disconnect would close PID 1's stdin for ever.
    OpenStdin: true,
    StdinOnce: false,
    Tty: false,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    // sbxd exits at once on a TERM from outside and ignores one from inside.
    StopSignal: 'SIGTERM',
    StopTimeout: 2,
    Healthcheck: { Test: ['NONE'] },
    ExposedPorts: {},
    Volumes: {},
    HostConfig: {
      ...runtime,
      Privileged: false,
      CapAdd: [],
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true', `seccomp=${seccompProfile}`],
      ReadonlyRootfs: true,
      MaskedPaths: [...ENGINE_MASKED, ...thermalPaths(engine.cpus), ...OUR_MASKED],
      ReadonlyPaths: READONLY,
      Devices: [],
      DeviceRequests: [],
      DeviceCgroupRules: [],
      GroupAdd: [],
      // Older kernels forbid these changes in a user namespace, and the start would fail.
      Sysctls: engine.remapped === true ? {} : ipcLimits(limits),
      NetworkMode: 'none',
      PublishAllPorts: false,
      PortBindings: {},
      IpcMode: 'private',
      PidMode: '',
      UTSMode: '',
      UsernsMode: '',
      ...(engine.cgroup === 'v2' ? { CgroupnsMode: 'private' } : {}),
      // PID 1 is sbxd itself: under a tini it would be an ordinary process that `kill -9 -1` ends.
      Init: false,
      Binds: [],
      VolumesFrom: [],
      Mounts: [{ Type: 'volume', Source: spec.volume, Target: WORKSPACE, ReadOnly: false }],
      Tmpfs: {
        '/tmp': `rw,exec,nosuid,nodev,size=${limits.tmpBytes},nr_inodes=${inodes(limits.tmpBytes)},mode=1777`,
        '/run': `rw,noexec,nosuid,nodev,size=${RUN_BYTES},nr_inodes=1024,mode=1777`,
      },
      ShmSize: shmBytes(limits),
      Memory: limits.memoryBytes,
      // Equal to Memory: no swap.
      MemorySwap: limits.memoryBytes,
      // Refused by engines on cgroup v2.
      ...(engine.cgroup === 'v1' ? { MemorySwappiness: 0 } : {}),
      NanoCpus: Math.round(limits.cpus * 1e9),
      // A quarter of the default weight: on a busy host the controller has priority.
      CpuShares: 256,
      PidsLimit: limits.pids,
      // Never negative: the runtime sets it with its own privileges, so every process in the
      // sandbox could return to it, and the kernel would kill programs of the host instead. Process
      // 1 raises its commands by 500 while it forks them (oom.c); they can lower theirs to this
      // and no further, and process 1 is far smaller than they are.
      OomScoreAdj: 0,
      Ulimits: [
        // Not 0, which the kernel ignores where a crash starts a program of the host (core(5)). One
        // byte is too little for a file, and the filter prevents raising it.
        ulimit('core', 1),
        ...processLimits(limits).map(([name, most]) => ulimit(name, most)),
      ],
      LogConfig: { Type: 'none', Config: {} },
      RestartPolicy: { Name: 'no', MaximumRetryCount: 0 },
      AutoRemove: false,
    },
  }
}

function ulimit(name: string, value: number) {
  return { Name: name, Soft: value, Hard: value }
}

/**
 * SysV objects outlive their processes and use the sandbox's memory: unused ones are freed, all
 * segments together are no larger than /dev/shm, and messages and semaphores are few. The limits
 * apply to the private IPC namespace.
 */
function ipcLimits(limits: SandboxLimits): Record<string, string> {
  const shm = shmBytes(limits)
  return {
    'kernel.shm_rmid_forced': '1',
    'kernel.shmmax': String(shm),
    'kernel.shmall': String(Math.floor(shm / 4096)),
    'kernel.shmmni': '64',
    'kernel.msgmni': '64',
    'kernel.msgmnb': '16384',
    'kernel.sem': '250 32000 100 128',
  }
}

/** One inode per 4 KiB, as in a file system; at least 1,024. */
function inodes(bytes: number): number {
  return Math.max(1024, Math.floor(bytes / 4096))
}

function thermalPaths(cpus: number): string[] {
  return Array.from({ length: cpus }, (_, cpu) => `/sys/devices/system/cpu/cpu${cpu}/thermal_throttle`)
}
