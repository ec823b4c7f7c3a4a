import { describe, expect, test } from 'vitest'

import type { SandboxSpec } from '../../../src/backend.ts'
import { createTemplate, engineFacts } from '../../../src/backends/docker/create-template.ts'
import { SandboxError } from '../../../src/errors.ts'
import { LABEL } from '../../../src/names.ts'
import { DEFAULT_LIMITS } from '../../../src/limits.ts'

type TemplateInput = Parameters<typeof createTemplate>[0]

const spec: SandboxSpec = {
  name: 'sbx-dep-abcdefgh-0123456789abcdef-1',
  slot: 'abcdefgh',
  uid: 31_234,
  volume: 'sbx-dep-abcdefgh',
  image: 'sandlot/sandbox:latest',
  limits: DEFAULT_LIMITS,
  labels: {},
}
const input: TemplateInput = {
  deployment: 'dep',
  spec,
  imageId: 'sha256:1234',
  seccompProfile: '{"defaultAction":"SCMP_ACT_ERRNO"}',
  engine: { cgroup: 'v2', cpus: 2 },
  fingerprint: 'f00d',
}
const make = (change: Partial<TemplateInput> = {}) => createTemplate({ ...input, ...change })
const host = (change: Partial<TemplateInput> = {}) => make(change).HostConfig

