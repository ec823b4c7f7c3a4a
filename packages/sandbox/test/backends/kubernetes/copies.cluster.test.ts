/** Copies of homes on a cluster: with its node's runtime killed, after a kill, and to Docker and back. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse, stringify } from 'yaml'

import { onlyInFullRun } from '../../../../../test/campaign.ts'
import { noCluster, noOwnCluster, ownCluster, testCluster } from '../../../../../test/cluster/cluster.ts'
import type { SandboxBackend, SandboxSpec } from '../../../src/backend.ts'
import { copyTemplate } from '../../../src/backends/kubernetes/pod-template.ts'
import { poolName, slotLabels } from '../../../src/names.ts'
import { Bench, sh } from '../../contract/harness.ts'
import { dockerFixture } from '../../support/docker-fixture.ts'
import { type KubernetesFixture, kubernetesFixture } from '../../support/kubernetes-fixture.ts'
import { installPolicies } from './policy-fixture.ts'

const COPIES = ['get', 'pods', '--selector', 'sandlot.dev/role=copy', '-o', 'name']

describe.skipIf(noCluster !== undefined)(`on a cluster (${noCluster ?? 'of this run'})`, () => {
  let fixture: KubernetesFixture
  let bench: Bench
  beforeAll(async () => {
    fixture = await kubernetesFixture()
    const started = await Bench.start(fixture)
    bench = started.bench
    expect(await sh(started.sandbox, 'head -c 100000000 /dev/urandom > large')).toMatchObject({ code: 0 })
  }, 120_000)
  afterAll(() => fixture.dispose(), 60_000)

  test('the Pod of a copy that is given up is removed, and one of a killed process by the next', async () => {
    const { copies } = fixture.backend.inventory
    const given = copies.read(bench.spec.volume)[Symbol.asyncIterator]()
    expect((await given.next()).value?.length).toBeGreaterThan(0)
    expect(await fixture.kubectl(...COPIES)).toContain('-copy-')
    await given.return?.()
    await vi.waitFor(async () => expect(await fixture.kubectl(...COPIES)).toBe(''), 30_000)

    const other = await fixture.another()
    const left = other.inventory.copies.read(bench.spec.volume)[Symbol.asyncIterator]()
    await left.next()
    await copies.removeLeftHelpers()
    await vi.waitFor(async () => expect(await fixture.kubectl(...COPIES)).toBe(''), 30_000)
    await left.return?.()
  }, 120_000)

  test.skipIf(noOwnCluster !== undefined)(
    'a copy fails, and never ends early, when the runtime of the node is killed',
    async () => {
      const cluster = ownCluster()
      const sandbox = ['get', 'pods', '-o', 'jsonpath={.items[0].spec.nodeName}']
      const part = (await fixture.kubectl(...sandbox)).endsWith('1') ? 'containerd1' : 'containerd2'
      const slow = await fixture.another({ streamRate: 4_000_000 })
      const reading = slow.inventory.copies.read(bench.spec.volume)[Symbol.asyncIterator]()
      await reading.next()
      await cluster.signal(part, 'SIGKILL')
      try {
        await expect(rest(reading)).rejects.toMatchObject({ unreachable: true })
      } finally {
        await cluster.start(part)
      }
    },
    180_000,
  )

  test('a copy gives way to a sandbox that starts, and is made again on its node', async () => {
    const { backend } = fixture
    const { volume } = bench.spec
    const [sandbox] = await backend.list({ 'sandlot.slot': bench.spec.slot })
    const id = sandbox?.id ?? ''
    await backend.stop(id)
    const slow = await fixture.another({ streamRate: 4_000_000 })
    const reading = slow.inventory.copies.read(volume)[Symbol.asyncIterator]()
    await reading.next()
    const opened = await backend.open({ id, state: 'stopped' })
    opened.stream.destroy()
    await expect(rest(reading)).rejects.toMatchObject({ unreachable: true })
    const again = backend.inventory.copies.read(volume)[Symbol.asyncIterator]()
    await again.next()
    const nodes = ['get', 'pods', '-o', 'jsonpath={.items[*].spec.nodeName}']
    const [one, other, ...more] = (await fixture.kubectl(...nodes)).split(' ')
    expect([one, more]).toEqual([other, []])
    await rest(again)
  }, 180_000)

  test('the home of a sandbox that waits for a node is copied when it has one', async ({ skip }) => {
    onlyInFullRun(skip)
    const { volume, slot } = bench.spec
    const [sandbox] = await fixture.backend.list({ 'sandlot.slot': slot })
    await fixture.backend.stop(sandbox?.id ?? '')
    const labels = {
      'sandlot.dev/deployment': fixture.deployment,
      'sandlot.dev/role': 'sandbox',
      'sandlot.dev/slot': slot,
    }
    await fixture.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'waits', labels },
      spec: { containers: [{ name: 'main', image: 'none' }], nodeSelector: { none: 'such' } },
    })
    const reading = fixture.backend.inventory.copies.read(volume)[Symbol.asyncIterator]()
    const first = reading.next()
    // An agent waits about as long for room.
    await Promise.race([first, sleep(40_000)])
    await fixture.kubectl('delete', 'pod', 'waits')
    expect((await first).value?.length).toBeGreaterThan(0)
    await rest(reading)
  }, 180_000)

  test('the rights of a backup are enough for copies, and an agent has none of them', async () => {
    const { image, kubeconfig } = testCluster()
    const quota = { pods: '200', persistentvolumeclaims: '1000' }
    const installed = await installPolicies('copies', { images: [image], quota })
    const folder = await mkdtemp(join(tmpdir(), 'sandlot-copies-'))
    try {
      const { namespace, backupToken, agent } = installed
      const config = parse(await readFile(kubeconfig, 'utf8')) as { users: { user: unknown }[] }
      for (const entry of config.users) entry.user = { token: backupToken }
      const path = join(folder, 'kubeconfig')
      await writeFile(path, stringify(config))
      const settings = { memoryRequest: 0.05, userNamespaces: false, networkDown: true }
      const access = { namespace, kubeconfig: path, environment: {} }
      const asBackup = await fixture.another({ access, settings })
      const spec = fixture.spec()
      await fill(asBackup, fixture.deployment, spec, [Buffer.alloc(10_240)])
      const back = Buffer.concat(await read(asBackup, spec))
      expect(back.subarray(-1_024).every((byte) => byte === 0)).toBe(true)
      expect(back.toString()).toContain('./')
      const pod = copyTemplate({
        deployment: fixture.deployment,
        spec: { ...spec, name: spec.volume },
        settings: { ...settings, namespace },
        name: `${spec.volume}-copy-01234567`,
        act: 'read',
      })
      const answer = await agent('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, pod)
      const message: unknown = expect.stringContaining('sandlot:')
      expect(answer).toMatchObject({ status: 422, body: { message } })
    } finally {
      await installed.remove()
      await rm(folder, { recursive: true })
    }
  }, 180_000)

  test('a home of Docker is restored into the cluster, and back', async () => {
    const docker = await dockerFixture()
    try {
      const { deployment } = fixture
      const spec = fixture.spec()
      const from = docker.spec({
        slot: spec.slot,
        uid: spec.uid,
        volume: poolName(docker.deployment, spec.slot),
      })
      const first = await Bench.start(docker, from)
      await sh(first.sandbox, 'printf x > kept; chmod 000 kept; mkdir d; ln -s ../kept d/link')
      const tar = await read(docker.backend, from)
      await fill(fixture.backend, deployment, spec, tar)
      const second = await Bench.start(fixture, { ...spec, hasWorkspace: true })
      expect(
        (await sh(second.sandbox, 'find . ! -path . -printf "%p %m %U %l;"; chmod 400 kept; cat kept')).out,
      ).toBe(
        (await sh(first.sandbox, 'find . ! -path . -printf "%p %m %U %l;"; chmod 400 kept; cat kept')).out,
      )
      await first.bench.remove()
      await fill(docker.backend, docker.deployment, from, await read(fixture.backend, spec))
      const back = await Bench.start(docker, { ...from, name: docker.spec(from).name, hasWorkspace: true })
      expect(await sh(back.sandbox, 'cat kept; readlink d/link')).toMatchObject({ out: 'x../kept\n' })
    } finally {
      await docker.dispose()
    }
  }, 120_000)
})

async function read({ inventory }: SandboxBackend, { volume }: SandboxSpec): Promise<Buffer[]> {
  const tar: Buffer[] = []
  for await (const bytes of inventory.copies.read(volume)) tar.push(bytes)
  return tar
}

function fill(
  { inventory }: SandboxBackend,
  deployment: string,
  spec: SandboxSpec,
  tar: Buffer[],
): Promise<void> {
  return inventory.copies.write(
    { name: spec.volume, labels: slotLabels(deployment, spec) },
    Readable.from(tar),
  )
}

async function rest(reading: AsyncIterator<Buffer>): Promise<void> {
  while ((await reading.next()).done !== true);
}
