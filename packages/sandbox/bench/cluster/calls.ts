/** K1 to K3: one command, and the first command of a person. */
import { inTurns, p50, p99, type Way } from '../../../../test/bench/measure.ts'
import { atMost, below, type Result } from '../../../../test/bench/report.ts'
import { ALONE, type SharedEngine } from '../../src/controller/shared-engine.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { runToEnd } from '../context.ts'
import { SH } from '../goals/calls.ts'
import type { ClusterContext } from './context.ts'

const FIRST_SAMPLES = 10
const POOL = { size: 3, everyMs: 250, delayMs: 0 }

const first = async (sandboxes: Sandboxes, person: string): Promise<void> =>
  void (await runToEnd(await sandboxes.acquire(person), { command: SH }))

export function oneCall({ samples, deployed }: ClusterContext): Promise<Result[]> {
  return deployed(async (fixture, docker) => {
    const [ours, onDocker] = [fixture.controller(), docker.controller()]
    const { id } = await ours.acquire('bench')
    const exec = ['exec', id, '--container', 'sbxd', '--', ...SH]
    const series = await inTurns(
      [
        { name: 'Sandlot: acquire, run, exit', once: () => first(ours, 'bench') },
        { name: 'Sandlot on Docker', once: () => first(onDocker, 'bench') },
        { name: 'kubectl exec', once: async () => void (await fixture.kubectl(...exec)) },
      ],
      samples,
      Math.min(20, samples),
    )
    const [mine, dockers, kubectl] = series
    return [
      {
        goal: 'K1',
        title: 'one `sh -c true`, the stream warm',
        series,
        verdicts: [
          atMost('p50 ≤ 1/20 of kubectl exec', p50(mine), p50(kubectl), 1 / 20),
          atMost('p50 ≤ 1.5 × that on Docker', p50(mine), p50(dockers), 1.5),
          atMost('p99 ≤ 1/20 of kubectl exec', p99(mine), p99(kubectl), 1 / 20),
        ],
      },
    ]
  })
}

export function warmClaim({ samples, deployed }: ClusterContext): Promise<Result[]> {
  return deployed(async (fixture, docker) => {
    const holder = fixture.controller({ pool: POOL, share: shareOf('a') })
    const other = fixture.controller({
      pool: POOL,
      share: shareOf('b'),
      // With caches of its own, as in another process.
      backend: await fixture.another(),
    })
    const onDocker = docker.controller({ pool: POOL })
    await Promise.all([holder.maintain(), other.maintain(), onDocker.maintain()])
    const claim = (name: string, by: Sandboxes, leader: Sandboxes, prefix: string): Way => {
      let person = 0
      return {
        name,
        async once() {
          await leader.poolFilled()
          const one = `${prefix}-${person++}`
          const from = performance.now()
          await first(by, one)
          const took = performance.now() - from
          // Nothing of it is left to the next way.
          await leader.poolFilled()
          await by.stop(one)
          return took
        },
      }
    }
    const series = await inTurns(
      [
        claim('Sandlot: claim and command by the agent that holds the stream', holder, holder, 'a'),
        claim('by another agent', other, holder, 'b'),
        claim('on Docker, by the agent that holds the stream', onDocker, onDocker, 'a'),
      ],
      Math.min(FIRST_SAMPLES, samples),
      1,
    )
    const [mine, others, dockers] = series
    return [
      {
        goal: 'K2',
        title: 'a person’s first command, a slot in the pool',
        series,
        verdicts: [
          below('holds the stream: p50 ≤ 100 ms', p50(mine), 100, 'ms'),
          below('another: p50 ≤ 400 ms', p50(others), 400, 'ms'),
          atMost('holds the stream, beside Docker', p50(mine), p50(dockers), Number.POSITIVE_INFINITY),
        ],
      },
    ]
  })
}

/** People whose names begin with the agent’s own are its own; `a` leads. */
function shareOf(agent: 'a' | 'b'): SharedEngine {
  const owns = (person: string): boolean => person.startsWith(agent)
  return {
    ...ALONE,
    owns,
    leads: () => agent === 'a',
    claim: async (person) => owns(person),
    takeOver: async (all) => new Set(all.filter(owns)),
    isElsewhere: async (person) => (person === undefined ? agent !== 'a' : !owns(person)),
  }
}

export function coldStart({ samples, deployed }: ClusterContext): Promise<Result[]> {
  return deployed(async (fixture, docker) => {
    const [ours, onDocker] = [fixture.controller(), docker.controller()]
    const start = (name: string, sandboxes: Sandboxes): Way => {
      let person = 0
      return {
        name,
        async once() {
          const from = performance.now()
          await first(sandboxes, `cold-${person++}`)
          const took = performance.now() - from
          await sandboxes.stop(`cold-${person - 1}`)
          return took
        },
      }
    }
    const wake: Way = {
      name: 'Sandlot: the same after a stop, its volume bound',
      async once() {
        const from = performance.now()
        await first(ours, 'returns')
        const took = performance.now() - from
        await ours.stop('returns')
        return took
      },
    }
    const series = await inTurns(
      [start('Sandlot: volume, Pod, stream, command', ours), wake, start('Sandlot on Docker', onDocker)],
      Math.min(FIRST_SAMPLES, samples),
      1,
    )
    const [mine, woken, dockers] = series
    return [
      {
        goal: 'K3',
        title: 'a person’s first command without a pool, the image on the node',
        series,
        verdicts: [
          below('p50 ≤ 2,000 ms', p50(mine), 2_000, 'ms'),
          below('after a stop: p50 ≤ 2,000 ms', p50(woken), 2_000, 'ms'),
          atMost('beside Docker', p50(mine), p50(dockers), Number.POSITIVE_INFINITY),
        ],
      },
    ]
  })
}
