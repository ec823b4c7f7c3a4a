/** The network between agents and the API server: many streams at once, and one that cuts what is idle. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'

import { extent, oneRunOfThree } from '../../../../../test/campaign.ts'
import { noCluster, testCluster } from '../../../../../test/cluster/cluster.ts'
import { readAccess } from '../../../src/backends/kubernetes/access.ts'
import { createApi } from '../../../src/backends/kubernetes/api.ts'
import { PODS } from '../../../src/backends/kubernetes/objects.ts'
import { deriveSandboxKey } from '../../../src/controller/key.ts'
import { type ConnectedSandbox, connectSandbox } from '../../../src/sbxd/client.ts'
import type { Sandbox } from '../../../src/sandbox.ts'
import { kubernetesFixture, type KubernetesFixture } from '../../support/kubernetes-fixture.ts'

let fixture: KubernetesFixture
beforeEach(async () => {
  fixture = await kubernetesFixture()
})
afterEach(() => fixture.dispose())

/** Starts `yes`. Returns the bytes of its output so far, and its end. */
async function printing(sandbox: Sandbox): Promise<{ bytes: number; end(): Promise<void> }> {
  const id = randomBytes(16).toString('hex')
  const running = await sandbox.run({ id, command: 'yes', autoAcknowledge: true })
  const seen = {
    bytes: 0,
    async end() {
      await running.cancel(0)
      await reading
    },
  }
  const reading = (async () => {
    for await (const { data } of running.output) seen.bytes += data.length
  })()
  return seen
}

/** The 95th percentile of the milliseconds of a GET, of as many as fit between pauses into this time. */
async function getTimes(get: () => Promise<unknown>, forMs: number): Promise<string> {
  const times: number[] = []
  for (const until = performance.now() + forMs; performance.now() < until; await sleep(20)) {
    const from = performance.now()
    await get()
    times.push(performance.now() - from)
  }
  times.sort((a, b) => a - b)
  const at = (part: number): string => (times[Math.floor(times.length * part)] ?? 0).toFixed(1)
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`
}

/** Bytes of one message and of what the sockets hold, of which none may be refused any more. */
const IN_FLIGHT = 256 * 1024

describe.skipIf(noCluster !== undefined)(
  `streams through the API server (${noCluster ?? 'of this run'})`,
  () => {
    test('ten people print without end: each and all below their limits, in equal parts', async () => {
      const rate = extent(1, 8) * 1_000_000
      const ms = extent(3_000, 20_000)
      const controller = fixture.controller({ backend: await fixture.another({ streamRate: rate }) })
      const api = createApi(
        await readAccess({
          namespace: fixture.namespace,
          kubeconfig: testCluster().kubeconfig,
          environment: {},
        }),
      )
      const get = (): Promise<unknown> => api.get(PODS, 'none')
      const names = Array.from({ length: 10 }, (_, n) => `person${n}`)
      const people = await Promise.all(names.map((name) => controller.acquire(name)))
      /** Bytes of each, after the burst that a rest permits. */
      const measure = async (
        some: Sandbox[],
      ): Promise<{ each: number[]; seconds: number; times: string }> => {
        const outputs = await Promise.all(some.map(printing))
        await sleep(2_000)
        const [before, from] = [outputs.map(({ bytes }) => bytes), performance.now()]
        const times = await getTimes(get, ms)
        const each = outputs.map(({ bytes }, n) => bytes - (before[n] ?? 0))
        const seconds = (performance.now() - from) / 1_000
        await Promise.all(outputs.map((output) => output.end()))
        return { each, seconds, times }
      }
      const quiet = await getTimes(get, ms)
      const one = await measure(people.slice(0, 1))
      const all = await measure(people)
      api.close()
      const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0)
      const ratios = [
        sum(one.each) / (one.seconds * rate),
        sum(all.each) / (all.seconds * 4 * rate),
        Math.min(...all.each) / Math.max(...all.each),
      ].map((ratio) => ratio.toFixed(2))
      console.info(
        `\`yes\` at ${rate / 1e6} MB/s a sandbox: one has ${ratios[0]} of its limit, ten have ${ratios[1]} of theirs, the least ${ratios[2]} of the most; a GET quiet ${quiet}, beside one ${one.times}, beside ten ${all.times}`,
      )
      expect(sum(one.each)).toBeLessThan(one.seconds * rate * 1.05 + IN_FLIGHT)
      expect(sum(all.each)).toBeLessThan(all.seconds * 4 * rate * 1.05 + 10 * IN_FLIGHT)
      expect(Math.min(...all.each)).toBeGreaterThan(Math.max(...all.each) / 2)
    })

    test('a network that cuts what is idle in one direction: a stream with a heartbeat stays', async ({
      skip,
    }) => {
      oneRunOfThree('a network that cuts idle streams', skip)
      // Sixty heartbeats: two minutes for one of two seconds.
      const heartbeatMs = extent(300, 2_000)
      await using network = await startCuttingNetwork(heartbeatMs * 60)
      const backend = await fixture.another({
        access: { namespace: fixture.namespace, kubeconfig: network.kubeconfig, environment: {} },
      })
      const open = async (beatMs: number): Promise<ConnectedSandbox> => {
        const made = await backend.create(fixture.spec())
        const { stream, keyId } = await backend.open(made)
        const key = deriveSandboxKey(fixture.deploymentKey, keyId)
        return connectSandbox({ id: made.id, stream, key, epoch: 1, heartbeatMs: beatMs })
      }
      const [beating, silent] = await Promise.all([open(heartbeatMs), open(0)])
      const ends: string[] = []
      void beating.closed.then(() => ends.push('beating'))
      await silent.closed
      await sleep(heartbeatMs * 60)
      expect(ends).toEqual([])
      expect((await beating.stat()).load.commands).toBe(0)
      await beating.close()
    })
  },
)

interface CuttingNetwork extends AsyncDisposable {
  /** An administrator's, through this network. */
  kubeconfig: string
}

/** A way to the API server on which every connection ends after `idleMs` without a byte in one of its directions. */
async function startCuttingNetwork(idleMs: number): Promise<CuttingNetwork> {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-cutting-'))
  const config = parse(await readFile(testCluster().kubeconfig, 'utf8')) as {
    clusters: { cluster: Record<string, string> }[]
  }
  const target = new URL(config.clusters[0]?.cluster['server'] ?? '')
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const far = connect(Number(target.port), target.hostname)
    const cut = (): void => void [client, far].map((socket) => socket.destroy())
    for (const [from, to] of [
      [client, far],
      [far, client],
    ] as const) {
      const timer = setTimeout(cut, idleMs)
      sockets.add(from)
      from.on('data', () => timer.refresh())
      from.on('error', cut).on('close', () => {
        clearTimeout(timer)
        cut()
      })
      from.pipe(to)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  for (const { cluster } of config.clusters) {
    cluster['server'] = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    cluster['tls-server-name'] = 'kubernetes'
  }
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, stringify(config), { mode: 0o600 })
  return {
    kubeconfig,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await rm(folder, { recursive: true })
    },
  }
}
