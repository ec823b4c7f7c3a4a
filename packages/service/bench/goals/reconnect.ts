/** V3: a reader comes back to a chat of 10,000 events, with nothing of it. */
import { inTurns, p50 } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, EVENTS, openChat } from '../context.ts'

export async function reconnect({ deployment, seeded, samples }: BenchContext): Promise<Result[]> {
  const person = deployment.personOf(0)
  const series = await inTurns(
    [
      {
        name: 'Sandlot',
        once: async () => {
          const from = performance.now()
          const socket = await openChat(deployment, person, seeded.long)
          const took = performance.now() - from
          socket.close()
          return took
        },
      },
    ],
    Math.ceil(samples / 4),
    3,
  )
  const [mine] = series
  return [
    {
      goal: 'V3',
      title: `reconnect to a chat of ${EVENTS} events: from the connection to “caught up”`,
      series,
      verdicts: [below('p50 ≤ 100 ms', p50(mine), 100, 'ms')],
    },
  ]
}
