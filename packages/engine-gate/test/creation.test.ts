import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { SandboxSpec } from '@sandlot/sandbox/backend'
import { createTemplate } from '@sandlot/sandbox/backends/docker/create-template'
import { readSeccompProfile } from '@sandlot/sandbox/backends/docker/seccomp'
import { DEFAULT_LIMITS } from '@sandlot/sandbox/limits'
import { campaign, extent } from '../../../test/campaign.ts'
import { checkCreate, checkVolume } from '../src/creation.ts'
import { Refusal } from '../src/refusal.ts'

type Policy = Parameters<typeof checkCreate>[2]

const spec: SandboxSpec = {
  name: 'sbx-dep-abcdefgh-0123456789abcdef-1',
  slot: 'abcdefgh',
  uid: 31_234,
  volume: 'sbx-dep-abcdefgh',
  image: 'sandlot/sandbox:latest',
  limits: DEFAULT_LIMITS,
  labels: {},
}
const imageId = `sha256:${'12'.repeat(32)}`
const policy: Policy = {
  deployment: 'dep',
  imageIds: [`sha256:${'34'.repeat(32)}`, imageId],
  runtime: undefined,
  seccompProfile: '{"defaultAction":"SCMP_ACT_ERRNO"}',
  limits: DEFAULT_LIMITS,
  engine: { cgroup: 'v2', cpus: 2 },
}
const template = (change: Partial<SandboxSpec> = {}) =>
  createTemplate({ ...policy, imageId, spec: { ...spec, ...change }, fingerprint: 'f00d' })
const judge = (body: unknown, name: string | undefined = spec.name, rules: Policy = policy) =>
  checkCreate(name, typeof body === 'string' ? body : JSON.stringify(body), rules)

/** A copy with one field changed; `undefined` takes it away. */
function changed(path: string, value: unknown): unknown {
  const copy = structuredClone(template()) as unknown as Record<string, unknown>
  const names = path.split('.')
  const last = names.pop() ?? ''
  let at = copy
  for (const name of names) at = at[name] as Record<string, unknown>
  if (value === undefined) delete at[last]
  else at[last] = value
  return copy
}

describe('what a controller sends passes', () => {
  test('the template, and it is made again rather than passed on', () => {
    const body = template()
    expect(judge(body)).toEqual({ body, volume: spec.volume, uid: spec.uid, slot: spec.slot })
  })
  test.each([
    [{ limits: { ...DEFAULT_LIMITS, cpus: 0.3, memoryBytes: 2 ** 30, tmpBytes: 2 ** 24, pids: 64 } }],
    [{ limits: { ...DEFAULT_LIMITS, diskBytes: 2 ** 20, openFiles: 256 } }],
    [{ labels: { 'sandlot.contract': 'a1' } }],
    [{ uid: 59_999 }],
  ])('with %j', (change) => {
    expect(judge(template(change)).body).toEqual(template(change))
  })
  test('the pool name of the slot too', () => {
    expect(judge(template(), 'sbx-dep-abcdefgh').slot).toBe('abcdefgh')
  })
  test('from each of the configured images, and from no other', () => {
    for (const Image of policy.imageIds) expect(judge({ ...template(), Image }).body.Image).toBe(Image)
    for (const Image of [`sha256:${'56'.repeat(32)}`, 'sandlot/sandbox:latest', ''])
      expect(() => judge({ ...template(), Image })).toThrow(Refusal)
    expect(() => judge(template(), spec.name, { ...policy, imageIds: [] })).toThrow(/image/)
  })
})

