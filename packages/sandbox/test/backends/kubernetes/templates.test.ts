import { describe, expect, test } from 'vitest'

import type { SandboxSpec } from '../../../src/backend.ts'
import { claimTemplate, readSpec } from '../../../src/backends/kubernetes/claim-template.ts'
import {
  KEY,
  objectLabels,
  ownerLabels,
  podName,
  readLabels,
  sandboxName,
  selectorOf,
} from '../../../src/backends/kubernetes/labels.ts'
import { fingerprint, podTemplate, type PodSettings } from '../../../src/backends/kubernetes/pod-template.ts'
import { DEFAULT_LIMITS } from '../../../src/limits.ts'
import { claimedName, LABEL, ownerTag, poolName, slotLabels } from '../../../src/names.ts'

const PERSON = 'ada.lovelace@example.org'
const tag = ownerTag(new Uint8Array(32), PERSON)
const image = `registry.example/sandlot/sandbox@sha256:${'ab'.repeat(32)}`
const settings: PodSettings = {
  namespace: 'sandlot-sandboxes',
  memoryRequest: 0.25,
  userNamespaces: false,
  networkDown: true,
}

const specOf = (change: Partial<SandboxSpec> = {}, deployment = 'dep'): SandboxSpec => ({
  name: claimedName(deployment, 'abcdefgh', tag, 3),
  slot: 'abcdefgh',
  uid: 31_234,
  volume: poolName(deployment, 'abcdefgh'),
  image,
  limits: DEFAULT_LIMITS,
  labels: {},
  ...change,
})
const podOf = (change: Partial<SandboxSpec> = {}, more: Partial<PodSettings> = {}) =>
  podTemplate({ deployment: 'dep', spec: specOf(change), settings: { ...settings, ...more } })
const claimOf = (change: Partial<SandboxSpec> = {}, storageClass?: string) =>
  claimTemplate({ deployment: 'dep', spec: specOf(change), settings, storageClass })
const printOf = (change: Partial<SandboxSpec> = {}, more: Partial<PodSettings> = {}) =>
  fingerprint({ deployment: 'dep', spec: specOf(change), settings: { ...settings, ...more } })
const pool = { name: 'sbx-dep-abcdefgh' }

