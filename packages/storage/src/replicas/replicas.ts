/**
 * The ai-agents on one database, and their users. A user belongs to one replica at a time; `epoch`
 * counts the changes of owner and fences off writes of earlier ones. All times are the database's.
 * On SQLite there is one ai-agent, and nothing is stored.
 */
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { changePrint, isFirstPrint } from '../database/counters.ts'
import { dialectOf } from '../database/dialect.ts'
import { changing, wakeListeners } from '../database/changes.ts'
import { StorageError } from '../storage-error.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import {
  type Beat,
  type BeatReport,
  type BeatTimes,
  type Beats,
  type Registered,
  beat,
  clock,
  startBeats,
} from './beats.ts'

/** A replica with an older heartbeat is dead: its users may be claimed. */
export const LIVING_MS = 7_000
/** Rows of dead ones are removed after a day. */
const FORGOTTEN_MS = 86_400_000
/** Claimed like a user by the replica that runs the schedules of the deployment. */
export const SCHEDULES = 'deployment:schedules'
export interface Replica {
  id: string
  /** Its ACP address. */
  url: string
  certificate?: string
  version: string
  draining: boolean
  living: boolean
  /** Number of its users. */
  people: number
}

export interface ReplicaReads {
  /** By id. Empty on SQLite. */
  list(): Promise<Replica[]>
  /** Id of the living replica that owns this user. */
  ownerOf(userId: string): Promise<string | undefined>
  /** Users without a living owner. */
  freeOf(userIds: readonly string[]): Promise<string[]>
  /** Users of this replica. */
  peopleOf(replicaId: string): Promise<string[]>
}

export interface NewReplica {
  id: string
  url: string
  certificate?: string
  version: string
  /** Id of the engine of its sandboxes. Undefined: not known. */
  engine?: string | undefined
}

export interface Claim {
  /** The current owner. */
  replicaId: string
  epoch: number
  /** The previous owner; null: released, or none. */
  before: string | null
}

export interface Unowned {
  /** Users with unfinished prompts. */
  userIds: string[]
  /** True if the schedules of the deployment have no owner. */
  schedules: boolean
  /** Number of replicas that may claim them. */
  replicas: number
}

/** Prints of the deployment's keys, which are the same for all replicas. */
export interface KeyPrints {
  /** See `isFirstPrint`, for any of these. */
  hasKey(name: KeyName, prints: readonly number[]): Promise<boolean>
  /** Replaces the print of the database's key. */
  changeKey(name: KeyName, print: number): Promise<void>
}

type KeyName = 'deployment_keys' | 'sealing_key'

/** Requests to other replicas, also from processes that are none. */
export interface ReplicaRequests {
  /** Notifies other processes of a change without a stored row. */
  announce(what: string): Promise<void>
  /** The replica drains with its next heartbeat. False: it is not alive. */
  askToDrain(id: string): Promise<boolean>
}

/** Writes of one replica, from `register` on. */
export interface ReplicaRows {
  /**
   * Starts this replica, which takes over the users of an earlier one with its id and fences that
   * off. From now on writes with an epoch require that the session's user is claimed. Returns ids
   * of living replicas with an unknown engine. Rejects with `other_engine` if a living one has
   * another engine.
   */
  register(replica: NewReplica): Promise<string[]>
  /** Renews it once. */
  heartbeat(): Promise<Beat>
  /** See `startBeats`. */
  startBeats(times: BeatTimes, since: number, report: (report: BeatReport) => void): Promise<Beats>
  /**
   * Claims this user unless a living replica owns them. Returns the current owner. Undefined: not
   * known, because this replica is dead or draining itself.
   */
  claim(userId: string): Promise<Claim | undefined>
  /** Gives up these users. */
  release(userIds: readonly string[]): Promise<void>
  /** Stops claiming users. */
  drain(): Promise<void>
  /** Gives up all users, and removes its row. */
  unregister(): Promise<void>
  /** Work without a living owner. */
  unowned(): Promise<Unowned>
  /** Marks this user as lost: later writes for them are refused. */
  lose(userId: string): void
}