describe('the debug profile', async () => {
  const debug = await readSeccompProfile('debug')
  const granted: Policy = { ...policy, debugProfile: debug }
  const body = createTemplate({
    ...policy,
    imageId,
    spec: { ...spec, profile: 'debug' },
    seccompProfile: debug,
    fingerprint: 'f00d',
  })
  test('passes where it is granted, and only as it is', () => {
    expect(judge(body, spec.name, granted).body).toEqual(body)
    expect(judge(template(), spec.name, granted).body).toEqual(template())
    const more = structuredClone(body)
    more.HostConfig.SecurityOpt[1] = `seccomp=${debug.replace('"ptrace"', '"bpf"')}`
    expect(() => judge(more, spec.name, granted)).toThrow(Refusal)
    expect(() => judge({ ...body, Env: template().Env }, spec.name, granted)).toThrow(/Env/)
    expect(() => judge({ ...template(), Env: body.Env }, spec.name, granted)).toThrow(/Env/)
    expect(() => judge({ ...body, Labels: template().Labels }, spec.name, granted)).toThrow(/profile/)
    expect(() => judge({ ...template(), Labels: body.Labels }, spec.name, granted)).toThrow(/profile/)
  })
  test('is refused where it is not granted', () => {
    expect(() => judge(body)).toThrow(/Env|SecurityOpt|profile/)
    const hidden = { ...body, Labels: template().Labels, Env: template().Env }
    expect(() => judge(hidden)).toThrow(/SecurityOpt/)
  })
})