describe('the Pod, control by control', () => {
  test('its uid is the slot’s, in a Pod that gains no rights', () => {
    const { securityContext } = podOf().spec
    expect(securityContext).toMatchObject({ runAsUser: 31_234, runAsGroup: 31_234, fsGroup: 31_234 })
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  })
  test('every container has a read-only root, no privilege, no capability but those that prepare the Pod', () => {
    const { containers, initContainers } = podOf().spec
    for (const { name, securityContext, resources, image: its } of [...containers, ...initContainers]) {
      expect(its).toBe(image)
      expect(securityContext).toMatchObject({
        privileged: false,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
      })
      const add = name === 'prepare' ? { add: ['NET_ADMIN', 'SETUID', 'SETGID'] } : {}
      expect(securityContext.capabilities).toEqual({ drop: ['ALL'], ...add })
      expect(resources).toEqual({
        requests: { cpu: '20m', memory: String(2 ** 29) },
        limits: { cpu: '2000m', memory: String(2 ** 31) },
      })
    }
  })
  test('no token, no addresses of services, no name server, no restart', () => {
    expect(podOf().spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['127.0.0.1'] },
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 2,
    })
  })
  test('nothing of the node: no path, no namespace, no port, no service account', () => {
    const { spec } = podOf()
    expect(spec.volumes.flatMap((volume) => Object.keys(volume)).toSorted()).toEqual(
      ['emptyDir', 'emptyDir', 'name', 'name', 'name', 'persistentVolumeClaim'].toSorted(),
    )
    for (const key of ['hostNetwork', 'hostPID', 'hostIPC', 'nodeName', 'serviceAccountName'])
      expect(spec).not.toHaveProperty(key)
    expect(JSON.stringify(spec)).not.toMatch(/hostPath|hostPort|"ports"|valueFrom|envFrom|secret/)
  })
  test('scratch is bounded memory, and the home a folder of the claim', () => {
    const { volumes, containers } = podOf().spec
    expect(volumes).toEqual([
      { name: 'home', persistentVolumeClaim: { claimName: 'sbx-dep-abcdefgh' } },
      { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: String(2 ** 28) } },
      { name: 'run', emptyDir: { medium: 'Memory', sizeLimit: String(2 ** 22) } },
    ])
    expect(containers[0]?.volumeMounts[0]).toEqual({ name: 'home', mountPath: '/workspace', subPath: 'home' })
  })
  test('one init container prepares it, and becomes the slot’s uid', () => {
    expect(podOf().spec.initContainers).toMatchObject([
      { name: 'prepare', command: ['/usr/bin/sbxd'], args: ['network-down', '31234'] },
    ])
  })
  test('sbxd sets the limits that the engine of Docker would', () => {
    const { args } = podOf().spec.containers[0] ?? {}
    expect(args?.join(' ')).toBe(
      `--listen --limit-nofile 4096 --limit-fsize ${2 ** 32} --limit-memlock 65536 --limit-sigpending 1024 --limit-msgqueue 262144`,
    )
  })
  test('it waits to be opened, and those of the pool have the priority of all: a claim cannot change it', () => {
    expect(podOf().spec.schedulingGates).toEqual([{ name: 'sandlot.dev/open' }])
    expect(podOf(pool).spec).not.toHaveProperty('priorityClassName')
  })
  test('settings of the cluster', () => {
    expect(podOf().spec.hostUsers).toBeUndefined()
    const { spec } = podOf(
      { runtime: 'gvisor' },
      { userNamespaces: true, networkDown: false, pullSecret: 'pull' },
    )
    expect(spec).toMatchObject({
      hostUsers: false,
      runtimeClassName: 'gvisor',
      imagePullSecrets: [{ name: 'pull' }],
    })
    expect(spec.initContainers.map(({ name }) => name)).toEqual(['home'])
  })
  test('the debug profile is a label and an argument', () => {
    const pod = podOf({ profile: 'debug' })
    expect(pod.metadata.labels['sandlot.dev/profile']).toBe('debug')
    expect(pod.spec.containers[0]?.args.slice(-2)).toEqual(['--profile', 'debug'])
    expect(podOf().metadata.labels).not.toHaveProperty('sandlot.dev/profile')
  })
  test.each<Partial<SandboxSpec>>([
    { uid: 0 },
    { uid: 60_000 },
    { uid: 31_234.5 },
    { image: 'sandlot/sandbox:latest' },
    { image: `${image}x` },
    { volume: 'sbx-dep-bbbbbbbb' },
    { name: 'sbx-other-abcdefgh' },
    { name: 'sbx-dep-bbbbbbbb' },
    { labels: { 'app.kubernetes.io/name': 'x' } },
    { labels: { 'sandlot.contract': PERSON } },
    { labels: { 'sandlot.contract': 'x'.repeat(64) } },
    { labels: { 'sandlot.owner': 'x' } },
    { limits: { ...DEFAULT_LIMITS, memoryBytes: 0 } },
    { limits: { ...DEFAULT_LIMITS, cpus: Number.NaN } },
    { limits: { ...DEFAULT_LIMITS, tmpBytes: 2 ** 40 } },
  ])('is not made of %j', (change) => {
    expect(() => podOf(change)).toThrow(expect.objectContaining({ code: 'invalid_arguments' }))
    expect(() => claimOf(change)).toThrow(expect.objectContaining({ code: 'invalid_arguments' }))
  })
  test.each([0, -1, 1.01, Number.NaN])('is not made with a share of %d', (memoryRequest) => {
    expect(() => podOf({}, { memoryRequest })).toThrow(/share/)
  })
})

describe('the fingerprint', () => {
  test('is that of the label, and the same for every slot and owner', () => {
    expect(podOf().metadata.labels['sandlot.dev/spec']).toBe(printOf())
    expect(claimOf().metadata.labels['sandlot.dev/spec']).toBe(printOf())
    expect(printOf(pool)).toBe(printOf())
    const other = { slot: 'bbbbbbbb', name: 'sbx-dep-bbbbbbbb', volume: 'sbx-dep-bbbbbbbb', uid: 40_000 }
    expect(printOf(other)).toBe(printOf())
  })
  test('differs with whatever would make another sandbox', () => {
    const all = [
      printOf(),
      printOf({ image: image.replace('ab', 'cd') }),
      printOf({ runtime: 'kata' }),
      printOf({ profile: 'debug' }),
      ...(['memoryBytes', 'cpus', 'tmpBytes', 'diskBytes', 'openFiles'] as const).map((limit) =>
        printOf({ limits: { ...DEFAULT_LIMITS, [limit]: DEFAULT_LIMITS[limit] * 0.75 } }),
      ),
      printOf({}, { networkDown: false }),
      printOf({}, { userNamespaces: true }),
      printOf({}, { memoryRequest: 0.5 }),
    ]
    expect(new Set(all).size).toBe(all.length)
  })
})

