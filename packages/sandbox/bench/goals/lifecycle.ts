/**
 * G11, G12, G16: a person's first command, the waking of a sandbox that was idle, and very many at
 * once.
 */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { type BenchContext, runToEnd } from '../context.ts'
import { dockerRun } from '../docker-run.ts'
import { inTurns, p50, seriesOf } from '../../../../test/bench/measure.ts'
import { atMost, below, type Result } from '../../../../test/bench/report.ts'
import { dockerodeExec, SH } from './calls.ts'

const FIRST_SAMPLES = 30
const WAKE_SAMPLES = 30
const SEQUENTIAL = 20

export async function firstCommand({ deployment }: BenchContext): Promise<Result[]> {
  const fixture = await deployment()
  // After a claim the pool leaves the engine to that user for 250 ms, as it does by default.
  const sandboxes = fixture.controller({ pool: { size: 3, everyMs: 250, delayMs: 0 } })
  await sandboxes.maintain()
  const { id } = await sandboxes.acquire('claimed')
  let user = 0
  let names = 0
  const series = await inTurns(
    [
      {
        name: 'Sandlot: pool hit, then sh -c true',
        async once() {
          await sandboxes.poolFilled()
          const from = performance.now()
          const sandbox = await sandboxes.acquire(`first-${user++}`)
          await runToEnd(sandbox, { command: SH })
          const took = performance.now() - from
          // Before the next way is measured: the slot that takes this one's place is there too.
          await sandboxes.poolFilled()
          await sandboxes.stop(`first-${user - 1}`)
          return took
        },
      },
      { name: 'docker run --rm, same image, flags and program', once: dockerRun },
      {
        name: 'of ours, the engine alone: a rename',
        once: () => fixture.backend.claim(id, { tag: 'a'.repeat(16), generation: 2 + names++ }),
      },
    ],
    FIRST_SAMPLES,
    2,
  )
  const [ours, theirs] = series
  return [
    {
      goal: 'G11',
      title: 'a person’s first command, a slot in the pool',
      series,
      verdicts: [
        {
          ...atMost('≤ 1/30 of docker run', p50(ours), p50(theirs), 1 / 30),
          obstacle:
            'The container is renamed before the first command, so that its owner can be found without the ledger. The rename is the engine’s own time.',
        },
        below('p50 ≤ 15 ms', p50(ours), 15, 'ms'),
      ],
    },
  ]
}

export async function wake({ deployment, docker }: BenchContext): Promise<Result[]> {
  const fixture = await deployment()
  const sandboxes = fixture.controller({ idle: { pauseAfterMs: 100 } })
  const { id } = await sandboxes.acquire('sleeper')
  const container = docker.getContainer((await sandboxes.acquire('stopped')).id)
  await sandboxes.stop('stopped')
  await sandboxes.maintain()
  const series = await inTurns(
    [
      {
        name: 'Sandlot: paused, then true',
        async once() {
          while ((await fixture.backend.inventory.inspect(id))?.state !== 'paused') await sleep(50)
          const from = performance.now()
          await runToEnd(await sandboxes.acquire('sleeper'), { command: SH })
          return performance.now() - from
        },
      },
      {
        name: 'dockerode start, then exec',
        async once() {
          const from = performance.now()
          await container.start()
          await dockerodeExec(container, SH)
          const took = performance.now() - from
          await container.stop()
          return took
        },
      },
    ],
    WAKE_SAMPLES,
    2,
  )
  const [ours, theirs] = series
  return [
    {
      goal: 'G12',
      title: 'waking a paused sandbox for a command',
      series,
      verdicts: [atMost('≤ 1/5 of start and exec', p50(ours), p50(theirs), 1 / 5)],
    },
  ]
}

export async function allAtOnce({ deployment, many }: BenchContext): Promise<Result[]> {
  const fixture = await deployment()
  const sandboxes = fixture.controller()
  const users = Array.from({ length: many }, (_, user) => `user-${user}`)
  let errors = 0
  const from = performance.now()
  await Promise.all(users.map((user) => sandboxes.acquire(user).catch(() => errors++)))
  const created = performance.now() - from
  const runFrom = performance.now()
  await Promise.all(
    users.map(async (user) => runToEnd(await sandboxes.acquire(user), { command: SH }).catch(() => errors++)),
  )
  const ran = performance.now() - runFrom
  const sequentialFrom = performance.now()
  for (let each = 0; each < SEQUENTIAL; each++) await dockerRun()
  const sequential = ((performance.now() - sequentialFrom) / SEQUENTIAL) * many
  await promisify(execFile)('docker', ['rm', '-f', ...(await fixture.containers())])
  return [
    {
      goal: 'G16',
      title: `${many} sandboxes made at once, then one command in each at once`,
      series: [
        seriesOf('Sandlot: all made', created),
        seriesOf('Sandlot: one command in each', ran),
        seriesOf(`docker run in turn (${SEQUENTIAL} measured, times ${many / SEQUENTIAL})`, sequential),
      ],
      verdicts: [
        { text: 'errors: none', figure: String(errors), reached: errors === 0 },
        atMost('≤ 0.6 of docker run in turn', created + ran, sequential, 0.6),
      ],
    },
  ]
}