describe('A01 whatever would be more than a sandbox is refused', () => {
  const host = (field: string, value: unknown): [string, unknown] => [`HostConfig.${field}`, value]
  const attacks: [string, unknown][] = [
    host('Binds', ['/:/host']),
    host('Binds', ['/var/run/docker.sock:/s']),
    host('Mounts', [{ Type: 'bind', Source: '/', Target: '/workspace', ReadOnly: false }]),
    host('Mounts', [{ Type: 'volume', Source: 'sbx-dep-bbbbbbbb', Target: '/workspace', ReadOnly: false }]),
    host('Mounts', [{ Type: 'volume', Source: 'sbx-other-abcdefgh', Target: '/workspace', ReadOnly: false }]),
    host('Mounts', [{ Type: 'volume', Source: '/etc', Target: '/workspace', ReadOnly: false }]),
    host('Mounts', [{ Type: 'volume', Source: spec.volume, Target: '/', ReadOnly: false }]),
    host('Mounts', [...template().HostConfig.Mounts, { Type: 'bind', Source: '/', Target: '/h' }]),
    host('Mounts.0.VolumeOptions', {
      DriverConfig: { Name: 'local', Options: { type: 'none', o: 'bind', device: '/' } },
    }),
    host('Privileged', true),
    host('CapAdd', ['SYS_ADMIN']),
    host('CapDrop', []),
    host('Capabilities', ['ALL']),
    host('Devices', [{ PathOnHost: '/dev/sda', PathInContainer: '/dev/sda', CgroupPermissions: 'rwm' }]),
    host('DeviceRequests', [{ Count: -1, Capabilities: [['gpu']] }]),
    host('DeviceCgroupRules', ['a *:* rwm']),
    host('PidMode', 'host'),
    host('PidMode', 'container:x'),
    host('IpcMode', 'host'),
    host('UTSMode', 'host'),
    host('UsernsMode', 'host'),
    host('CgroupnsMode', 'host'),
    host('NetworkMode', 'host'),
    host('NetworkMode', 'bridge'),
    host('NetworkMode', 'container:x'),
    host('SecurityOpt', ['no-new-privileges:true', 'seccomp=unconfined']),
    host('SecurityOpt', ['seccomp={"defaultAction":"SCMP_ACT_ALLOW"}', 'no-new-privileges:true']),
    host('SecurityOpt', [...template().HostConfig.SecurityOpt, 'apparmor=unconfined']),
    host('SecurityOpt', []),
    host('Runtime', 'anything'),
    host('VolumesFrom', ['other']),
    host('CgroupParent', '/'),
    host('Cgroup', 'container:x'),
    host('Sysctls', { 'kernel.core_pattern': '|/x' }),
    host('Tmpfs', { ...template().HostConfig.Tmpfs, '/usr/bin': 'rw,exec' }),
    host('Tmpfs./tmp', 'rw,exec,suid,dev,size=268435456,nr_inodes=65536,mode=1777'),
    host('ReadonlyRootfs', false),
    host('MaskedPaths', []),
    host('MaskedPaths', null),
    host('ReadonlyPaths', []),
    host('OomKillDisable', true),
    host('OomScoreAdj', -1000),
    host('LogConfig', { Type: 'syslog', Config: { 'syslog-address': 'tcp://evil.test' } }),
    host('RestartPolicy', { Name: 'always', MaximumRetryCount: 0 }),
    host('AutoRemove', true),
    host('Init', true),
    host('GroupAdd', ['0']),
    host('ExtraHosts', ['a:1.2.3.4']),
    host('Links', ['x:y']),
    host('StorageOpt', { size: '1T' }),
    host('PublishAllPorts', true),
    host('PortBindings', { '80/tcp': [{ HostPort: '80' }] }),
    host('Ulimits', [{ Name: 'core', Soft: -1, Hard: -1 }]),
    host('PidsLimit', -1),
    host('PidsLimit', 513),
    host('Memory', 0),
    host('Memory', 2 ** 40),
    host('MemorySwap', -1),
    host('NanoCpus', 0),
    host('NanoCpus', 1e12),
    host('CpuShares', 1024),
    host('ContainerIDFile', '/etc/passwd'),
    host('VolumeDriver', 'x'),
    host('ShmSize', 2 ** 40),
    ['User', '0'],
    ['User', '0:0'],
    ['User', 'root'],
    ['User', '31234:0'],
    ['User', '031234:031234'],
    ['User', '1000:1000'],
    ['Image', 'debian'],
    ['Image', 'sha256:other'],
    ['Entrypoint', ['/bin/sh']],
    ['Cmd', ['-c', 'id']],
    ['Env', ['LD_PRELOAD=/workspace/x.so']],
    ['WorkingDir', '/'],
    ['Volumes', { '/x': {} }],
    ['ExposedPorts', { '80/tcp': {} }],
    ['Healthcheck', { Test: ['CMD-SHELL', 'id'] }],
    ['OnBuild', ['RUN id']],
    ['Shell', ['/bin/sh']],
    ['MacAddress', '02:42:ac:11:00:02'],
    ['NetworkDisabled', false],
    ['NetworkingConfig', { EndpointsConfig: { bridge: {} } }],
    ['Platform', 'linux/386'],
    ['Tty', true],
    ['Labels.com.docker.compose.project', 'x'],
    ['HostConfig', undefined],
    ['Labels', undefined],
    ['__proto__x', {}],
  ]
  test.each(attacks)('%s = %j', (path, value) => {
    const body = path.startsWith('Labels.')
      ? withLabel(path.slice('Labels.'.length), String(value))
      : changed(path, value)
    expect(() => judge(body)).toThrow(Refusal)
    expect(() => judge(body)).toThrow(expect.objectContaining({ status: 403 }))
  })

  const withLabel = (name: string, value: string): unknown => {
    const body = template()
    return { ...body, Labels: { ...body.Labels, [name]: value } }
  }

  test('every field of the template is looked at: none may be left out or be something else', () => {
    const paths = (value: unknown, path = ''): string[] =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.entries(value).flatMap(([key, inner]) =>
            key.includes('.') ? [] : [`${path}${key}`, ...paths(inner, `${path}${key}.`)],
          )
        : []
    const all = paths(template())
    expect(all.length).toBeGreaterThan(50)
    for (const path of all) {
      expect(() => judge(changed(path, undefined)), path).toThrow(Refusal)
      expect(() => judge(changed(path, { odd: true })), path).toThrow(Refusal)
    }
  })
})