export type StoredReplicas = ReplicaReads & ReplicaRequests & ReplicaRows & KeyPrints

/** The users that this replica may write for. Undefined epochs belong to others. */
export class Fence {
  #replica: Registered | undefined
  readonly #epochs = new Map<string, number>()

  /** Undefined: there is one process, which owns everything. */
  get replica(): Registered | undefined {
    return this.#replica
  }

  begin(replica: Registered): void {
    this.#replica = replica
    this.#epochs.clear()
  }

  claimed(userId: string, epoch: number): void {
    this.#epochs.set(userId, epoch)
  }

  lost(userId: string): void {
    this.#epochs.delete(userId)
  }

  /** True if `epoch`, read by `ownerEpoch`, permits writes for this user. */
  admits(userId: string, epoch: number | null | undefined): boolean {
    if (this.#replica === undefined) return true
    return epoch != null && this.#epochs.get(userId) === epoch
  }

  /**
   * The epoch of our claim on the session's user in a statement, null without a claim. The row is
   * locked until the transaction ends, so that a claim comes before or after it.
   */
  ownerEpoch(lock: 'locked' | 'read'): RawBuilder<number | null> {
    if (this.#replica === undefined) return sql<null>`null`
    return sql`(select owners.epoch from owners
      where owners.user_id = sessions.user_id and owners.replica_id = ${this.#replica.id}
      ${lock === 'locked' ? sql`for share` : sql``})`
  }
}

export function replicaReads(db: Kysely<SessionsSchema>): ReplicaReads {
  const now = clock(db)
  return {
    list: () => listReplicas(db),

    async ownerOf(userId) {
      const row = await db
        .selectFrom('owners')
        .innerJoin('replicas', 'replicas.id', 'owners.replica_id')
        .select('replicas.id')
        .where('owners.user_id', '=', userId)
        .where(living(now), '=', 1)
        .executeTakeFirst()
      return row?.id
    },

    async freeOf(userIds) {
      const rows = await db
        .selectFrom('owners')
        .innerJoin('replicas', 'replicas.id', 'owners.replica_id')
        .select('owners.user_id')
        .where('owners.user_id', 'in', [...userIds])
        .where(living(now), '=', 1)
        .execute()
      const owned = new Set(rows.map(({ user_id }) => user_id))
      return userIds.filter((userId) => !owned.has(userId))
    },

    async peopleOf(replicaId) {
      const rows = await db
        .selectFrom('owners')
        .select('user_id')
        .where('replica_id', '=', replicaId)
        .where('user_id', '!=', SCHEDULES)
        .orderBy('user_id')
        .execute()
      return rows.map(({ user_id }) => user_id)
    },
  }
}

/** `url`: of the database. */
export function storedReplicas(db: Kysely<SessionsSchema>, fence: Fence, url: string): StoredReplicas {
  const release = async (userIds: readonly string[]): Promise<void> => {
    for (const userId of userIds) fence.lost(userId)
    await db
      .updateTable('owners')
      .set({ replica_id: null })
      .where('replica_id', '=', registeredReplica(fence).id)
      .where('user_id', 'in', [...userIds])
      .execute()
    await wakeListeners(db)
  }
  return {
    ...replicaReads(db),

    hasKey: (name, prints) => isFirstPrint(db, name, ...prints),
    changeKey: (name, print) => changePrint(db, name, print),

    announce: (what) => changing(db, { what }, async () => undefined),

    register: (...args) => register(db, fence, ...args),

    heartbeat: () => beat(db, registeredReplica(fence)),

    startBeats: async (times, ...args) =>
      startBeats({ url, replica: registeredReplica(fence), times }, ...args),

    claim: (...args) => claim(db, fence, ...args),

    release,

    async drain() {
      const { id } = registeredReplica(fence)
      await db.updateTable('replicas').set({ draining: 1 }).where('id', '=', id).execute()
      await wakeListeners(db)
    },

    askToDrain: (...args) => askToDrain(db, ...args),
    unregister: () => unregister(db, fence),
    unowned: () => findUnowned(db),
    lose: (userId) => fence.lost(userId),
  }
}

async function listReplicas(db: Kysely<SessionsSchema>): ReturnType<ReplicaReads['list']> {
  const now = clock(db)
  const rows = await db
    .selectFrom('replicas')
    .selectAll('replicas')
    .select(living(now).as('living'))
    .select((query) =>
      query
        .selectFrom('owners')
        .select((count) => count.fn.countAll<number>().as('people'))
        .whereRef('owners.replica_id', '=', 'replicas.id')
        .where('owners.user_id', '!=', SCHEDULES)
        .as('people'),
    )
    .orderBy('id')
    .execute()
  return rows.map(({ id, url, certificate, version, draining, ...row }) => ({
    id,
    url,
    ...(certificate === null ? {} : { certificate }),
    version,
    draining: draining === 1,
    living: row.living === 1,
    people: row.people ?? 0,
  }))
}

function registeredReplica({ replica }: Fence): Registered {
  if (replica === undefined) throw new TypeError('No replica was registered.')
  return replica
}

async function register(
  db: Kysely<SessionsSchema>,
  fence: Fence,
  { id, url, version, ...replica }: NewReplica,
): Promise<string[]> {
  const certificate = replica.certificate ?? null
  const engine = replica.engine ?? null
  const now = clock(db)
  const { startedAt, unknown } = await db.transaction().execute(async (trx) => {
    await sql`delete from replicas where heartbeat_at < ${now} - ${sql.lit(FORGOTTEN_MS)}`.execute(trx)
    const others = await othersLiving(trx, id, now)
    if (engine !== null) refuseOtherEngine(id, engine, others)
    const made = await trx
      .insertInto('replicas')
      .values({ id, url, certificate, version, started_at: now, heartbeat_at: now, draining: 0, engine })
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet({
          url,
          certificate,
          version,
          engine,
          draining: 0,
          heartbeat_at: now,
          started_at: sql<number>`case when replicas.started_at < ${now} then ${now}
            else replicas.started_at + 1 end`,
        }),
      )
      .returning('started_at')
      .executeTakeFirstOrThrow()
    // Fences off an earlier replica with this id.
    await trx
      .updateTable('owners')
      .set((query) => ({ epoch: query('epoch', '+', 1) }))
      .where('replica_id', '=', id)
      .execute()
    const unknown = others.filter((other) => other.engine === null).map((other) => other.id)
    return { startedAt: made.started_at, unknown }
  })
  fence.begin({ id, startedAt })
  await wakeListeners(db)
  return unknown
}

async function claim(
  db: Kysely<SessionsSchema>,
  fence: Fence,
  ...[userId]: Parameters<ReplicaRows['claim']>
): ReturnType<ReplicaRows['claim']> {
  const now = clock(db)
  const { id, startedAt } = registeredReplica(fence)
  const isFree = sql`(held.replica_id is null or held.replica_id <> ${id} and not exists (
    select 1 from replicas where replicas.id = held.replica_id and ${isLiving(now)}))`
  const { rows } = await sql<{ replica_id: string; epoch: number; before: string | null }>`
    insert into owners as held (user_id, replica_id, epoch)
    select cast(${userId} as text), replicas.id, 1 from replicas
    where id = ${id} and started_at = ${startedAt} and draining = 0 and ${isLiving(now)}
    on conflict (user_id) do update set
      replica_id = case when ${isFree} then excluded.replica_id else held.replica_id end,
      epoch = case when ${isFree} then held.epoch + 1 else held.epoch end
    returning replica_id, epoch, (
      select earlier.replica_id from owners as earlier where earlier.user_id = held.user_id
    ) as before`.execute(db)
  const [row] = rows
  if (row === undefined) return undefined
  const { replica_id: replicaId, epoch, before } = row
  if (replicaId === id) fence.claimed(userId, epoch)
  return { replicaId, epoch, before }
}

async function unregister(db: Kysely<SessionsSchema>, fence: Fence): ReturnType<ReplicaRows['unregister']> {
  const { id, startedAt } = registeredReplica(fence)
  await db.transaction().execute(async (trx) => {
    const gone = await trx
      .deleteFrom('replicas')
      .where('id', '=', id)
      .where('started_at', '=', startedAt)
      .returning('id')
      .executeTakeFirst()
    if (gone === undefined) return
    await trx.updateTable('owners').set({ replica_id: null }).where('replica_id', '=', id).execute()
  })
  await wakeListeners(db)
}

async function findUnowned(db: Kysely<SessionsSchema>): ReturnType<ReplicaRows['unowned']> {
  const now = clock(db)
  const { rows } = await sql<{ user_id: string; replicas: number }>`
    select wanted.user_id, (
      select count(*) from replicas where draining = 0 and ${isLiving(now)}
    ) as replicas
    from (
      select distinct user_id from sessions where running_prompt_id is not null
      union select ${SCHEDULES}
    ) as wanted where not exists (
      select 1 from owners join replicas on replicas.id = owners.replica_id
      where owners.user_id = wanted.user_id and ${isLiving(now)}
    )`.execute(db)
  const all = rows.map(({ user_id }) => user_id)
  const userIds = all.filter((userId) => userId !== SCHEDULES)
  return { userIds, schedules: all.length > userIds.length, replicas: rows[0]?.replicas ?? 0 }
}

async function askToDrain(
  db: Kysely<SessionsSchema>,
  ...[id]: Parameters<ReplicaRequests['askToDrain']>
): ReturnType<ReplicaRequests['askToDrain']> {
  const now = clock(db)
  const row = await db
    .updateTable('replicas')
    .set({ draining: 1 })
    .where('id', '=', id)
    .where(living(now), '=', 1)
    .returning('id')
    .executeTakeFirst()
  await wakeListeners(db)
  return row !== undefined
}

type OtherReplica = Pick<SessionsSchema['replicas'], 'id' | 'engine'>

/** The second of two concurrent registrations sees the first. */
async function othersLiving(
  trx: Kysely<SessionsSchema>,
  id: string,
  now: RawBuilder<number>,
): Promise<OtherReplica[]> {
  if (dialectOf(trx) === 'postgres')
    await sql`select pg_advisory_xact_lock(hashtext('sandlot replicas'))`.execute(trx)
  return trx
    .selectFrom('replicas')
    .select(['id', 'engine'])
    .where('id', '!=', id)
    .where(isLiving(now))
    .orderBy('id')
    .execute()
}

function refuseOtherEngine(id: string, engine: string, others: readonly OtherReplica[]): void {
  const other = others.find((each) => each.engine !== null && each.engine !== engine)
  if (other === undefined) return
  throw new StorageError(
    'other_engine',
    `Agent ${other.id} on this database uses the Docker engine ${other.engine}, and agent ${id} the engine ${engine}. People's files are on one engine only. Set DOCKER_HOST of all agents to the same engine, or end ${other.id} first.`,
  )
}

function isLiving(now: RawBuilder<number>): RawBuilder<boolean> {
  return sql<boolean>`replicas.heartbeat_at >= ${now} - ${sql.lit(LIVING_MS)}`
}

function living(now: RawBuilder<number>): RawBuilder<number> {
  return sql<number>`case when ${isLiving(now)} then 1 else 0 end`
}

export async function addReplicaEngine({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('replicas').addColumn('engine', 'text').execute()
}

export async function addReplicas(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('replicas')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('certificate', 'text')
    .addColumn('version', 'text', (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('heartbeat_at', 'bigint', (column) => column.notNull())
    .addColumn('draining', 'integer', (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('owners')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('replica_id', 'text')
    .addColumn('epoch', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('owners_by_replica').on('owners').column('replica_id').execute()
}
