import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { noCluster, noOwnCluster, ownCluster, testCluster } from '../../../../../test/cluster/cluster.ts'
import { createApi, type KubernetesApi } from '../../../src/backends/kubernetes/api.ts'
import {
  CLAIMS,
  type KubernetesObject,
  type PersistentVolumeClaim,
  PODS,
  type Resource,
} from '../../../src/backends/kubernetes/objects.ts'
import { gatedPod, makeNamespace, type TestNamespace } from '../../support/cluster-namespace.ts'

const why = (reason: string | undefined): string => (reason === undefined ? '' : ` (${reason})`)
const MAPS: Resource<KubernetesObject> = {
  base: '/api/v1',
  plural: 'configmaps',
  singular: 'ConfigMap',
  namespaced: true,
}

describe.skipIf(noCluster !== undefined)(`the API of a cluster${why(noCluster)}`, () => {
  let namespace: TestNamespace
  let folder = ''
  const apis: KubernetesApi[] = []
  const made = (...access: Parameters<typeof createApi>): KubernetesApi => {
    const api = createApi(...access)
    apis.push(api)
    return api
  }
  let admin: KubernetesApi
  beforeAll(async () => {
    namespace = await makeNamespace()
    folder = await mkdtemp(join(tmpdir(), 'sandlot-api-'))
    admin = made(await namespace.access())
  })
  afterAll(async () => {
    for (const api of apis) api.close()
    await rm(folder, { recursive: true })
    await namespace[Symbol.asyncDispose]()
  })

  test('makes, reads, finds and removes objects', async () => {
    const made = await admin.create(PODS, gatedPod('one', { 'sandlot.dev/slot': 'a' }))
    expect(await admin.get(PODS, 'one')).toMatchObject({ metadata: { uid: made.metadata.uid } })
    expect(await admin.get(PODS, 'two')).toBeUndefined()
    const names = async (labels: string): Promise<string[]> =>
      (await admin.list(PODS, { labels })).items.map(({ metadata }) => metadata.name)
    expect(await names('sandlot.dev/slot=a')).toEqual(['one'])
    expect(await names('sandlot.dev/slot=b')).toEqual([])
    await expect(admin.create(PODS, gatedPod('one'))).rejects.toMatchObject({ code: 'exists' })
    await expect(admin.remove(PODS, 'one', { uid: 'another' })).rejects.toMatchObject({ outrun: true })
    expect(await admin.remove(PODS, 'one', { uid: made.metadata.uid ?? '', graceSeconds: 2 })).toBeUndefined()
    expect(await admin.remove(PODS, 'one')).toBeUndefined()
    await expect(admin.patch(PODS, 'one', [])).rejects.toMatchObject({ code: 'sandbox_lost', status: 404 })
    expect((await admin.read<{ major: string }>('/version')).major).toBe('1')
  })

  test('an object that waits for others is there until they let it go', async () => {
    const claim: PersistentVolumeClaim = {
      metadata: { name: 'held', finalizers: ['sandlot.dev/test'] },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
    }
    await admin.create(CLAIMS, claim)
    expect(await admin.remove(CLAIMS, 'held')).toMatchObject({
      metadata: { deletionTimestamp: expect.any(String) },
    })
    await admin.patch(CLAIMS, 'held', [{ op: 'remove', path: '/metadata/finalizers' }])
    await vi.waitFor(async () => expect(await admin.get(CLAIMS, 'held')).toBeUndefined(), 10_000)
  })

  test('of two who patch with a test one is outrun', async () => {
    await admin.create(PODS, gatedPod('raced', { owner: 'none' }))
    const claim = (owner: string): Promise<unknown> =>
      admin.patch(PODS, 'raced', [
        { op: 'test', path: '/metadata/labels/owner', value: 'none' },
        { op: 'replace', path: '/metadata/labels/owner', value: owner },
      ])
    const results = await Promise.allSettled(['a', 'b', 'c', 'd'].map(claim))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ outrun: true })
  })

  test('lists more than a page', async () => {
    const names = Array.from({ length: 260 }, (_, at) => `map-${at}`)
    while (names.length > 0)
      await Promise.all(
        names.splice(0, 20).map((name) => admin.create(MAPS, { metadata: { name, labels: { many: '1' } } })),
      )
    const { items } = await admin.list(MAPS, { labels: 'many=1' })
    expect(new Set(items.map(({ metadata }) => metadata.name)).size).toBe(260)
  })

  test('a stream to a Pod that is not there is refused in words', async () => {
    const path = `${admin.path(PODS, 'nobody')}/exec?command=true&stdout=true`
    await expect(admin.connect(path, 'v5.channel.k8s.io')).rejects.toMatchObject({
      code: 'sandbox_lost',
      status: 404,
    })
  })

  test('a token that was refused is read again; one that is revoked is refused in words', async () => {
    const { kubectl, token } = testCluster()
    await kubectl('-n', namespace.name, 'create', 'serviceaccount', 'agent')
    await kubectl('-n', namespace.name, 'create', 'role', 'agent', '--verb=list', '--resource=pods')
    const binding = ['create', 'rolebinding', 'agent', '--role=agent']
    await kubectl('-n', namespace.name, ...binding, `--serviceaccount=${namespace.name}:agent`)
    const file = join(folder, 'token')
    await writeFile(file, 'no-token-of-this-cluster')
    const api = made(await namespace.accessAs({ tokenFile: file }, join(folder, 'config')))
    await expect(api.list(PODS, {})).rejects.toMatchObject({ status: 401 })
    await writeFile(file, await token(namespace.name, 'agent'))
    // The first is remembered still: it is refused, and the file is read again.
    await vi.waitFor(() => api.list(PODS, {}), 10_000)
    await expect(api.remove(PODS, 'x')).rejects.toThrow(
      `system:serviceaccount:${namespace.name}:agent may not delete pods in the namespace "${namespace.name}"`,
    )
    await kubectl('-n', namespace.name, 'delete', 'serviceaccount', 'agent')
    // An API server remembers for ten seconds whom it knew.
    const refused = () => expect(api.list(PODS, {})).rejects.toMatchObject({ status: 401 })
    await vi.waitFor(refused, { timeout: 30_000, interval: 500 })
  })

  test('an overloaded server is waited for', async () => {
    const { kubectl, token } = testCluster()
    await kubectl('-n', namespace.name, 'create', 'serviceaccount', 'crowd')
    const user = { token: await token(namespace.name, 'crowd') }
    const api = made(await namespace.accessAs(user, join(folder, 'crowd')))
    const file = join(folder, 'level.json')
    await writeFile(file, JSON.stringify(oneAtATime(namespace.name)))
    await kubectl('apply', '-f', file)
    const crowd = Array.from({ length: 30 }, (_, at) => at)
    try {
      const longest = async (): Promise<number> => {
        const begun = performance.now()
        const asked = crowd.map(() => expect(api.list(PODS, {})).rejects.toMatchObject({ status: 403 }))
        await Promise.all(asked)
        return performance.now() - begun
      }
      // A refused one is sent again after a second and more.
      await vi.waitFor(async () => expect(await longest()).toBeGreaterThan(1_000), 60_000)
    } finally {
      await kubectl('delete', '-f', file)
    }
  })

  describe.skipIf(noOwnCluster !== undefined)(`whose server fails${why(noOwnCluster)}`, () => {
    test('killed: calls fail in words, and work again when it is back', async () => {
      const cluster = ownCluster()
      await cluster.signal('apiserver', 'SIGKILL')
      await expect(admin.list(PODS, {})).rejects.toMatchObject({ unreachable: true })
      await expect(admin.connect('/x', 'v5.channel.k8s.io')).rejects.toThrow(/cannot be reached/)
      await cluster.start('apiserver')
      await vi.waitFor(() => admin.list(PODS, {}), 30_000)
    })

    test('silent: calls fail at once after a while, and work again when it answers', async () => {
      const cluster = ownCluster()
      await cluster.signal('apiserver', 'SIGSTOP')
      try {
        await expect(admin.list(PODS, {})).rejects.toThrow(/does not answer/)
        expect(admin.health().state).not.toBe('closed')
        const begun = performance.now()
        await expect(admin.create(PODS, gatedPod('silent'))).rejects.toThrow(/does not answer/)
        expect(performance.now() - begun).toBeLessThan(1_000)
      } finally {
        await cluster.signal('apiserver', 'SIGCONT')
      }
      await vi.waitFor(() => admin.list(PODS, {}), { timeout: 30_000, interval: 250 })
      expect(admin.health().state).toBe('closed')
    })
  })
})

/** Priority of requests by one account of the namespace: all but one are refused with 429. */
function oneAtATime(namespace: string): unknown {
  const apiVersion = 'flowcontrol.apiserver.k8s.io/v1'
  const limited = { nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0 }
  const subject = { kind: 'ServiceAccount', serviceAccount: { namespace, name: 'crowd' } }
  const resources = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'] }
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        apiVersion,
        kind: 'PriorityLevelConfiguration',
        metadata: { name: namespace },
        spec: { type: 'Limited', limited: { ...limited, limitResponse: { type: 'Reject' } } },
      },
      {
        apiVersion,
        kind: 'FlowSchema',
        metadata: { name: namespace },
        spec: {
          priorityLevelConfiguration: { name: namespace },
          matchingPrecedence: 10,
          rules: [{ subjects: [subject], resourceRules: [resources] }],
        },
      },
    ],
  }
}
