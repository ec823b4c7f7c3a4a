/** The engine gate's counterpart: what the API server lets into the sandboxes' namespace, and from whom. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { SandboxSpec } from '../../../src/backend.ts'
import { checkAdmitted } from '../../../src/backends/kubernetes/admitted.ts'
import { claimTemplate } from '../../../src/backends/kubernetes/claim-template.ts'
import type { PersistentVolumeClaim, Pod } from '../../../src/backends/kubernetes/objects.ts'
import { copyTemplate, podTemplate } from '../../../src/backends/kubernetes/pod-template.ts'
import { DEFAULT_LIMITS } from '../../../src/limits.ts'
import { sample } from '../../../../../test/campaign.ts'
import { noCluster } from '../../../../../test/cluster/cluster.ts'
import { ATTACKS, image, PLACES, REFUSED_BEFORE, VALID } from './policy-cases.ts'
import { type Answer, changed, installPolicies, readFields } from './policy-fixture.ts'

const TAG = '0123456789abcdef'
let policies: Awaited<ReturnType<typeof installPolicies>>
let fieldsOf: Awaited<ReturnType<typeof readFields>>

const specOf = (change: Partial<SandboxSpec> = {}): SandboxSpec => ({
  name: `sbx-dep-abcdefgh-${TAG}-1`,
  slot: 'abcdefgh',
  uid: 31_234,
  volume: 'sbx-dep-abcdefgh',
  image,
  limits: DEFAULT_LIMITS,
  labels: {},
  ...change,
})
const settings = () => ({
  namespace: policies.namespace,
  memoryRequest: 0.25,
  userNamespaces: false,
  networkDown: true,
})
const podOf = (change: Partial<SandboxSpec> = {}): Pod =>
  podTemplate({ deployment: 'dep', spec: specOf(change), settings: settings() })
const claimOf = (change: Partial<SandboxSpec> = {}): PersistentVolumeClaim =>
  claimTemplate({ deployment: 'dep', spec: specOf(change), settings: settings(), storageClass: undefined })
const pool: Partial<SandboxSpec> = { slot: 'poolpool', name: 'sbx-dep-poolpool', volume: 'sbx-dep-poolpool' }

const at = (plural: string): string => `/api/v1/namespaces/${policies.namespace}/${plural}`
const create = (plural: string, object: unknown, query = '?dryRun=All') =>
  policies.agent('POST', at(plural) + query, object)
const patch = (path: string, operations: unknown, ask = policies.agent, query = '?dryRun=All') =>
  ask('PATCH', at(path) + query, operations, 'application/json-patch+json')

/** A refusal of a policy, with its sentence. */
function expectRefused({ status, body }: Answer, what?: string): void {
  const message: unknown = expect.stringMatching(/ValidatingAdmissionPolicy.* denied request: sandlot: /)
  expect({ status, message: body.message }, what).toEqual({ status: 422, message })
}
function expectAccepted({ status, body }: Answer): void {
  expect({ status, message: body.message }).toEqual({
    status: status === 200 ? 200 : 201,
    message: undefined,
  })
}

