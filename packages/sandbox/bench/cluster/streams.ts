/** K4, K5: many streams opened again, by another agent and after an API server’s death. */
import { p50, p99, seriesOf } from '../../../../test/bench/measure.ts'
import { atMost, below, type Result } from '../../../../test/bench/report.ts'
import { noOwnCluster, ownCluster } from '../../../../test/cluster/cluster.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { bootOf, restartApiServer } from '../../test/support/api-server.ts'
import { type ClusterContext, people } from './context.ts'

const STREAMS = 30
const ROUNDS = 5
/** More at once would only wait for each other on two cores. */
const STARTS = 4
const DEATHS = 3

export function openedAnew({ deployed }: ClusterContext): Promise<Result[]> {
  return deployed(async (fixture, docker) => {
    const mine = seriesOf('Sandlot')
    const dockers = seriesOf('Sandlot on Docker')
    const next = async () => fixture.controller({ backend: await fixture.another(), startsAtOnce: STARTS })
    let [ours, onDocker] = [await next(), docker.controller()]
    await Promise.all([acquireAll(ours), acquireAll(onDocker)])
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all([ours.close(), onDocker.close()])
      ;[ours, onDocker] = [await next(), docker.controller()]
      mine.values.push(await timeOf(() => ours.maintain()))
      dockers.values.push(await timeOf(() => onDocker.maintain()))
      // Fails the goal where one is not connected.
      await Promise.all([acquireAll(ours), acquireAll(onDocker)])
    }
    return [
      {
        goal: 'K4',
        title: `${STREAMS} streams opened by an agent that has started`,
        series: [mine, dockers],
        verdicts: [
          below('p50 ≤ 1,000 ms', p50(mine), 1_000, 'ms'),
          below('p99 ≤ 1,000 ms', p99(mine), 1_000, 'ms'),
          atMost('beside Docker', p50(mine), p50(dockers), Number.POSITIVE_INFINITY),
        ],
      },
    ]
  })
}

export async function afterApiServer({ deployed }: ClusterContext): Promise<Result[]> {
  if (noOwnCluster !== undefined) return []
  return deployed(async (fixture) => {
    const sandboxes = fixture.controller({ startsAtOnce: STARTS })
    await acquireAll(sandboxes)
    await sandboxes.maintain()
    const mine = seriesOf('Sandlot')
    for (let death = 0; death < DEATHS; death++) {
      await restartApiServer(ownCluster())
      mine.values.push(
        await timeOf(() => Promise.all(people(STREAMS).map((person) => bootOf(sandboxes, person)))),
      )
    }
    return [
      {
        goal: 'K5',
        title: `${STREAMS} sandboxes answer, from the first readyz of an API server that was killed`,
        series: [mine],
        verdicts: [below('all ≤ 3,000 ms', p99(mine), 3_000, 'ms')],
      },
    ]
  })
}

async function acquireAll(sandboxes: Sandboxes): Promise<void> {
  await Promise.all(people(STREAMS).map((person) => sandboxes.acquire(person)))
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now()
  await work()
  return performance.now() - from
}
