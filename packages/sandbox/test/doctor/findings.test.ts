import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import type { EngineDescription } from '../../src/backends/docker/describe.ts'
import { architecture, engineKind, judgeEngine } from '../../src/doctor/engine.ts'
import { type Finding, isSafe } from '@sandlot/shared/base/finding'
import { judgeHost } from '../../src/doctor/host.ts'
import { judgeProof } from '../../src/controller/proof.ts'
import { hasFix, judgeVersions } from '../../src/doctor/versions.ts'

/** Proof of a sandbox on a good machine. */
const GOOD: Record<string, string> = {
  Seccomp: '2',
  NoNewPrivs: '1',
  CapInh: '0000000000000000',
  CapPrm: '0000000000000000',
  CapEff: '0000000000000000',
  CapBnd: '0000000000000000',
  CapAmb: '0000000000000000',
  io_uring: 'EPERM',
  userfaultfd: 'EPERM',
  unshare: 'EPERM',
  ptrace: 'EPERM',
  vsock: 'EPERM',
  root: 'EROFS',
  fds_of_1: 'EACCES',
  relay: 'EACCES',
  init: 'sbxd',
  links: 'lo',
  kernel: 'Linux version 6.1.0',
}
const proof = (change: Record<string, string> = {}): Map<string, string> =>
  new Map(Object.entries({ ...GOOD, ...change }))
const failed = (findings: readonly Finding[]): string[] =>
  findings.filter(({ state }) => state === 'failed').map(({ id }) => id)

test('a good sandbox proves everything', () => {
  expect(failed(judgeProof(proof()))).toEqual([])
  expect(isSafe(judgeProof(proof()))).toBe(true)
})

test.each([
  ['no filter', { Seccomp: '0' }, 'seccomp'],
  ['io_uring as an unfiltered kernel answers it', { io_uring: 'errno 14' }, 'seccomp-profile'],
  ['io_uring open', { io_uring: 'open' }, 'seccomp-profile'],
  ['user namespaces', { unshare: 'open' }, 'seccomp-profile'],
  ['tracing', { ptrace: 'open' }, 'seccomp-profile'],
  ['the socket of a virtual machine', { vsock: 'open' }, 'seccomp-profile'],
  ['set-uid files count', { NoNewPrivs: '0' }, 'no-new-privileges'],
  ['a bounding set', { CapBnd: '00000000a80425fb' }, 'capabilities'],
  ['a writable image', { root: 'open' }, 'read-only-root'],
  ['an image that only root could write to', { root: 'EACCES' }, 'read-only-root'],
  ['a network', { links: 'lo,eth0' }, 'network'],
  ['no interface at all is not what was asked for', { links: '' }, 'network'],
  ['another first process', { init: 'docker-init' }, 'supervisor'],
  ['its descriptors', { fds_of_1: 'open' }, 'supervisor-closed'],
  ['a relay that a command can open, in a Pod', { answered: '', relay: 'open' }, 'relay'],
])('fails for %s', (_, change, id) => {
  const findings = judgeProof(proof(change))
  expect(failed(findings)).toEqual([id])
  expect(isSafe(findings)).toBe(false)
})

test('with the debug profile a sandbox may trace its own processes, and nothing else is open', () => {
  const debug = (change: Record<string, string> = {}): string[] =>
    failed(
      judgeProof(proof({ ptrace: 'open', trace_1: 'EPERM', process_vm_writev: 'EPERM', ...change }), 'debug'),
    )
  expect(debug()).toEqual([])
  for (const name of ['trace_1', 'process_vm_writev', 'io_uring', 'unshare', 'vsock', 'userfaultfd'])
    expect(debug({ [name]: 'open' }), name).toEqual(['seccomp-profile'])
  expect(debug({ fds_of_1: 'open' })).toEqual(['supervisor-closed'])
})

test('what a sandbox does not say is not proved', () => {
  expect(failed(judgeProof(new Map()))).toEqual(judgeProof(new Map()).map(({ id }) => id))
})

/** Proof on Debian's runsc of December 2022: no NoNewPrivs and no CapAmb in /proc/self/status. */
const { NoNewPrivs: _, CapAmb: __, ...ON_BOTH } = GOOD
const SENTRY: Record<string, string> = {
  ...ON_BOTH,
  Seccomp: '0',
  io_uring: 'errno 14',
  userfaultfd: 'ENOSYS',
  unshare: 'open',
  ptrace: 'open',
  vsock: 'errno 97',
  root: 'EACCES',
  fds_of_1: 'open',
  kernel: 'Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016',
  log: '[    0.000000] Starting gVisor...',
  nnp: '1',
  root_mount: 'ro,trans=fd,rfdno=4',
  memory_of_1: 'EACCES',
  trace_1: 'EPERM',
}
const sentry = (change: Record<string, string>): Map<string, string> =>
  new Map(Object.entries({ ...SENTRY, ...change }))

