/** P2: what the way to the browser adds to each token with many streams at once, on files and on PostgreSQL. */
import { p50, p99 } from '../../../../test/bench/measure.ts'
import { type Result, atMost, below } from '../../../../test/bench/report.ts'
import { sandlot } from '../context.ts'
import { openDeployment } from '../deployment.ts'
import type { PostgresContext } from '../postgres.ts'
import { startProgram } from '../../../../test/bench/program.ts'
import { RATE, measureStreams } from './streams.ts'

export async function addedTime({ many, database }: PostgresContext): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const player = stack.use(await startProgram(new URL('../player.ts', import.meta.url)))
  const baseUrl = `${player.origin}/v1`
  const files = await openDeployment(baseUrl, { sockets: many }, stack)
  const postgres = await openDeployment(
    baseUrl,
    { sockets: many, database: await database('streams') },
    stack,
  )
  await Promise.all([files.start(), postgres.start()])
  const { series } = await measureStreams([sandlot('files', files), sandlot('PostgreSQL', postgres)], many)
  const [one, other] = series
  return [
    {
      goal: 'P2',
      title: `${many} streams of ${RATE}: from the provider’s write to the reader`,
      series,
      verdicts: [
        below('files: p99 ≤ 30 ms', p99(one), 30, 'ms'),
        atMost('p50 ≤ 1.5 × that on files', p50(other), p50(one), 1.5),
        below('tokens that did not come: none', other.failures, 0, ''),
      ],
    },
  ]
}
