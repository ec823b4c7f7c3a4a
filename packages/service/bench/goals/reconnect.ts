/** V3: a reader comes back to a chat of 10,000 events, with nothing of it; and 20 of them at once. */
import { inTurns, p50, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, EVENTS, openChat } from '../context.ts'

const READERS = 20
const ROUNDS = 10

export async function reconnect(context: BenchContext): Promise<Result[]> {
  return [await oneReader(context), await manyReaders(context)]
}

async function oneReader({ deployment, seeded, samples }: BenchContext): Promise<Result> {
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
  return {
    goal: 'V3',
    title: `reconnect to a chat of ${EVENTS} events: from the connection to “caught up”`,
    series,
    verdicts: [below('p50 ≤ 100 ms', p50(mine), 100, 'ms')],
  }
}

async function manyReaders({ deployment, seeded }: BenchContext): Promise<Result> {
  const each = seriesOf('each has caught up')
  const all = seriesOf('all have caught up')
  const service = seriesOf('the longest that the service’s event loop was held')
  const agent = seriesOf('the longest that the agent’s was')
  for (let round = 0; round < ROUNDS; round++) {
    await deployment.loopDelays()
    const from = performance.now()
    const sockets = await Promise.all(
      Array.from({ length: READERS }, async () => {
        const socket = await openChat(deployment, deployment.personOf(0), seeded.long)
        each.values.push(performance.now() - from)
        return socket
      }),
    )
    all.values.push(performance.now() - from)
    const held = await deployment.loopDelays()
    service.values.push(held.service)
    agent.values.push(held.agent)
    for (const socket of sockets) socket.close()
  }
  return {
    goal: 'V3',
    title: `${READERS} readers reconnect at once to a chat of ${EVENTS} events`,
    series: [each, all, service, agent],
    verdicts: [],
  }
}
