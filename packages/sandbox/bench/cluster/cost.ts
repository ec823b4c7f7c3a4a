/** K6 to K8: processor and memory of idle sandboxes, and other people’s API server under load. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import { inTurns, p50, quantile, type Series, seriesOf } from '../../../../test/bench/measure.ts'
import { atMost, below, type Result } from '../../../../test/bench/report.ts'
import { noOwnCluster, testCluster } from '../../../../test/cluster/cluster.ts'
import { readAccess } from '../../src/backends/kubernetes/access.ts'
import { createApi } from '../../src/backends/kubernetes/api.ts'
import { PODS } from '../../src/backends/kubernetes/objects.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { newId } from '../context.ts'
import { pssMiB } from '../goals/memory.ts'
import { type ClusterContext, people } from './context.ts'

const PODS_IDLE = 100
const MEASURED = 10
const PRINTING = 10
const GETS = 100
const MINUTE_MS = 60_000
const MiB = 1024 ** 2

export function reconciled({ deployed }: ClusterContext): Promise<Result[]> {
  return deployed(async (fixture) => {
    const sandboxes = fixture.controller({
      limits: { ...DEFAULT_LIMITS, memoryBytes: 256 * MiB, tmpBytes: 32 * MiB },
      lookEveryMs: MINUTE_MS,
      startsAtOnce: 4,
    })
    await Promise.all(people(PODS_IDLE).map((person) => sandboxes.acquire(person)))
    await sandboxes.maintain()
    const before = process.cpuUsage()
    await sleep(MINUTE_MS)
    const { user, system } = process.cpuUsage(before)
    const mine = seriesOf('Sandlot', (user + system) / 1_000)
    return [
      {
        goal: 'K6',
        title: `processor of an agent with ${PODS_IDLE} idle sandboxes: a minute of watches, streams and one reconciliation`,
        series: [mine],
        verdicts: [below('≤ 1,000 ms', p50(mine), 1_000, 'ms')],
      },
    ]
  })
}

export async function idleMemory({ deployed }: ClusterContext): Promise<Result[]> {
  if (noOwnCluster !== undefined) return []
  return deployed(async (fixture, docker) => {
    const [mine, dockers] = [seriesOf('Sandlot'), seriesOf('Sandlot on Docker')]
    const [ours, onDocker] = [fixture.controller(), docker.controller()]
    for (const person of people(MEASURED)) {
      const { id } = await ours.acquire(person)
      await onDocker.acquire(person)
      const uid = await fixture.kubectl('get', 'pod', id, '-o', 'jsonpath={.metadata.uid}')
      mine.values.push(pssOfSandbox(uid))
    }
    const running = (await docker.backend.list({})).filter(({ state }) => state === 'running')
    for (const { id } of running) dockers.values.push(pssOfSandbox(id))
    return [
      {
        goal: 'K7',
        title: 'PSS of an idle sandbox with its stream: shim, pause, sbxd and relay',
        unit: 'MiB',
        series: [mine, dockers],
        verdicts: [atMost('beside Docker', p50(mine), p50(dockers), Number.POSITIVE_INFINITY)],
      },
    ]
  })
}

/** The shim of the sandbox whose cgroups have `mark` in their path, and all that it started. */
function pssOfSandbox(mark: string): number {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const inside = all.filter((pid) => read(pid, 'cgroup').includes(mark))
  const shims = new Set(inside.map(parentOf).filter((pid) => read(pid, 'comm').startsWith('containerd-shim')))
  if (shims.size !== 1) throw new Error(`${shims.size} shims of ${mark}`)
  return [...shims, ...all.filter((pid) => shims.has(parentOf(pid)))].reduce(
    (sum, pid) => sum + pssMiB(Number(pid)),
    0,
  )
}

const parentOf = (pid: string): string => /^PPid:\s+(\d+)/m.exec(read(pid, 'status'))?.[1] ?? ''

function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return '' // it has ended
  }
}

export function apiServerUnderLoad({ deployed }: ClusterContext): Promise<Result[]> {
  return deployed(async (fixture) => {
    const access = { namespace: fixture.namespace, kubeconfig: testCluster().kubeconfig, environment: {} }
    const api = createApi(await readAccess(access))
    // The rate of a deployment that sets none.
    const backend = await fixture.another({ streamRate: 8_000_000 })
    const sandboxes = fixture.controller({ backend })
    const open = await Promise.all(people(PRINTING).map((person) => sandboxes.acquire(person)))
    const gets = async (name: string): Promise<Series> => {
      const once = async (): Promise<void> => void (await api.get(PODS, open[0]?.id ?? ''))
      const [series] = await inTurns([{ name, once }], GETS, 10)
      return series
    }
    const quiet = await gets('quiet')
    const commands = await Promise.all(
      open.map((sandbox) => sandbox.run({ id: newId(), command: 'yes', autoAcknowledge: true })),
    )
    const drained = commands.map(async ({ output }) => {
      let bytes = 0
      for await (const { data } of output) bytes += data.length
      return bytes
    })
    const from = performance.now()
    const loaded = await gets(`${PRINTING} sandboxes print without end`)
    const seconds = (performance.now() - from) / 1_000
    await Promise.all(commands.map((command) => command.cancel(0)))
    const printed = (await Promise.all(drained)).reduce((sum, bytes) => sum + bytes, 0)
    api.close()
    return [
      {
        goal: 'K8',
        title: `a get at the API server while they print ${Math.round(printed / seconds / 1e6)} MB/s together`,
        series: [
          quiet,
          loaded,
          seriesOf('quiet: p95', quantile(quiet, 0.95)),
          seriesOf('they print: p95', quantile(loaded, 0.95)),
        ],
        verdicts: [
          atMost('p95 beside quiet', quantile(loaded, 0.95), quantile(quiet, 0.95), Number.POSITIVE_INFINITY),
        ],
      },
    ]
  })
}