describe('names and labels', () => {
  test('ours come back from those of the cluster, and strange ones do not', () => {
    const spec = specOf({ labels: { 'sandlot.contract': 'a1' } })
    const labels = objectLabels('dep', spec, 'f00d')
    expect(readLabels({ ...labels, 'topology.kubernetes.io/zone': 'a' })).toEqual({
      'sandlot.contract': 'a1',
      ...slotLabels('dep', spec),
      [LABEL.spec]: 'f00d',
    })
    expect(sandboxName(labels)).toBe(spec.name)
    expect(sandboxName(objectLabels('dep', specOf(pool), 'f00d'))).toBe('sbx-dep-abcdefgh')
  })
  test('a claimed sandbox has its owner’s name, and its Pod keeps the one of the pool', () => {
    const labels = { ...podOf(pool).metadata.labels, ...ownerLabels({ tag, generation: 7 }) }
    expect(sandboxName(labels)).toBe(claimedName('dep', 'abcdefgh', tag, 7))
    expect(podOf(pool).metadata.name).toBe('sbx-dep-abcdefgh-0')
    const again = podTemplate({ deployment: 'dep', spec: specOf(), settings, name: 'sbx-dep-abcdefgh-0' })
    expect(again.metadata.name).toBe('sbx-dep-abcdefgh-0')
  })
  test('the longest deployment id and generation fit', () => {
    const deployment = 'd'.repeat(40)
    const spec = specOf({ name: claimedName(deployment, 'abcdefgh', tag, 9_999_999_999) }, deployment)
    const pod = podTemplate({ deployment, spec, settings })
    expect(pod.metadata.name).toBe(podName(deployment, 'abcdefgh', 9_999_999_999))
    expect(pod.metadata.name.length).toBeGreaterThan(63)
    expect(pod.metadata.name.length).toBeLessThanOrEqual(253)
    // The kubelet would make the host's name of the Pod's, which may have 63 characters.
    expect(pod.spec.hostname).toBe('sandbox')
    expect(Object.values(pod.metadata.labels).every((value) => value.length <= 63)).toBe(true)
    expect(sandboxName(pod.metadata.labels)).toBe(spec.name)
  })
  test('a deployment id that is no label is refused in words', () => {
    const deployment = 'ends-'
    const spec = specOf({ name: poolName(deployment, 'abcdefgh') }, deployment)
    expect(() => podTemplate({ deployment, spec, settings })).toThrow(/“ends-”.*sandlot\.dev\/deployment/)
  })
  test('the selector finds what the template makes', () => {
    const labels: Record<string, string> = podOf().metadata.labels
    const wanted = selectorOf('dep')
      .split(',')
      .map((term) => term.split('='))
    expect(wanted).toHaveLength(2)
    for (const [key = '', value] of wanted) expect(labels[key]).toBe(value)
  })
  test('nothing names a person', () => {
    expect(JSON.stringify([podOf(), claimOf()])).not.toMatch(/ada\.|lovelace|example\.org/)
  })
})

describe('the claim', () => {
  test('one home of one node, of the class and size that are configured, and nobody’s to collect', () => {
    expect(claimOf({}, 'fast').spec).toEqual({
      accessModes: ['ReadWriteOnce'],
      volumeMode: 'Filesystem',
      storageClassName: 'fast',
      resources: { requests: { storage: String(2 ** 32) } },
    })
    expect(claimOf().spec.storageClassName).toBeUndefined()
    expect(claimOf().metadata).not.toHaveProperty('ownerReferences')
    expect(claimOf().metadata.labels).toEqual(podOf().metadata.labels)
  })
  test.each<Partial<SandboxSpec>>([
    {},
    pool,
    { profile: 'debug', runtime: 'gvisor' },
    { limits: { ...DEFAULT_LIMITS, cpus: 0.5 } },
  ])('remembers its sandbox: %j', (change) => {
    const { metadata } = claimOf(change)
    const again = readSpec(metadata)
    expect(again).toMatchObject({ ...specOf(change), labels: {}, hasWorkspace: true })
    expect(podTemplate({ deployment: 'dep', spec: again, settings })).toEqual(podOf(change))
    expect(metadata.annotations[KEY.sandbox]).toBe(podOf(change).metadata.name)
  })
  test.each([undefined, '', '{', 'null', '{}', '{"image":"x","limits":{},"evil":1}'])(
    'is not guessed from %s',
    (text) => {
      const { metadata } = claimOf()
      const annotations: Record<string, string> = text === undefined ? {} : { [KEY.template]: text }
      const read = () => readSpec({ ...metadata, annotations })
      expect(read).toThrow(expect.objectContaining({ code: 'engine_unavailable' }))
    },
  )
  test('of another name is not this slot’s', () => {
    expect(() => readSpec({ ...claimOf().metadata, name: 'sbx-dep-bbbbbbbb' })).toThrow(/sbx-dep-bbbbbbbb/)
  })
})
