/** A cluster refuses something or cannot give it: in words, and nothing that was begun is left to start later. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'

import { onlyInFullRun } from '../../../../../test/campaign.ts'
import { noCluster, testCluster } from '../../../../../test/cluster/cluster.ts'
import type { SandboxSpec } from '../../../src/backend.ts'
import { DEFAULT_LIMITS } from '../../../src/limits.ts'
import { LABEL, ownerTag, poolName } from '../../../src/names.ts'
import { kubernetesFixture, type KubernetesFixture } from '../../support/kubernetes-fixture.ts'
import { say } from '../say.ts'

let fixture: KubernetesFixture
beforeEach(async () => {
  fixture = await kubernetesFixture()
})
afterEach(() => fixture.dispose())

const pods = async (): Promise<string> => fixture.kubectl('get', 'pod', '-o', 'name')

describe.skipIf(noCluster !== undefined)(`what a cluster refuses (${noCluster ?? 'on one'})`, () => {
  test('a quota that is used up', async () => {
    await fixture.kubectl('create', 'quota', 'none', '--hard=pods=0')
    await expect(fixture.controller().acquire('ann')).rejects.toMatchObject({
      code: 'host_full',
      message: expect.stringMatching(/quota "none" .* used up .*ResourceQuota/s),
    })
    expect(await pods()).toBe('')
  })

  test('an image that no registry has', async () => {
    const image = `localhost/sandlot/none@sha256:${'0'.repeat(64)}`
    await expect(fixture.controller({ image }).acquire('ann')).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringMatching(/could not get the sandbox image .*SANDLOT_SANDBOX_IMAGE/s),
    })
    await expect.poll(pods, { timeout: 20_000 }).toBe('')
    expect(await say(fixture.controller(), 'echo works')).toBe('works')
  })

  test('nodes without room', async ({ skip }) => {
    onlyInFullRun(skip)
    const limits = { ...fixture.spec().limits, memoryBytes: 2 ** 50 }
    await expect(fixture.controller({ limits }).acquire('ann')).rejects.toMatchObject({
      code: 'host_full',
      message: expect.stringMatching(/^No node of the cluster has room .*Insufficient memory/s),
    })
    await expect.poll(pods, { timeout: 20_000 }).toBe('')
  })

  test('on full nodes a warm sandbox gives way to a person’s, and one that was claimed from the pool never', async () => {
    // Two of them do not fit on a node.
    const memory = await fixture.kubectl(
      'get',
      'node',
      '-o',
      'jsonpath={.items[0].status.allocatable.memory}',
    )
    const memoryBytes = Math.floor(Number.parseInt(memory, 10) * 1024 * 0.6)
    const settings = { memoryRequest: 1, userNamespaces: false, networkDown: true }
    const backend = await fixture.another({ settings })
    const open = async (change: Partial<SandboxSpec> = {}, signal?: AbortSignal): Promise<string> => {
      const spec = fixture.spec({ limits: { ...DEFAULT_LIMITS, memoryBytes }, ...change })
      const sandbox = await backend.create(spec, signal)
      const { stream } = await backend.open(sandbox, signal)
      stream.destroy()
      return sandbox.id
    }
    const openWarm = (slot: string): Promise<string> => {
      const name = poolName(fixture.deployment, slot)
      return open({ slot, name, volume: name })
    }
    const [claimed] = await Promise.all([openWarm('aaaaaaaa'), openWarm('bbbbbbbb')])
    await backend.claim(claimed, { tag: ownerTag(fixture.deploymentKey, 'ann'), generation: 1 })
    const second = await open()
    const running = async (): Promise<string[]> =>
      (await fixture.kubectl('get', 'pod', '-o', 'jsonpath={.items[*].metadata.name}')).split(' ').toSorted()
    expect(await running()).toEqual([claimed, second].toSorted())
    const waits = open({}, AbortSignal.timeout(12_000))
    const reasons = ['get', 'pod', '-o', 'jsonpath={.items[*].status.conditions[*].reason}']
    await expect.poll(() => fixture.kubectl(...reasons), { timeout: 10_000 }).toContain('Unschedulable')
    // It would take the room that another one of the pool has given up.
    await expect(openWarm('cccccccc')).rejects.toMatchObject({ code: 'host_full' })
    await expect(waits).rejects.toThrow()
    const all = await running()
    expect(all).toEqual(expect.arrayContaining([claimed, second]))
    for (const id of all) if (id !== claimed && id !== second) await backend.remove(id)

    // Each home can be used on one node only, so that the warm sandbox of the other node is no help.
    await backend.stop(second)
    const there = await openWarm('dddddddd')
    await backend.stop(claimed)
    const here = await openWarm('eeeeeeee')
    const again = await backend.open({ id: claimed, state: 'stopped' })
    again.stream.destroy()
    expect(await running()).toEqual([claimed, there].toSorted())
    expect(here).not.toBe(there)
  }, 120_000)

  test('a class of volumes without any', async ({ skip }) => {
    onlyInFullRun(skip)
    const name = `${fixture.namespace}-empty`
    await fixture.apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    })
    try {
      const backend = await fixture.another({ storageClass: name })
      await expect(fixture.controller({ backend }).acquire('ann')).rejects.toMatchObject({
        code: 'workspace_unreachable',
        message: expect.stringMatching(/^The volume of .* is not ready .*StorageClass/s),
      })
      await expect.poll(pods, { timeout: 20_000 }).toBe('')
    } finally {
      await fixture.kubectl('delete', 'storageclass', name)
    }
  })

  test('a claim of a warm sandbox that ended between its two objects is finished by the next open', async () => {
    const { backend, deployment, deploymentKey } = fixture
    const spec = fixture.spec()
    const warm = await backend.create({ ...spec, name: poolName(deployment, spec.slot) })
    const tag = ownerTag(deploymentKey, 'ann')
    await fixture.kubectl(
      'label',
      '--overwrite',
      'pvc',
      spec.volume,
      `sandlot.dev/owner=${tag}`,
      'sandlot.dev/generation=3',
    )
    const other = await fixture.another()
    const [found] = await other.list({ [LABEL.slot]: spec.slot })
    expect(found?.name).toBe(`${poolName(deployment, spec.slot)}-${tag}-3`)
    const { stream } = await other.open(warm)
    stream.destroy()
    const labels = await fixture.kubectl('get', 'pod', warm.id, '-o', 'jsonpath={.metadata.labels}')
    expect(JSON.parse(labels)).toMatchObject({ 'sandlot.dev/owner': tag, 'sandlot.dev/generation': '3' })
    await expect(
      other.claim(warm.id, { tag: ownerTag(deploymentKey, 'bob'), generation: 4 }),
    ).rejects.toMatchObject({ code: 'ledger' })
  })

  test('a Pod of another maker under the name and labels of a stopped sandbox is never used', async () => {
    const controller = fixture.controller()
    await say(controller, 'echo mine >kept')
    const { id } = await controller.acquire('ann')
    const labels: unknown = JSON.parse(
      await fixture.kubectl('get', 'pod', id, '-o', 'jsonpath={.metadata.labels}'),
    )
    await controller.stop('ann')
    await fixture.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: id, labels },
      spec: { containers: [{ name: 'sbxd', image: fixture.image, command: ['sleep', '600'] }] },
    })
    await fixture.kubectl('wait', 'pod', id, '--for=jsonpath={.status.phase}=Running', '--timeout=60s')
    await expect(controller.acquire('ann')).rejects.toMatchObject({
      code: 'unsafe_host',
      message: expect.stringMatching(/is of another maker .*kubectl delete pod/s),
    })
    await fixture.kubectl('delete', 'pod', id, '--grace-period=0', '--force')
    expect(await say(controller, 'cat kept')).toBe('mine')
  })

  test('a ServiceAccount that was deleted, and made again with a new token', async () => {
    const { namespace } = fixture
    const cluster = testCluster()
    const token = join(fixture.folder, 'token')
    const kubeconfig = join(fixture.folder, 'kubeconfig')
    const config = parse(await readFile(cluster.kubeconfig, 'utf8')) as { users: { user: unknown }[] }
    for (const entry of config.users) entry.user = { tokenFile: token }
    await writeFile(kubeconfig, stringify(config))
    const make = async (): Promise<void> => {
      await fixture.kubectl('create', 'serviceaccount', 'agent')
      await writeFile(token, await cluster.token(namespace, 'agent'))
    }
    await fixture.kubectl(
      'create',
      'rolebinding',
      'agent',
      '--clusterrole=edit',
      `--serviceaccount=${namespace}:agent`,
    )
    await make()
    const backend = await fixture.another({ access: { namespace, kubeconfig, environment: {} } })
    const controller = fixture.controller({ backend })
    await say(controller, 'echo mine >kept')
    await fixture.kubectl('delete', 'serviceaccount', 'agent')
    const words = async (): Promise<string> => {
      try {
        // It asks the API each time.
        await backend.inventory.volumes.has('no-such-volume')
        return ''
      } catch (error) {
        return String(error)
      }
    }
    // The server knows a token for some seconds more.
    await expect.poll(words, { timeout: 60_000, interval: 500 }).toMatch(/does not accept the agent’s token/)
    await make()
    await expect.poll(words, { timeout: 90_000, interval: 500 }).toBe('')
    expect(await say(controller, 'cat kept')).toBe('mine')
  })
})
