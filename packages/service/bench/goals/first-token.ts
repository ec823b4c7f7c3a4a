/** V10: from a message on an open connection to the first token of its answer. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { p50, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, firstToken, openRelay } from '../context.ts'
import { SOCKETS_PER_USER } from '../deployment.ts'

/** After each answer: what its end still has to do is no part of the next one's time. */
const REST_MS = 50

export async function firstTokens({ deployment, relay, samples, many }: BenchContext): Promise<Result[]> {
  const opened = seriesOf('Sandlot, a new chat')
  const written = seriesOf('Sandlot, a new chat: until the provider writes it')
  const next = seriesOf('Sandlot, the next message in it')
  const bare = seriesOf('a bare ws relay')
  // Each person's first chat only warms up.
  for (let round = -Math.ceil(many / SOCKETS_PER_USER); round < samples * 2; round++) {
    const socket = await deployment.socket(deployment.personOf(((round + many) * SOCKETS_PER_USER) % many))
    const inNew = await firstToken(socket)
    await sleep(REST_MS)
    const inIt = await firstToken(socket, inNew.chat)
    socket.close()
    await sleep(REST_MS)
    const relayed = await relayedToken(relay.origin)
    await sleep(REST_MS)
    if (round < 0) continue
    opened.values.push(inNew.first)
    written.values.push(inNew.written)
    next.values.push(inIt.first)
    bare.values.push(relayed)
  }
  return [
    {
      goal: 'V10',
      title: 'from a message on an open connection to the first token of its answer',
      series: [opened, written, next, bare],
      verdicts: [below('a new chat: p50 ≤ that of the relay + 6 ms', p50(opened) - p50(bare), 6, 'ms')],
    },
  ]
}

async function relayedToken(origin: string): Promise<number> {
  const socket = await openRelay(origin)
  const from = performance.now()
  socket.send('stream 1 0')
  await once(socket, 'message')
  return performance.now() - from
}
