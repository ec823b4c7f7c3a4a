/** V4: what a socket with a chat open takes of memory while nothing happens, in both processes. */
import { seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import type { WebSocket } from 'ws'
import { type BenchContext, IDLE_SOCKETS, openChat } from '../context.ts'

/** The first ones also grow what the processes keep for all. */
const FIRST = 40

export async function idle({ deployment, seeded }: BenchContext): Promise<Result[]> {
  const sockets: WebSocket[] = []
  const open = async (upTo: number): Promise<number> => {
    while (sockets.length < upTo)
      sockets.push(
        await openChat(deployment, deployment.personOf(sockets.length), seeded.small[sockets.length] ?? ''),
      )
    return deployment.memory()
  }
  const before = await open(FIRST)
  const after = await open(IDLE_SOCKETS)
  for (const socket of sockets) socket.close()
  const each = (after - before) / (IDLE_SOCKETS - FIRST) / 1024
  return [
    {
      goal: 'V4',
      title: `an idle socket with a chat open, of ${IDLE_SOCKETS}: memory of both processes`,
      unit: 'KiB',
      series: [seriesOf('Sandlot', each)],
      verdicts: [below('≤ 60 KiB', each, 60, 'KiB')],
    },
  ]
}
