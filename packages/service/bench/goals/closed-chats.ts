/** V11: what the agent keeps of chats that were used and closed. Memory with garbage: nothing is collected on demand. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, promptIn } from '../context.ts'
import { SOCKETS_PER_USER, openDeployment } from '../deployment.ts'

/** A user may send 60 prompts a minute. */
const CHATS_PER_USER = 50
const USERS = 28
const CHATS = USERS * CHATS_PER_USER
const REST_MS = 60_000

/** In a deployment of its own: other goals leave memory too. */
export async function closedChats({ baseUrl }: BenchContext): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const deployment = await openDeployment(baseUrl, { sockets: USERS * SOCKETS_PER_USER }, stack)
  await deployment.start()
  const mebibytes = (): number => deployment.resident().agent / 2 ** 20
  const before = mebibytes()
  await Promise.all(
    Array.from({ length: USERS }, async (_, user) => {
      const person = deployment.personOf(user * SOCKETS_PER_USER)
      for (let chat = 0; chat < CHATS_PER_USER; chat++)
        await promptIn(deployment, person, 'stream 200 5', () => undefined)
    }),
  )
  const used = mebibytes()
  await sleep(REST_MS)
  const after = mebibytes()
  return [
    {
      goal: 'V11',
      title: `resident memory of the agent before and after ${CHATS} chats, each with a prompt and closed`,
      unit: 'MiB',
      series: [
        seriesOf('before', before),
        seriesOf('at once after them', used),
        seriesOf('a minute later', after),
      ],
      verdicts: [below('a minute later: ≤ 300 MiB', after, 300, 'MiB')],
    },
  ]
}
