/**
 * V7: what a token of a chat that many people watch costs for each of them, and how soon a share that was revoked is silent.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { type Series, inTurns, p50, p99, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, atMost, below } from '../../../../test/bench/report.ts'
import { type BenchContext, openChat, openRelay, promptIn } from '../context.ts'
import { cpuOf } from '../deployment.ts'

const WATCHERS = 100
const TOKENS = 100
const PAUSE_MS = 50
const ROUNDS = 3
/** After a share was revoked. */
const LISTENED_MS = 500

export async function watchers(context: BenchContext): Promise<Result[]> {
  const { deployment, seeded, relay, many } = context
  const count = Math.min(WATCHERS, many)
  const chat = seeded.small[0] ?? ''
  const owner = deployment.personOf(0)
  const shares = new Map<string, string>()
  for (let reader = 0; reader < count; reader++) {
    const { id } = deployment.personOf(reader)
    if (id === owner.id || shares.has(id)) continue
    shares.set(id, await share(context, chat, id))
  }
  const mine: WebSocket[] = []
  const theirs: WebSocket[] = []
  for (let reader = 0; reader < count; reader++) {
    mine.push(await openChat(deployment, deployment.personOf(reader), chat))
    theirs.push(await watchRelay(relay.origin))
  }
  const stream = `stream ${TOKENS} ${PAUSE_MS}`
  const series = await inTurns(
    [
      {
        name: 'Sandlot',
        once: () =>
          perToken(
            count,
            mine,
            () => {
              const { service, agent } = deployment.cpu()
              return service + agent
            },
            () => promptIn(deployment, owner, stream, () => undefined, chat),
          ),
      },
      {
        name: 'a bare ws relay',
        once: () =>
          perToken(
            count,
            theirs,
            () => cpuOf(relay.pid),
            async () => {
              const socket = await openRelay(relay.origin)
              socket.send(stream)
              await once(socket, 'close')
            },
          ),
      },
    ],
    ROUNDS,
    1,
  )
  const silence = await silences(context, chat, shares)
  for (const socket of [...mine, ...theirs]) socket.close()
  const [sandlot, bare] = series
  return [
    {
      goal: 'V7',
      title: `a chat that ${count} sockets watch, ${1_000 / PAUSE_MS} tokens a second: processor time for each token and reader`,
      unit: 'µs',
      series,
      verdicts: [atMost('p50 ≤ 4 × a bare ws relay', p50(sandlot), p50(bare), 4)],
    },
    {
      goal: 'V7',
      title: 'a share is revoked: from the request to the last event that its person gets',
      series: [silence],
      verdicts: [below('p99 ≤ 100 ms', p99(silence), 100, 'ms')],
    },
  ]
}

/** Microseconds. Throws when a reader did not get everything. */
async function perToken(
  count: number,
  readers: readonly WebSocket[],
  cpu: () => number,
  play: () => Promise<unknown>,
): Promise<number> {
  // Work left by earlier rounds is not this one's.
  await sleep(500)
  let arrived = 0
  const onMessage = (data: Buffer): void => {
    arrived += tokensIn(data.toString())
  }
  for (const reader of readers) reader.on('message', onMessage)
  const before = cpu()
  await play()
  await sleep(300)
  const spent = cpu() - before
  for (const reader of readers) reader.off('message', onMessage)
  if (arrived < count * TOKENS) throw new Error(`only ${arrived} of ${count * TOKENS} tokens arrived`)
  return (spent * 1_000) / (count * TOKENS)
}

/** A token is a time with three digits behind the point, and a blank. */
function tokensIn(text: string): number {
  return text.match(/\d\.\d{3} /g)?.length ?? 0
}

async function watchRelay(origin: string): Promise<WebSocket> {
  const socket = await openRelay(origin)
  socket.send('watch')
  return socket
}

async function share({ deployment }: BenchContext, chat: string, userId: string): Promise<string> {
  const answer = await deployment.post(`/api/sessions/${chat}/shares`, {
    kind: 'person',
    targetId: userId,
    access: 'watch',
  })
  if (!answer.ok) throw new Error(`share: ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { id: string }).id
}

/** Silences of each person with a share, while tokens stream. */
async function silences(
  { deployment }: BenchContext,
  chat: string,
  shares: ReadonlyMap<string, string>,
): Promise<Series> {
  const series = seriesOf('Sandlot')
  const owner = deployment.personOf(0)
  const playing = promptIn(deployment, owner, `stream ${TOKENS * 3} 20`, () => undefined, chat)
  await sleep(300)
  for (let reader = 0; series.values.length < Math.min(5, shares.size); reader++) {
    const person = deployment.personOf(reader)
    const id = shares.get(person.id)
    if (id === undefined || deployment.personOf(reader - 1).id === person.id) continue
    const socket = await openChat(deployment, person, chat)
    await once(socket, 'message')
    let last = 0
    socket.on('message', (data: Buffer) => {
      if (data.toString().startsWith('{"type":"ai_chat_event')) last = performance.now()
    })
    const asked = performance.now()
    const answer = await deployment.delete(`/api/sessions/${chat}/shares/${id}`)
    if (!answer.ok) throw new Error(`revoke: ${answer.status}`)
    await sleep(LISTENED_MS)
    series.values.push(Math.max(0, last - asked))
    socket.close()
  }
  await playing
  return series
}