describe.skipIf(noCluster !== undefined)(`the policies of the chart (${noCluster ?? 'a cluster'})`, () => {
  beforeAll(async () => {
    policies = await installPolicies('policy', { images: [image] })
    fieldsOf = await readFields(policies.admin)
  })
  afterAll(async () => {
    await policies?.remove()
  })

  describe('what the backend makes passes', () => {
    test.each<Partial<SandboxSpec>>([
      {},
      { name: 'sbx-dep-abcdefgh' },
      { uid: 59_999, labels: { 'sandlot.contract': 'a1' } },
      {
        limits: { ...DEFAULT_LIMITS, cpus: 0.3, memoryBytes: 2 ** 30, tmpBytes: 2 ** 24, diskBytes: 2 ** 20 },
      },
    ])('%j', async (change) => {
      expectAccepted(await create('pods', podOf(change)))
      expectAccepted(await create('persistentvolumeclaims', claimOf(change)))
    })
    test('as the version before makes it, and with the pull policy of AlwaysPullImages', async () => {
      const { namespace } = policies
      const steps = {
        deployment: 'dep',
        spec: specOf(pool),
        settings: settings(),
        name: 'x',
        act: 'write',
      } as const
      const before = changed(podOf(pool), 'spec.initContainers', copyTemplate(steps).spec.initContainers)
      expectAccepted(await create('pods', changed(before, 'spec.priorityClassName', `${namespace}-warm`)))
      const places = ['containers.0', 'initContainers.0']
      const pulled = places.reduce(
        (pod, place) => changed(pod, `spec.${place}.imagePullPolicy`, 'Always'),
        podOf(),
      )
      expectAccepted(await create('pods', pulled))
      expect(checkAdmitted(podOf(), pulled)).toBeUndefined()
    })
    test('no expression of them contradicts the types of the cluster', async () => {
      const { body } = await policies.admin(
        'GET',
        '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
      )
      const all = body['items'] as { metadata: { name: string }; status?: { typeChecking?: unknown } }[]
      const ours = all.filter(({ metadata }) => metadata.name.startsWith(policies.namespace))
      expect(ours).toHaveLength(7)
      expect(ours.map(({ status }) => status?.typeChecking ?? {})).toEqual(ours.map(() => ({})))
    })
  })

  describe('whatever the cluster’s own types have more is refused', () => {
    test.each(sample('places of a Pod', PLACES, 5))('%s at %s', async (type, path) => {
      const stored = await create('pods', podOf())
      expectAccepted(stored)
      const pod = type === 'Volume' ? changed(podOf(), `${path}.name`, 'x') : podOf()
      const byOthers: string[] = []
      for (const [field, value] of fieldsOf(type)) {
        const valid =
          VALID[`${type}.${field}`] ??
          VALID[field] ??
          (field === 'runtimeClassName' ? policies.namespace : value)
        const given = typeof valid === 'boolean' ? memberAt(pod, `${path}.${field}`) !== true : valid
        const answer = await create('pods', changed(pod, `${path}.${field}`, given))
        if (answer.body.message?.includes('denied request: sandlot: ') === true) continue
        if (answer.status >= 400 && answer.status < 500) byOthers.push(`${type}.${field}`)
        // The API server drops it, or computes it itself: what is stored is the template.
        else expect(withoutTimes(answer), field).toEqual(withoutTimes(stored))
      }
      expect(byOthers.filter((name) => !REFUSED_BEFORE.has(name))).toEqual([])
    })
    test('nor may any member of the template be left out', async () => {
      const paths = (value: unknown, path: string): string[] =>
        typeof value !== 'object' || value === null
          ? []
          : Object.entries(value).flatMap(([key, inner]) => {
              const at = `${path}.${key.replaceAll('.', '~')}`
              return [at, ...paths(inner, at)]
            })
      const pod = podOf()
      const stored = withoutTimes(await create('pods', pod))
      const all = [...paths(pod.metadata, 'metadata'), ...paths(pod.spec, 'spec')]
      const optional = all.filter((path) =>
        /annotations|schedulingGates|tolerations|requests.memory/.test(path),
      )
      expect(all.length).toBeGreaterThan(120)
      const needed = all.filter((each) => !optional.includes(each))
      for (const path of sample('members of a Pod', needed, 40)) {
        const answer = await create('pods', changed(pod, path, undefined))
        if (answer.status >= 400 && answer.status < 500) continue
        expect(withoutTimes(answer), path).toEqual(stored)
      }
    })
  })

  describe('whatever would be more than a sandbox is refused, as by the engine gate', () => {
    test.each(ATTACKS)('%s = %j', async (path, value) => {
      expectRefused(await create('pods', changed(podOf(), path, value)))
    })
    test('two changes, which alone the API server refuses itself', async () => {
      const escalation = changed(podOf(), 'spec.containers.0.securityContext.allowPrivilegeEscalation', true)
      expectRefused(
        await create('pods', changed(escalation, 'spec.containers.0.securityContext.privileged', true)),
      )
      const valueless = changed(podOf(), 'spec.containers.0.env.0.value', undefined)
      const valueFrom = { fieldRef: { fieldPath: 'metadata.name' } }
      expectRefused(await create('pods', changed(valueless, 'spec.containers.0.env.0.valueFrom', valueFrom)))
      const open = changed(podOf(), 'spec.schedulingGates', undefined)
      expectRefused(await create('pods', changed(open, 'spec.nodeName', 'node1')))
      const subPathless = changed(podOf(), 'spec.containers.0.volumeMounts.0.subPath', undefined)
      expectRefused(
        await create('pods', changed(subPathless, 'spec.containers.0.volumeMounts.0.subPathExpr', 'x')),
      )
    })
    test('by an administrator too', async () => {
      const answer = await policies.admin(
        'POST',
        `${at('pods')}?dryRun=All`,
        changed(podOf(), 'spec.hostPID', true),
      )
      expectRefused(answer)
    })
  })

  describe('a home', () => {
    test.each<[string, unknown]>([
      ['metadata.name', 'sbx-dep-bbbbbbbb'],
      ['metadata.labels.sandlot~dev/uid', '0'],
      ['metadata.labels.app', 'x'],
      ['metadata.annotations.volume~kubernetes~io/selected-node', 'node1'],
      ['metadata.annotations.sandlot~dev/template', 'x'.repeat(5_000)],
      ['metadata.finalizers', ['example.org/x']],
      ['metadata.ownerReferences', [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'x' }]],
      ['spec.accessModes', ['ReadWriteMany']],
      ['spec.volumeMode', 'Block'],
      ['spec.volumeName', 'pv-of-somebody'],
      ['spec.storageClassName', ''],
      ['spec.selector', { matchLabels: { a: 'b' } }],
      ['spec.dataSource', { kind: 'PersistentVolumeClaim', name: 'sbx-dep-bbbbbbbb' }],
      ['spec.dataSourceRef', { kind: 'PersistentVolumeClaim', name: 'sbx-dep-bbbbbbbb' }],
      ['spec.volumeAttributesClassName', 'x'],
      ['spec.resources.limits', { storage: '4Gi' }],
      ['spec.resources.requests.storage', '5Gi'],
    ])('is not made with %s = %j', async (path, value) => {
      expectRefused(await create('persistentvolumeclaims', changed(claimOf(), path, value)))
    })
  })

  describe('what is made changes only as a claim changes it', () => {
    beforeAll(async () => {
      for (const change of [pool, {}]) {
        expectAccepted(await create('persistentvolumeclaims', claimOf(change), ''))
        expectAccepted(await create('pods', podOf(change), ''))
      }
    })
    const label = (name: string, value: string) => ({
      op: 'add',
      path: `/metadata/labels/sandlot.dev~1${name}`,
      value,
    })
    const OWN = [label('owner', TAG), label('generation', '7')]
    const POOL = 'sbx-dep-poolpool'
    const OWNED = 'sbx-dep-abcdefgh'

    test.each<[string, string, unknown[]]>([
      ['a Pod is claimed', `pods/${POOL}-0`, OWN],
      ['its home is claimed', `persistentvolumeclaims/${POOL}`, OWN],
      ['a Pod is opened', `pods/${POOL}-0`, [{ op: 'remove', path: '/spec/schedulingGates' }]],
      [
        'a home has another sandbox',
        `persistentvolumeclaims/${OWNED}`,
        [label('generation', '8'), label('spec', 'ab'.repeat(16))],
      ],
      [
        'a home has none',
        `persistentvolumeclaims/${OWNED}`,
        [{ op: 'remove', path: '/metadata/annotations/sandlot.dev~1sandbox' }],
      ],
    ])('%s', async (_, path, operations) => {
      expectAccepted(await patch(path, operations))
    })

    const note = (key: string) => ({
      op: 'add',
      path: `/metadata/annotations/${key.replace('/', '~1')}`,
      value: 'x',
    })
    const both: [string, unknown[]][] = [
      ['another owner', [label('owner', 'f'.repeat(16))]],
      ['no owner', [{ op: 'remove', path: '/metadata/labels/sandlot.dev~1owner' }, label('generation', '0')]],
      ...['slot', 'uid', 'deployment', 'role', 'schema', 'more'].map((name): [string, unknown[]] => [
        `the label ${name}`,
        [label(name, '31235')],
      ]),
      ['a label of another program', [{ op: 'add', path: '/metadata/labels/app', value: 'x' }]],
      ['no slot', [{ op: 'remove', path: '/metadata/labels/sandlot.dev~1slot' }]],
      ['a strange fingerprint', [label('spec', 'x')]],
      ['the debug profile, which is not granted', [label('profile', 'debug')]],
      ['an annotation of another program', [note('volume.kubernetes.io/selected-node')]],
      ['a finalizer', [{ op: 'add', path: '/metadata/finalizers', value: ['example.org/x'] }]],
      [
        'an owner reference',
        [
          {
            op: 'add',
            path: '/metadata/ownerReferences',
            value: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'x' }],
          },
        ],
      ],
    ]
    test.each(both)('neither a Pod nor a home gets %s', async (_, operations) => {
      expectRefused(await patch(`pods/${OWNED}-1`, operations))
      expectRefused(await patch(`persistentvolumeclaims/${OWNED}`, operations))
    })
    test.each<[string, string, unknown[]]>([
      ['no tag for an owner', `pods/${POOL}-0`, [label('owner', 'ada'), label('generation', '1')]],
      ['no generation with an owner', `pods/${POOL}-0`, [label('owner', TAG)]],
      ['another generation', `pods/${OWNED}-1`, [label('generation', '2')]],
      ['another fingerprint', `pods/${OWNED}-1`, [label('spec', 'ab'.repeat(16))]],
      ['another image', `pods/${OWNED}-1`, [{ op: 'replace', path: '/spec/containers/0/image', value: 'x' }]],
      ['a deadline', `pods/${OWNED}-1`, [{ op: 'add', path: '/spec/activeDeadlineSeconds', value: 1 }]],
      [
        'a toleration',
        `pods/${OWNED}-1`,
        [{ op: 'add', path: '/spec/tolerations/-', value: { operator: 'Exists' } }],
      ],
      ['a node', `pods/${OWNED}-1`, [{ op: 'add', path: '/spec/nodeSelector', value: { a: 'b' } }]],
      ['an annotation', `pods/${OWNED}-1`, [note('sandlot.dev/sandbox')]],
    ])('a Pod gets %s', async (_, path, operations) => {
      expectRefused(await patch(path, operations))
    })
    test('no container is added to a Pod, nor its resources changed, by an administrator either', async () => {
      const more = { spec: { ephemeralContainers: [{ name: 'x', image }] } }
      const resized = { spec: { containers: [{ name: 'sbxd', resources: { limits: { cpu: '1' } } }] } }
      const merge = 'application/strategic-merge-patch+json'
      for (const [part, body] of [
        ['ephemeralcontainers', more],
        ['resize', resized],
      ] as const) {
        const path = `${at('pods')}/${OWNED}-1/${part}`
        expectRefused(await policies.admin('PATCH', path, body, merge), part)
        expect((await policies.agent('PATCH', path, body, merge)).status, part).toBe(403)
      }
    })
    test('an agent removes only a home that nobody ever had; an administrator any', async () => {
      const remove = (name: string, ask = policies.agent) =>
        ask('DELETE', `${at('persistentvolumeclaims')}/${name}?dryRun=All`)
      expectRefused(await remove(OWNED))
      expectAccepted(await remove(POOL))
      expectAccepted(await remove(OWNED, policies.admin))
      expect((await policies.agent('DELETE', at('persistentvolumeclaims'))).status).toBe(403)
    })

    const RELAY =
      'container=sbxd&stdin=true&stdout=true&stderr=true&command=/usr/lib/sandlot/sbxd&command=relay'
    const connect = (query: string, part = 'exec', ask = policies.agent, method = 'POST') =>
      ask(method, `${at('pods')}/${OWNED}-1/${part}?${query}`)
    test('one command leads into a sandbox', async () => {
      // Not refused: this Pod runs nowhere.
      for (const method of ['POST', 'GET'])
        expect((await connect(RELAY, 'exec', policies.agent, method)).body.message).toMatch(
          /does not have a host assigned/,
        )
    })
    test.each([
      'container=sbxd&command=/bin/sh',
      `${RELAY}&command=x`,
      RELAY.replace('/usr/lib/sandlot/sbxd', 'sbxd'),
      RELAY.replace('/usr/lib/sandlot/sbxd', '/usr/bin/sbxd'),
      RELAY.replace('&command=relay', ''),
      `${RELAY}&tty=true`,
      RELAY.replace('container=sbxd', 'container=home'),
      RELAY.replace('container=sbxd&', ''),
      '',
    ])('and not %s', async (query) => {
      expectRefused(await connect(query))
      expectRefused(await connect(query, 'exec', policies.agent, 'GET'))
    })
    test.each([
      ['exec', RELAY],
      ['attach', 'container=sbxd&stdin=true&stdout=true'],
      ['portforward', 'ports=80'],
      ['proxy', ''],
    ])('an administrator has no %s either', async (part, query) => {
      expectRefused(await connect(query, part, policies.admin))
      if (part !== 'exec') expect((await connect(query, part)).status).toBe(403)
    })
  })

  test('an agent may do nothing else in the namespace', async () => {
    const { agent } = policies
    for (const [method, path] of [
      ['GET', `${at('pods')}/sbx-dep-abcdefgh-1/log`],
      ['GET', at('secrets')],
      ['POST', at('secrets')],
      ['POST', at('services')],
      ['POST', `${at('serviceaccounts')}/default/token`],
      ['POST', `${at('pods')}/sbx-dep-abcdefgh-1/binding`],
      ['PUT', `${at('pods')}/sbx-dep-abcdefgh-1`],
      ['PATCH', `${at('pods')}/sbx-dep-abcdefgh-1/status`],
      ['DELETE', at('pods')],
      ['PATCH', `/api/v1/namespaces/${policies.namespace}`],
      ['GET', '/api/v1/pods'],
      [
        'DELETE',
        `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/${policies.namespace}-pods`,
      ],
    ] as const)
      expect((await agent(method, path, method === 'GET' ? undefined : {})).status, `${method} ${path}`).toBe(
        403,
      )
    expect((await agent('GET', '/api/v1/nodes')).status).toBe(200)
  })
})