describe('one text has one reading', () => {
  const text = JSON.stringify(template())
  const cut = text.slice(0, -1)
  test.each([
    ['a key twice', `${cut},"Image":"evil"}`],
    ['a whole object twice', `${cut},"HostConfig":{"Privileged":true}}`],
    ['another case', `${cut},"hostconfig":{"Privileged":true}}`],
    ['another case, deep', text.replace('"Privileged":false', '"Privileged":false,"privileged":true')],
    ['a key twice, deep', text.replace('"Privileged":false', '"Privileged":true,"Privileged":false')],
    ['a spelt-out letter', text.replace('"Privileged"', String.raw`"Privil\u0065ged"`)],
    ['the Kelvin sign for a K', text.replace('"Tmpfs"', '"Tmpfs":{},"Mas\u212AedPaths"')],
    ['__proto__', `${cut},"__proto__":{"HostConfig":{"Privileged":true}}}`],
    [
      '__proto__ inside',
      text.replace('"Privileged":false', '"__proto__":{"Privileged":true},"Privileged":false'),
    ],
    ['something behind it', `${text}{}`],
    ['white space', JSON.stringify(template(), undefined, 1)],
    ['another number', text.replace('"PidsLimit":512', '"PidsLimit":5.12e2')],
    ['a byte order mark', `\uFEFF${text}`],
    ['nested beyond any stack', `${'['.repeat(20_000)}1${']'.repeat(20_000)}`],
    [
      'nested beyond any stack, in a place of its own',
      `${cut},"Odd":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_001)}`,
    ],
    ['nothing', ''],
    ['null', 'null'],
    ['a list', `[${text}]`],
    ['a string', '"x"'],
  ])('%s', (_, body) => {
    expect(() => judge(body)).toThrow(expect.objectContaining({ status: 403 }))
  })
})

describe('A06 the client never decides the owner', () => {
  test('another deployment’s label is overwritten', () => {
    const body = template()
    const spoofed = {
      ...body,
      Labels: { ...body.Labels, 'sandlot.deployment': 'other', 'sandlot.role': 'gate' },
    }
    expect(judge(spoofed).body).toEqual(body)
  })
  test.each([undefined, '', 'x', 'sbx-other-abcdefgh', 'sbx-dep-bbbbbbbb', 'sbx-dep-abcdefgh-1', '../x'])(
    'the name %s is refused',
    (name) => {
      expect(() => checkCreate(name, JSON.stringify(template()), policy)).toThrow(Refusal)
    },
  )
  test('a slot other than the one of the name', () => {
    const text = JSON.stringify(template()).replace('"sandlot.slot":"abcdefgh"', '"sandlot.slot":"bbbbbbbb"')
    expect(() => judge(text)).toThrow(expect.objectContaining({ status: 403 }))
    // And a name to go with it: then the volume is another slot's.
    expect(() => judge(text, 'sbx-dep-bbbbbbbb')).toThrow(expect.objectContaining({ status: 403 }))
  })
  test('the operator’s runtime and profile are pinned', () => {
    const rules = { ...policy, runtime: 'runsc' }
    expect(() => judge(template(), spec.name, rules)).toThrow(/Runtime/)
    expect(judge(template({ runtime: 'runsc' }), spec.name, rules).body.HostConfig).toHaveProperty(
      'Runtime',
      'runsc',
    )
    expect(() => judge(template(), spec.name, { ...policy, seccompProfile: '{}' })).toThrow(/SecurityOpt/)
  })
})

/** A JSON value that nobody thought of. */
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>('host', 'unconfined', true, -1, ['/:/x'], { Type: 'bind', Source: '/' }),
)

test('no mutation of a valid create changes what reaches the engine', () => {
  const pointers = (value: unknown, at: string[] = []): string[][] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => [[...at, key], ...pointers(inner, [...at, key])])
      : []
  const all = pointers(template())
  const mutation = fc.record({
    at: fc.constantFrom(...all),
    kind: fc.constantFrom('replace', 'remove', 'add', 'case', 'twice'),
    name: fc.oneof(
      fc.string(),
      fc.constantFrom('Binds', 'binds', 'Privileged', 'PRIVILEGED', 'CapAdd', '__proto__'),
    ),
    value: anything,
  })
  fc.assert(
    fc.property(fc.array(mutation, { minLength: 1, maxLength: 3 }), (mutations) => {
      let text = JSON.stringify(template())
      for (const each of mutations) text = mutate(text, each)
      let passed: unknown
      try {
        passed = judge(text).body
      } catch (error) {
        expect(error).toBeInstanceOf(Refusal)
        return
      }
      // Limits below the ceiling, the uid and the like may differ: filled in again, the body is the
      // template.
      const { slot, uid } = judge(text)
      const given = JSON.parse(text) as {
        HostConfig: Record<string, unknown>
        Labels: Record<string, string>
      }
      expect(slot).toBe(spec.slot)
      expect(uid).toBeGreaterThanOrEqual(30_000)
      expect(passed).toEqual({
        ...given,
        Labels: { ...given.Labels, 'sandlot.deployment': 'dep', 'sandlot.role': 'sandbox' },
      })
      expect(given.HostConfig).toMatchObject({ ...FIXED })
    }),
    { numRuns: extent(300, 20_000), seed: campaign.seed },
  )
})