test('gVisor has no filter of ours and needs none', () => {
  const findings = judgeProof(sentry({}))
  expect(isSafe(findings)).toBe(true)
  expect(failed(findings)).toEqual(['supervisor-closed'])
  expect(findings.find(({ id }) => id === 'supervisor-closed')).toMatchObject({ group: 'warn' })
  expect(failed(judgeProof(sentry({ fds_of_1: 'EACCES' })))).toEqual([])
})

test.each([
  ['a network', { links: 'lo,eth0' }, 'network'],
  ['the socket of a virtual machine', { vsock: 'open' }, 'seccomp-profile'],
  ['set-uid files count', { nnp: '0' }, 'no-new-privileges'],
  ['a capability', { CapBnd: '00000000a80425fb' }, 'capabilities'],
  ['an ambient capability, where it has them', { CapAmb: '0000000000000001' }, 'capabilities'],
  ['a writable image', { root: 'open' }, 'read-only-root'],
  ['an image that only root could write to', { root_mount: 'rw' }, 'read-only-root'],
  ['the memory of sbxd', { memory_of_1: 'open' }, 'supervisor-closed'],
  ['tracing sbxd', { trace_1: 'open' }, 'supervisor-closed'],
])('on gVisor too it fails for %s', (_name, change, id) => {
  const findings = judgeProof(sentry({ fds_of_1: 'EACCES', ...change }))
  expect(failed(findings)).toEqual([id])
  expect(isSafe(findings)).toBe(false)
})

test.each([
  ['no log', 'EPERM'],
  ['a log that speaks of it later', '[    1.000000] Starting gVisor...'],
  ['a log with more in that line', '[    0.000000] Starting gVisor... or not'],
  ['the log of Linux', '[    0.000000] Linux version 6.1.0'],
])('gVisor is not believed for %s', (_name, log) => {
  expect(isSafe(judgeProof(sentry({ log, kernel: 'Linux version 4.4.0 gvisor' })))).toBe(false)
})

test.each([
  ['1.1.11', ['1.1.12'], false],
  ['1.1.12', ['1.1.12'], true],
  ['1.2.0', ['1.1.12'], true],
  ['1.0.0', ['1.1.12'], false],
  ['1.2.7', ['1.2.8', '1.3.3'], false],
  ['1.2.9', ['1.2.8', '1.3.3'], true],
  ['1.3.0', ['1.2.8', '1.3.3'], false],
  ['1.1.15', ['1.2.8', '1.3.3'], false],
  ['1.4.0-rc.2', ['1.3.3', '1.4.0-rc.3'], false],
  ['1.4.0', ['1.3.3', '1.4.0-rc.3'], true],
  ['1.0.0-rc6', ['1.0.0-rc7'], false],
  ['20.10.24+dfsg1', ['23.0.15', '27.1.1'], false],
  ['29.1.0', ['23.0.15', '27.1.1'], true],
  ['unknown', ['1.0.0'], undefined],
])('%s has the fix of %j: %s', (version, fixed, expected) => {
  expect(hasFix(version, fixed)).toBe(expected)
})

test.each([
  ['engine', '19.03.0', '19.03.1', 'CVE-2019-14271'],
  ['engine', '23.0.14', '23.0.15', 'CVE-2024-41110'],
  ['engine', '24.0.9', '24.0.10', 'CVE-2024-41110'],
  ['engine', '25.0.5', '25.0.6', 'CVE-2024-41110'],
  ['engine', '26.1.4', '26.1.5', 'CVE-2024-41110'],
  ['engine', '27.1.0', '27.1.1', 'CVE-2024-41110'],
  ['runc', '1.0.0-rc6', '1.0.0-rc7', 'CVE-2019-5736'],
  ['runc', '1.1.11', '1.1.12', 'CVE-2024-21626'],
  ['runc', '1.2.7', '1.2.8', 'CVE-2025-52881'],
  ['runc', '1.3.2', '1.3.3', 'CVE-2025-52881'],
  ['runc', '1.4.0-rc.2', '1.4.0-rc.3', 'CVE-2025-52881'],
] as const)('%s %s has a known hole, which %s has not any more: %s', (component, older, newer, hole) => {
  const said = (version: string): string | undefined =>
    judgeVersions({ [component]: version }).find(({ id }) => id === `${component}-version`)?.message
  expect(said(older)).toContain(hole)
  expect(said(newer)).not.toContain(hole)
})

