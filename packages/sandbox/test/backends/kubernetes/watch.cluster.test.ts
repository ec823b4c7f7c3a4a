import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'

import { noCluster, noOwnCluster, ownCluster } from '../../../../../test/cluster/cluster.ts'
import { createApi, type KubernetesApi } from '../../../src/backends/kubernetes/api.ts'
import { type Pod, PODS } from '../../../src/backends/kubernetes/objects.ts'
import { type Cache, createCache } from '../../../src/backends/kubernetes/watch.ts'
import { gatedPod, makeNamespace, type TestNamespace } from '../../support/cluster-namespace.ts'

const why = (reason: string | undefined): string => (reason === undefined ? '' : ` (${reason})`)
const OURS = { labels: 'sandlot.dev/deployment=ours' }
const pod = (name: string): Pod => gatedPod(name, { 'sandlot.dev/deployment': 'ours', owner: 'none' })
const owner = (value: string) =>
  [{ op: 'replace', path: '/metadata/labels/owner', value }] satisfies Parameters<KubernetesApi['patch']>[2]
const is = (value: string) => (found: Pod | undefined) => found?.metadata.labels?.['owner'] === value
const sees = (ms = 10_000) => ({ doing: 'show that', ms })

describe.skipIf(noCluster !== undefined)(`objects in memory${why(noCluster)}`, () => {
  let namespace: TestNamespace
  let other: KubernetesApi
  const open: { close(): void }[] = []
  let cache: Cache<Pod>

  /** By a connection of its own. */
  async function watched(server?: string, silentMs?: number): Promise<Cache<Pod>> {
    const api = createApi(await namespace.access(server))
    const made = createCache(api, PODS, OURS, silentMs)
    open.push(made, api)
    return made
  }
  /** The cache shows what the API says. */
  async function agrees(cache: Cache<Pod>): Promise<void> {
    const { items } = await other.list(PODS, OURS)
    const versions = (pods: Pod[]) =>
      pods.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).toSorted()
    await vi.waitFor(async () => expect(versions(await cache.list())).toEqual(versions(items)), 20_000)
  }

  beforeAll(async () => {
    namespace = await makeNamespace()
    other = createApi(await namespace.access())
  })
  afterAll(async () => {
    other.close()
    await namespace[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    cache = await watched()
  })
  afterEach(async () => {
    for (const one of open.splice(0)) one.close()
    for (const { metadata } of (await other.list(PODS, {})).items) await other.remove(PODS, metadata.name)
  })

  test('are there at the first question, but those of other labels', async () => {
    await other.create(PODS, pod('a'))
    await other.create(PODS, gatedPod('b'))
    expect((await cache.list()).map(({ metadata }) => metadata.name)).toEqual(['a'])
    expect(await cache.get('b')).toBeUndefined()
  })

  test('change when others write', async () => {
    expect(await cache.list()).toEqual([])
    const made = cache.until('a', (found) => found !== undefined, sees())
    await other.create(PODS, pod('a'))
    expect((await made)?.metadata.name).toBe('a')
    const claimed = cache.until('a', is('x'), sees())
    await other.patch(PODS, 'a', owner('x'))
    await claimed
    const gone = cache.until('a', (found) => found === undefined, sees())
    await other.remove(PODS, 'a')
    expect(await gone).toBeUndefined()
    await agrees(cache)
  })

  test('are never older than what was written through them, though the watch lags', async () => {
    const late = await lateServer(new URL((await namespace.access()).server), 300)
    const lagging = await watched(late.address)
    open.push(late)
    await lagging.list()
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    for (let round = 0; round < 3; round++) {
      const write = async (name: string): Promise<void> => {
        await lagging.create(pod(name))
        await lagging.patch(name, owner('x'))
        expect(is('x')(await lagging.get(name))).toBe(true)
        // Older news of the watch must neither take that back nor bring a removed one back.
        await staysTrue(async () => is('x')(await lagging.get(name)))
        await lagging.patch(name, owner('y'))
        await lagging.remove(name)
        await staysTrue(async () => (await lagging.get(name)) === undefined)
      }
      await Promise.all(names.map(write))
    }
    await agrees(lagging)
  })

  test('that are not there any more are forgotten when a change of them is refused', async () => {
    await cache.create(pod('a'))
    await other.remove(PODS, 'a')
    await expect(cache.patch('a', owner('x'))).rejects.toMatchObject({ code: 'sandbox_lost' })
    expect(await cache.get('a')).toBeUndefined()
    expect(await cache.remove('a')).toBeUndefined()
  })

  test('are waited for no longer than asked', async () => {
    const never = cache.until('a', is('x'), { doing: 'start the sandbox', ms: 200 })
    await expect(never).rejects.toThrow(/did not start the sandbox within/)
    const stop = new AbortController()
    const stopped = cache.until('a', is('x'), { ...sees(), signal: stop.signal })
    setTimeout(() => stop.abort(), 50)
    await expect(stopped).rejects.toMatchObject({ code: 'cancelled' })
    const failed = cache.until(
      'a',
      (found) => {
        if (found) throw new Error('not this one')
        return false
      },
      sees(),
    )
    await Promise.all([other.create(PODS, pod('a')), expect(failed).rejects.toThrow('not this one')])
    const closed = cache.until('a', is('x'), sees())
    setTimeout(() => cache.close(), 50)
    await expect(closed).rejects.toMatchObject({ code: 'cancelled' })
    await expect(cache.list()).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('cost a second of processor a minute for a hundred Pods, and less', async () => {
    const names = Array.from({ length: 100 }, (_, at) => `many-${at}`)
    for (const group of [0, 1, 2, 3, 4])
      await Promise.all(names.slice(group * 20, group * 20 + 20).map((name) => other.create(PODS, pod(name))))
    await cache.list()
    await agrees(cache)
    const before = process.cpuUsage()
    // A minute of somebody who looks every second, and of one change a second.
    const measured = await watched()
    for (let second = 0; second < 60; second++) {
      expect(await measured.list()).toHaveLength(100)
      await measured.patch(names[second] ?? '', owner(`${second}`))
    }
    const { user, system } = process.cpuUsage(before)
    console.log(`a minute of 100 Pods: ${Math.round((user + system) / 1_000)} ms of processor`)
    expect((user + system) / 1e6).toBeLessThan(1)
  })

  describe.skipIf(noOwnCluster !== undefined)(`when the way to them fails${why(noOwnCluster)}`, () => {
    test('are shown for a moment while the API server is away, and are right once it is back', async () => {
      const cluster = ownCluster()
      await cache.list()
      await cache.create(pod('a'))
      await cluster.signal('apiserver', 'SIGKILL')
      try {
        expect(await cache.list()).toHaveLength(1)
        await expect(cache.remove('a')).rejects.toMatchObject({ unreachable: true })
        const isAway = () => expect(cache.list()).rejects.toMatchObject({ unreachable: true })
        await vi.waitFor(isAway, 20_000)
      } finally {
        await cluster.start('apiserver')
      }
      // Its memory of changes begins with its start: what was seen before is forgotten (410).
      await vi.waitFor(() => other.create(PODS, pod('b')), 30_000)
      await other.remove(PODS, 'a')
      await agrees(cache)
    })

    test('are waited for through an API server that dies', async () => {
      const cluster = ownCluster()
      await cache.list()
      await cache.create(pod('a'))
      const claimed = cache.until('a', is('x'), sees(60_000))
      await cluster.signal('apiserver', 'SIGKILL')
      await cluster.start('apiserver')
      await vi.waitFor(() => other.patch(PODS, 'a', owner('x')), 30_000)
      await claimed
      await agrees(cache)
    })

    test('are right again after a cut that says nothing', async () => {
      const cluster = ownCluster()
      const cut = await watched(cluster.agentServer(1), 2_000)
      await cut.create(pod('a'))
      await agrees(cut)
      await cluster.cutAgent(1, true)
      try {
        await other.patch(PODS, 'a', owner('x'))
        await other.create(PODS, pod('b'))
        // Longer than it believes a silent watch.
        await vi.waitFor(
          () => expect(cut.list()).rejects.toMatchObject({ code: 'engine_unavailable' }),
          60_000,
        )
      } finally {
        await cluster.cutAgent(1, false)
      }
      await vi.waitFor(() => cut.list(), { timeout: 60_000, interval: 500 })
      await agrees(cut)
    })

    test('are seen by who waits for them, though the watch lags', async () => {
      const server = new URL(ownCluster().agentServer(1))
      const lagging = await watched(server.href)
      await lagging.list()
      await lagging.create(pod('a'))
      const heal = dropConnections(server.hostname)
      try {
        await other.patch(PODS, 'a', owner('x'))
        expect(is('x')(await lagging.get('a'))).toBe(false)
        await lagging.until('a', is('x'), sees(60_000))
      } finally {
        heal()
      }
    })
  })
})

/** True for as long as old news may come. */
async function staysTrue(holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 600; performance.now() < end; await sleep(5))
    expect(await holds()).toBe(true)
}

/** Passes connections on. The first, which a cache keeps for its watch, has its answers later. */
async function lateServer(server: URL, ms: number): Promise<{ address: string; close(): void }> {
  const sockets = new Set<Socket>()
  const relay = createServer((client) => {
    const isFirst = sockets.size === 0
    const inner = connect(Number(server.port), server.hostname)
    for (const socket of [client, inner]) sockets.add(socket.on('error', () => socket.destroy()))
    client.pipe(inner)
    client.on('close', () => inner.destroy())
    inner.on('close', () => client.destroy())
    inner.on('data', (bytes) => (isFirst ? setTimeout(() => client.write(bytes), ms) : client.write(bytes)))
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return {
    address: `https://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    close() {
      relay.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Drops all that comes by the open connections to this address; new ones work. */
function dropConnections(address: string): () => void {
  const shown = execFileSync('ss', ['--no-header', '--tcp', '--numeric', 'dst', address], {
    encoding: 'utf8',
  })
  const ports = [...shown.matchAll(/:(\d+) +[\d.]+:6443/g)].map(([, port]) => port)
  expect(ports).not.toEqual([])
  const set = `{ ${ports.join(', ')} }`
  const chain = `chain lag { type filter hook input priority 0; tcp dport ${set} drop; tcp sport ${set} drop; };`
  execFileSync('nft', [`table inet lag { ${chain} }`])
  return () => void execFileSync('nft', ['delete', 'table', 'inet', 'lag'])
}