describe.skipIf(noCluster !== undefined)(`other values of the chart (${noCluster ?? 'a cluster'})`, () => {
  test('without the container that takes the network down the namespace is restricted, and the rest as set', async () => {
    const runtimeClass = `sandlot-test-other-${process.pid}`
    const values = {
      runtimeClass,
      pullSecret: 'pull',
      storageClass: 'fast',
      userNamespaces: true,
      debug: true,
    }
    const other = await installPolicies('other', { images: [image], networkDown: false, ...values })
    try {
      const { namespace, agent, admin } = other
      const input = {
        deployment: 'dep',
        spec: specOf({ runtime: runtimeClass, profile: 'debug' }),
        settings: {
          namespace,
          memoryRequest: 0.25,
          userNamespaces: true,
          networkDown: false,
          pullSecret: 'pull',
        },
      }
      const pod: Pod = podTemplate(input)
      const claim: PersistentVolumeClaim = claimTemplate({ ...input, storageClass: 'fast' })
      const ask = (plural: string, object: unknown) =>
        agent('POST', `/api/v1/namespaces/${namespace}/${plural}?dryRun=All`, object)
      expectAccepted(await ask('pods', pod))
      expectAccepted(await ask('persistentvolumeclaims', claim))
      for (const path of ['runtimeClassName', 'imagePullSecrets', 'hostUsers'])
        expectRefused(await ask('pods', changed(pod, `spec.${path}`, undefined)), path)
      expectRefused(await ask('persistentvolumeclaims', changed(claim, 'spec.storageClassName', 'slow')))
      expectRefused(await ask('pods', changed(pod, 'metadata.labels.sandlot~dev/profile', undefined)))
      const { body } = await admin('GET', `/api/v1/namespaces/${namespace}`)
      expect(body['metadata']).toHaveProperty(['labels', 'pod-security.kubernetes.io/enforce'], 'restricted')
    } finally {
      await other.remove()
    }
  })
})

function memberAt(object: unknown, path: string): unknown {
  let at = object
  for (const name of path.split('.')) at = (at as Record<string, unknown> | undefined)?.[name]
  return at
}

/** Members of a stored object that are the same for two of the same template. */
function withoutTimes({ body }: Answer): unknown {
  const { spec, metadata } = body as unknown as Pod & { metadata: Record<string, unknown> }
  const { labels, annotations, finalizers, ownerReferences } = metadata as Record<string, unknown>
  return { spec, labels, annotations, finalizers, ownerReferences }
}