/** Fields that no request may move, written out a second time. */
const FIXED = {
  Privileged: false,
  CapAdd: [],
  CapDrop: ['ALL'],
  ReadonlyRootfs: true,
  Devices: [],
  NetworkMode: 'none',
  IpcMode: 'private',
  PidMode: '',
  UsernsMode: '',
  Binds: [],
  VolumesFrom: [],
  Sysctls: template().HostConfig.Sysctls,
  SecurityOpt: ['no-new-privileges:true', `seccomp=${policy.seccompProfile}`],
  Mounts: [{ Type: 'volume', Source: spec.volume, Target: '/workspace', ReadOnly: false }],
}

interface Mutation {
  at: string[]
  kind: string
  name: string
  value: unknown
}

function mutate(text: string, { at, kind, name, value }: Mutation): string {
  let root: unknown
  try {
    root = JSON.parse(text)
  } catch {
    return text
  }
  let node = root as Record<string, unknown>
  for (const key of at.slice(0, -1)) {
    const next = node[key]
    if (typeof next !== 'object' || next === null) return text
    node = next as Record<string, unknown>
  }
  const key = at.at(-1) ?? ''
  const written = JSON.stringify(value)
  if (kind === 'remove') delete node[key]
  else if (kind === 'replace') node[key] = value
  // A list gets another member: its own fields, such as "length", are not JSON.
  else if (kind === 'add' && Array.isArray(node)) node.push(value)
  else if (kind === 'add')
    Object.defineProperty(node, name, { value, enumerable: true, configurable: true, writable: true })
  else if (kind === 'case') node[key.toUpperCase() === key ? key.toLowerCase() : key.toUpperCase()] = value
  else return text.replace(`"${key}":`, `"${key}":${written},"${key}":`)
  return JSON.stringify(root)
}

describe('a volume is a plain one of ours', () => {
  const labels = {
    'sandlot.deployment': 'dep',
    'sandlot.role': 'sandbox',
    'sandlot.slot': 'abcdefgh',
    'sandlot.uid': '31234',
    'sandlot.volume': 'sbx-dep-abcdefgh',
    'sandlot.schema': '1',
  }
  const body = { Name: 'sbx-dep-abcdefgh', Driver: 'local', Labels: labels }
  const check = (value: unknown) => checkVolume(JSON.stringify(value), 'dep')

  test('as the backend asks for it, whichever label it carries', () => {
    expect(check(body)).toEqual(body)
    expect(check({ ...body, Labels: { ...labels, 'sandlot.deployment': 'other' } })).toEqual(body)
  })
  test.each([
    { ...body, DriverOpts: { type: 'none', o: 'bind', device: '/' } },
    { ...body, DriverOpts: {} },
    { ...body, driveropts: { device: '/' } },
    { ...body, Driver: 'nfs' },
    { ...body, Name: 'database' },
    { ...body, Name: 'sbx-other-abcdefgh' },
    { ...body, Name: 'sbx-dep-abcdefgh-0123456789abcdef-1' },
    { ...body, Labels: { ...labels, 'sandlot.uid': '0' } },
    { ...body, Labels: { ...labels, 'sandlot.slot': 'bbbbbbbb' } },
    { ...body, Labels: { ...labels, more: 'x' } },
    { ...body, ClusterVolumeSpec: {} },
    {},
    null,
    [],
  ])('not %j', (value) => {
    expect(() => check(value)).toThrow(expect.objectContaining({ status: 403 }))
  })
})
