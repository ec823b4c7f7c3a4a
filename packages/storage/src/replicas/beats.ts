/** Heartbeats of a replica, and the thread that sends them. */
import { Worker } from 'node:worker_threads'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { dialectOf } from '../database/dialect.ts'
import { PROCESS_NAME } from '../database/postgres.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { Lease } from './lease.ts'

/** One start of a replica. */
export interface Registered {
  id: string
  startedAt: number
}

/**
 * `replaced`: another was registered under its id. `forgotten`: the database has lost it, and it
 * must register again.
 */
export type Beat =
  | { draining: boolean; owned: { userId: string; epoch: number }[] }
  | 'replaced'
  | 'forgotten'

/** Milliseconds. */
export interface BeatTimes {
  heartbeat: number
  /** After a heartbeat that failed. */
  retry: number
  /** Without a confirmed heartbeat for so long it owns no users, before others take them over. */
  stale: number
  /** Without a turn of the main thread for so long no heartbeat is sent. */
  stuck: number
}

/** `at`: when it was sent, in the time of `bootMs`. */
export type BeatReport = { at: number; beat: Beat } | { failure: string }

export interface Beats {
  /** False: other replicas may own its users, now or soon. No query. */
  readonly isFresh: boolean
  /** The next one is sent within `retry`. */
  beatSoon(): void
  /** Ends the lease; no report follows. */
  stop(): Promise<void>
}

interface BeatsOptions {
  url: string
  replica: Registered
  times: BeatTimes
}

/** `name`: of the process, for `pg_stat_activity`. */
export type BeatsData = BeatsOptions & { cells: Lease['cells']; name: string }

const isSource = import.meta.url.endsWith('.ts')
const THREAD = new URL(isSource ? './beats-thread.ts' : './beats-thread.js', import.meta.url)
const TURN_MS = 1_000

/**
 * Starts them, with the lease of the registration sent at `since`. `report` must compare the users
 * at once: an expired lease is renewed after it.
 */
export function startBeats(
  options: BeatsOptions,
  since: number,
  report: (report: BeatReport) => void,
): Beats {
  const lease = new Lease(options.times.stale)
  lease.renew(since)
  lease.turned()
  const turns = setInterval(() => lease.turned(), TURN_MS).unref()
  const workerData: BeatsData = { ...options, cells: lease.cells, name: PROCESS_NAME }
  const execArgv = isSource ? ['--conditions=sandlot-source'] : []
  const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 }
  // Without a listener its error ends the process, which could own no user any more.
  const thread = new Worker(THREAD, { workerData, execArgv, resourceLimits })
  let isStopped = false
  thread.on('message', (sent: BeatReport) => {
    if (isStopped) return
    report(sent)
    if ('beat' in sent && typeof sent.beat !== 'string') lease.renew(sent.at)
  })
  thread.unref()
  return {
    get isFresh() {
      return !isStopped && lease.isValid()
    },
    beatSoon: () => thread.postMessage('soon'),
    async stop() {
      isStopped = true
      clearInterval(turns)
      await thread.terminate()
    },
  }
}

/** Sends one. */
export async function beat(db: Kysely<SessionsSchema>, { id, startedAt }: Registered): Promise<Beat> {
  const { rows } = await sql<{ draining: number; user_id: string | null; epoch: number | null }>`
    with beat as (
      update replicas set heartbeat_at = ${clock(db)}
      where id = ${id} and started_at = ${startedAt} returning id, draining
    )
    select beat.draining, owners.user_id, owners.epoch
    from beat left join owners on owners.replica_id = beat.id`.execute(db)
  const [first] = rows
  if (first === undefined) {
    const other = await db.selectFrom('replicas').select('id').where('id', '=', id).executeTakeFirst()
    return other === undefined ? 'forgotten' : 'replaced'
  }
  const owned = rows.flatMap(({ user_id, epoch }) =>
    user_id === null || epoch === null ? [] : [{ userId: user_id, epoch }],
  )
  return { draining: first.draining === 1, owned }
}

/** Epoch milliseconds, by the database's clock: those of hosts may differ by minutes. */
export function clock(db: Kysely<SessionsSchema>): RawBuilder<number> {
  return dialectOf(db) === 'sqlite'
    ? sql<number>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`
    : sql<number>`cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint)`
}
