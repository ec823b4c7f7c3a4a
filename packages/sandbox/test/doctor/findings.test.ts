import { expect, test } from 'vitest'

import { architecture, type EngineDescription, engineKind, judgeEngine } from '../../src/doctor/engine.ts'
import { type Finding, isSafe } from '../../src/doctor/finding.ts'
import { judgeHost } from '../../src/doctor/host.ts'
import { judgeProof } from '../../src/doctor/proof.ts'
import { hasFix, judgeVersions } from '../../src/doctor/versions.ts'

/** What a sandbox on a good machine says. */
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
])('fails for %s', (_, change, id) => {
  const findings = judgeProof(proof(change))
  expect(failed(findings)).toEqual([id])
  expect(isSafe(findings)).toBe(false)
})

test('what a sandbox does not say is not proved', () => {
  expect(failed(judgeProof(new Map()))).toEqual(judgeProof(new Map()).map(({ id }) => id))
})

test('gVisor has no filter of ours and needs none, but is no reason to accept a network', () => {
  const sentry = { kernel: 'Linux version 4.4.0 gvisor', Seccomp: '0', unshare: 'open', io_uring: 'ENOSYS' }
  expect(failed(judgeProof(proof(sentry)))).toEqual([])
  expect(failed(judgeProof(proof({ ...sentry, links: 'lo,eth0' })))).toEqual(['network'])
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

test('a version that nobody knows is not called safe', () => {
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

test('engines that speak the same protocol are told apart', () => {
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

test('the kernel of a remote engine is not that of this machine', async () => {
  const findings = await judgeHost(false)
  expect(findings.length).toBeGreaterThan(5)
  expect(new Set(findings.map(({ state }) => state))).toEqual(new Set(['unknown']))
})
