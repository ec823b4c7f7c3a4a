/** Thread of a replica's heartbeats: with its own connection they wait for no other work. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '@sandlot/shared/base/errors'
import { heartbeatConnection } from '../database/postgres.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { type BeatReport, type BeatsData, beat } from './beats.ts'
import { Lease, bootMs } from './lease.ts'

const { url, replica, times, cells, name } = workerData as BeatsData
const lease = new Lease(times.stale, cells)
const connect = () => heartbeatConnection<SessionsSchema>({ url, schema: 'sessions' }, name)
let connection = connect()
let soon = Promise.withResolvers<void>()

async function send(): Promise<BeatReport> {
  const at = bootMs()
  try {
    const answer = await beat(connection.db, replica)
    if (typeof answer !== 'string') lease.extend(at)
    return { at, beat: answer }
  } catch (error) {
    // It may be cut and never answer.
    void connection.close().catch(() => undefined)
    const failure = messageOf(connection.health.typed(error))
    connection = connect()
    return { failure }
  }
}

parentPort?.on('message', () => soon.resolve())
for (;;) {
  soon = Promise.withResolvers()
  const report = lease.silence() > times.stuck ? undefined : await send()
  if (report !== undefined) parentPort?.postMessage(report)
  const pauseMs = report !== undefined && 'beat' in report ? times.heartbeat : times.retry
  await Promise.race([sleep(pauseMs), soon.promise.then(() => sleep(times.retry))])
}