test('the documentation says of exactly those holes that versions are looked at', () => {
  const docs = readFileSync(new URL('../../../../docs/doctor.md', import.meta.url), 'utf8')
  const written = Array.from(
    docs.matchAll(/^\| ((?:CVE-[\d-]+(?:, )?)+).*\| checked: `([a-z]+-version)`/gm),
    ([, ids, check]) =>
      (ids ?? '')
        .split(', ')
        .filter(Boolean)
        .map((id) => `${id} ${check}`),
  ).flat()
  const looked = judgeVersions({ engine: '0.0.1', runc: '0.0.1' }).flatMap(({ id, message }) =>
    Array.from(message.matchAll(/CVE-\d+-\d+/g), ([hole]) => `${hole} ${id}`),
  )
  expect(written.toSorted()).toEqual(looked.toSorted())
})

test('an unknown version is not called safe', () => {
  expect(judgeVersions({}).map(({ state }) => state)).toEqual(['unknown', 'unknown'])
})

const DEBIAN: EngineDescription = {
  info: {
    OperatingSystem: 'Debian GNU/Linux 12',
    Architecture: 'x86_64',
    ServerVersion: '28.5.0',
    SecurityOptions: ['name=apparmor', 'name=seccomp,profile=builtin', 'name=cgroupns'],
    CgroupVersion: '2',
    LiveRestoreEnabled: true,
    Runtimes: { runc: {}, runsc: {} },
    DefaultRuntime: 'runc',
  },
  version: {
    Components: [
      { Name: 'Engine', Version: '28.5.0' },
      { Name: 'runc', Version: '1.3.3' },
    ],
  },
}
const engine = (
  info: EngineDescription['info'],
  components = DEBIAN.version.Components,
): EngineDescription => ({
  info: { ...DEBIAN.info, ...info },
  version: { Components: components ?? null },
})

test('engines that speak the same protocol are distinguished', () => {
  expect(engineKind(DEBIAN)).toBe('Docker Engine')
  expect(engineKind(engine({ OperatingSystem: 'Docker Desktop' }))).toBe('Docker Desktop')
  expect(engineKind(engine({ SecurityOptions: ['name=seccomp', 'name=rootless'] }))).toBe('rootless Docker')
  expect(engineKind(engine({}, [{ Name: 'Podman Engine', Version: '4.3.1' }]))).toBe('Podman')
  expect(architecture(engine({ Architecture: 'aarch64' }))).toBe('arm64')
  expect(architecture(engine({ Architecture: 'riscv64' }))).toBeUndefined()
})

test('a good engine has only its user ids to be warned about', () => {
  expect(failed(judgeEngine(DEBIAN))).toEqual(['user-namespace'])
  expect(failed(judgeEngine(engine({ SecurityOptions: ['name=apparmor', 'name=rootless'] })))).toEqual([])
})

test.each([
  ['an architecture without an image', { Architecture: 'riscv64' }, undefined, 'architecture'],
  ['limits that nobody enforces', { PidsLimit: false }, undefined, 'limits'],
  ['a runtime that is not there', {}, 'kata', 'runtime'],
  ['no layer below', { SecurityOptions: ['name=seccomp', 'name=userns'] }, undefined, 'lsm'],
  ['no live-restore', { LiveRestoreEnabled: false }, undefined, 'live-restore'],
  ['old cgroups', { CgroupVersion: '1' }, undefined, 'cgroup'],
  ['unaccounted swap', { SwapLimit: false }, undefined, 'swap'],
  ['an old engine', { ServerVersion: '24.0.7' }, undefined, 'engine-version'],
])('an engine with %s', (_, info, runtime, id) => {
  expect(failed(judgeEngine(engine(info), runtime))).toContain(id)
})

test('a rootless engine without cgroup v2 enforces no limit at all, and is refused', () => {
  const none = { MemoryLimit: false, PidsLimit: false, CpuCfsQuota: false, SwapLimit: false }
  const findings = judgeEngine(engine({ ...none, CgroupVersion: '1', SecurityOptions: ['name=rootless'] }))
  expect(findings.find(({ id }) => id === 'limits')).toMatchObject({
    group: 'must',
    state: 'failed',
    message: expect.stringContaining('memory, processes, CPU'),
  })
})

test('the kernel of a remote engine is not that of this machine', async () => {
  const findings = await judgeHost(false)
  expect(findings.length).toBeGreaterThan(5)
  expect(new Set(findings.map(({ state }) => state))).toEqual(new Set(['unknown']))
})