describe('the create template, control by control of the hardening checklist', () => {
  test('C1 no capabilities', () => {
    expect(host()).toMatchObject({ CapDrop: ['ALL'], CapAdd: [], Privileged: false })
  })
  test('C2, C3 no privilege gain, and the profile itself', () => {
    expect(host().SecurityOpt).toEqual([
      'no-new-privileges:true',
      'seccomp={"defaultAction":"SCMP_ACT_ERRNO"}',
    ])
  })
  test('C5 its own uid and group', () => {
    expect(make().User).toBe('31234:31234')
    expect(host().GroupAdd).toEqual([])
  })
  test('C7 read-only root', () => {
    expect(host().ReadonlyRootfs).toBe(true)
  })
  test('C8 scratch is bounded, in bytes and inodes', () => {
    expect(host().Tmpfs).toEqual({
      '/tmp': 'rw,exec,nosuid,nodev,size=268435456,nr_inodes=65536,mode=1777',
      '/run': 'rw,noexec,nosuid,nodev,size=4194304,nr_inodes=1024,mode=1777',
    })
    expect(host().ShmSize).toBe(64 * 1024 * 1024)
  })
  test('C9 one named volume, nothing else', () => {
    expect(host().Mounts).toEqual([
      { Type: 'volume', Source: 'sbx-dep-abcdefgh', Target: '/workspace', ReadOnly: false },
    ])
    expect(host()).toMatchObject({ Binds: [], VolumesFrom: [] })
    expect(make().Volumes).toEqual({})
  })
  test('C10, C11, C12 processes, memory without swap, CPU below the controller', () => {
    expect(host()).toMatchObject({
      PidsLimit: 512,
      Memory: 2 ** 31,
      MemorySwap: 2 ** 31,
      NanoCpus: 2e9,
      CpuShares: 256,
    })
    expect(host({ engine: { cgroup: 'v1', cpus: 2 } })).toHaveProperty('MemorySwappiness', 0)
    expect(host()).not.toHaveProperty('MemorySwappiness')
    expect(host()).not.toHaveProperty('OomKillDisable')
  })
  test('C22 no OOM score below the ordinary one, which every command could take for itself', () => {
    expect(host().OomScoreAdj).toBe(0)
  })
  test('the debug profile is said in a label, and to sbxd in the environment', () => {
    expect(make().Env).toEqual(make({ spec: { ...spec, profile: 'debug' } }).Env.slice(0, -1))
    expect(make({ spec: { ...spec, profile: 'debug' } }).Env.at(-1)).toBe('SBXD_PROFILE=debug')
    expect(make().Labels).not.toHaveProperty([LABEL.profile])
    expect(make({ spec: { ...spec, profile: 'debug' } }).Labels).toHaveProperty([LABEL.profile], 'debug')
  })
  test('C13 descriptors, file size, core dumps; never nproc', () => {
    const limits = Object.fromEntries(host().Ulimits.map(({ Name, Soft, Hard }) => [Name, [Soft, Hard]]))
    expect(limits).toEqual({
      core: [1, 1],
      nofile: [4096, 4096],
      fsize: [2 ** 32, 2 ** 32],
      memlock: [65536, 65536],
      sigpending: [1024, 1024],
      msgqueue: [262144, 262144],
    })
  })
  test('C15 no network', () => {
    expect(host()).toMatchObject({ NetworkMode: 'none', PublishAllPorts: false, PortBindings: {} })
    expect(make().ExposedPorts).toEqual({})
  })
  test('C16, C27, C28 sbxd is PID 1 of the image by id, ended by TERM', () => {
    expect(make()).toMatchObject({
      Image: 'sha256:1234',
      Entrypoint: ['/usr/bin/sbxd'],
      Cmd: [],
      StopSignal: 'SIGTERM',
    })
    expect(host().Init).toBe(false)
  })
  test('C17 no log', () => {
    expect(host().LogConfig).toEqual({ Type: 'none', Config: {} })
  })
  test('C18 stdin stays open over a disconnect', () => {
    expect(make()).toMatchObject({
      OpenStdin: true,
      StdinOnce: false,
      Tty: false,
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
    })
  })
  test('C19 its own namespaces', () => {
    expect(host()).toMatchObject({
      IpcMode: 'private',
      PidMode: '',
      UTSMode: '',
      UsernsMode: '',
      CgroupnsMode: 'private',
    })
    expect(host({ engine: { cgroup: 'v1', cpus: 2 } })).not.toHaveProperty('CgroupnsMode')
  })
  test('C20 masks: the engine’s defaults and more, per CPU too', () => {
    expect(host().MaskedPaths).toEqual(
      expect.arrayContaining([
        ...[
          'asound',
          'acpi',
          'kcore',
          'keys',
          'latency_stats',
          'timer_list',
          'timer_stats',
          'sched_debug',
          'scsi',
        ].map((name) => `/proc/${name}`),
        ...['interrupts', 'kallsyms', 'modules', 'config.gz'].map((name) => `/proc/${name}`),
        ...['firmware', 'devices/virtual/powercap', 'class/dmi', 'devices/virtual/dmi', 'kernel/debug'].map(
          (name) => `/sys/${name}`,
        ),
        '/sys/devices/system/cpu/cpu1/thermal_throttle',
      ]),
    )
    expect(host().ReadonlyPaths).toEqual([
      '/proc/bus',
      '/proc/fs',
      '/proc/irq',
      '/proc/sys',
      '/proc/sysrq-trigger',
    ])
  })
  test('C21 no devices', () => {
    expect(host()).toMatchObject({ Devices: [], DeviceRequests: [], DeviceCgroupRules: [] })
  })
  test('C8, C19 what outlives processes in the IPC namespace is bounded; not where uids are remapped', () => {
    expect(host().Sysctls).toEqual({
      'kernel.shm_rmid_forced': '1',
      'kernel.shmmax': '67108864',
      'kernel.shmall': '16384',
      'kernel.shmmni': '64',
      'kernel.msgmni': '64',
      'kernel.msgmnb': '16384',
      'kernel.sem': '250 32000 100 128',
    })
    const rootless = engineFacts({
      NCPU: 2,
      SecurityOptions: ['name=seccomp,profile=default', 'name=rootless'],
    })
    expect(host({ engine: rootless }).Sysctls).toEqual({})
    expect(engineFacts({ NCPU: 2, SecurityOptions: ['name=seccomp,profile=default'] })).toEqual({
      cgroup: 'v1',
      cpus: 2,
    })
  })
  test('C23 a runtime only when one is named', () => {
    expect(host()).not.toHaveProperty('Runtime')
    expect(host({ spec: { ...spec, runtime: 'runsc' } })).toHaveProperty('Runtime', 'runsc')
  })
  test('C24 our reconciler restarts and removes', () => {
    expect(host()).toMatchObject({ RestartPolicy: { Name: 'no', MaximumRetryCount: 0 }, AutoRemove: false })
  })
  test('C25 labels name the deployment, slot and uid, and cannot be overridden by the spec', () => {
    const labels = make({ spec: { ...spec, labels: { 'sandlot.deployment': 'other', extra: '1' } } }).Labels
    expect(labels).toEqual({
      extra: '1',
      'sandlot.deployment': 'dep',
      'sandlot.role': 'sandbox',
      'sandlot.slot': 'abcdefgh',
      'sandlot.uid': '31234',
      'sandlot.volume': 'sbx-dep-abcdefgh',
      'sandlot.schema': '1',
      'sandlot.spec': 'f00d',
    })
  })
  test('C26 a short fixed environment, nothing of ours', () => {
    expect(make().Env.map((line) => line.split('=')[0])).toEqual([
      'PATH',
      'HOME',
      'SHELL',
      'LANG',
      'TERM',
      'TZ',
      'SANDBOX',
    ])
  })
  test('no field beyond these', () => {
    expect(Object.keys(make()).toSorted()).toMatchSnapshot()
    expect(Object.keys(host()).toSorted()).toMatchSnapshot()
  })
})

describe('what cannot be is refused', () => {
  test.each([0, 999, 29_999, 60_000, 31_234.5, Number.NaN])('uid %s', (uid) => {
    expect(() => make({ spec: { ...spec, uid } })).toThrow(SandboxError)
  })
  test.each([
    [{ memoryBytes: 0 }],
    [{ cpus: -1 }],
    [{ pids: 1.5 }],
    [{ openFiles: Number.POSITIVE_INFINITY }],
    // /tmp, /run and shm together over a quarter of the memory
    [{ memoryBytes: 1024 * 1024 * 1024 }],
    [{ tmpBytes: 512 * 1024 * 1024 }],
  ])('limits %j', (limits) => {
    expect(() => make({ spec: { ...spec, limits: { ...DEFAULT_LIMITS, ...limits } } })).toThrow(
      /Sandbox limits/,
    )
  })
  test('half a CPU is fine', () => {
    expect(host({ spec: { ...spec, limits: { ...DEFAULT_LIMITS, cpus: 0.5 } } }).NanoCpus).toBe(5e8)
  })
})

test('a limit that is left undefined is the default one', () => {
  const limits = { ...spec.limits, diskEntries: undefined }
  expect(make({ spec: { ...spec, limits } })).toEqual(make())
})
