/** The sandbox ledger in the sessions database: owners of sandboxes. */
import { SandboxError } from '@sandlot/sandbox/errors'
import type { LedgerSlot, SandboxLedger } from '@sandlot/sandbox/ledger'
import { type Insertable, type Kysely, type Selectable, type Transaction, sql } from 'kysely'
import { dialectOf } from '../database/dialect.ts'
import { StorageError } from '../storage-error.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

/**
 * On PostgreSQL several controllers may share the database, each with its own connections. An
 * SQLite file has one writer.
 */
export function storedLedger(db: Kysely<SessionsSchema>): SandboxLedger {
  return {
    find: (userId) => findSlot(db, userId),

    async add(slot, mostWarm) {
      if (slot.state !== 'warm' || mostWarm === undefined) return addRow(db, slot)
      if (dialectOf(db) === 'sqlite') return addWarm(db, slot, mostWarm)
      await db.transaction().execute(async (trx) => {
        // Two concurrent inserts would not count each other's row.
        await sql`select pg_advisory_xact_lock(hashtext('sandlot warm slots'))`.execute(trx)
        await addWarm(trx, slot, mostWarm)
      })
    },

    async claim(slot, userId) {
      try {
        return await db.transaction().execute((trx) => claimSlot(trx, slot, userId))
      } catch (error) {
        if (error instanceof SandboxError) throw error
        // On PostgreSQL two controllers may each claim a slot for this user at once. The second is
        // refused because a user has one slot; by then the first slot is visible.
        const winner = await findSlot(db, userId)
        if (winner === undefined) throw error
        return winner
      }
    },

    condemn: (...args) => condemnSlot(db, ...args),

    nextGeneration: (...args) => nextGeneration(db, ...args),

    async release(slot) {
      await db.deleteFrom('sandbox_slots').where('slot', '=', slot).execute()
    },

    async list() {
      const rows = await db
        .selectFrom('sandbox_slots')
        .selectAll()
        .orderBy('created_at')
        .orderBy('slot')
        .execute()
      return rows.map(toSlot)
    },

    nextEpoch: (...args) => nextEpoch(db, ...args),
  }
}

async function condemnSlot(
  db: Kysely<SessionsSchema>,
  ...[slot]: Parameters<SandboxLedger['condemn']>
): ReturnType<SandboxLedger['condemn']> {
  await db
    .updateTable('sandbox_slots')
    .set({ state: 'condemned' })
    .where('slot', '=', slot)
    .where('state', '=', 'warm')
    .execute()
  const row = await db.selectFrom('sandbox_slots').select('state').where('slot', '=', slot).executeTakeFirst()
  return row?.state === 'condemned'
}

async function nextGeneration(
  db: Kysely<SessionsSchema>,
  ...[slot, after]: Parameters<SandboxLedger['nextGeneration']>
): ReturnType<SandboxLedger['nextGeneration']> {
  const row = await db
    .updateTable('sandbox_slots')
    .set((query) => ({
      generation: query
        .case()
        .when('generation', '>', after)
        .then(query.ref('generation'))
        .else(sql<number>`cast(${after + 1} as bigint)`)
        .end(),
    }))
    .where('slot', '=', slot)
    .returning('generation')
    .executeTakeFirst()
  if (row === undefined) throw noSlot(slot)
  return Number(row.generation)
}

async function nextEpoch(
  db: Kysely<SessionsSchema>,
  ...[above = 0]: Parameters<SandboxLedger['nextEpoch']>
): ReturnType<SandboxLedger['nextEpoch']> {
  const row = await db
    .insertInto('counters')
    .values({ name: 'controller_epoch', value: Math.max(Date.now(), above + 1) })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((query) => ({
        value: query
          .case()
          .when('counters.value', '>=', query.ref('excluded.value'))
          .then(query('counters.value', '+', 1))
          .else(query.ref('excluded.value'))
          .end(),
      })),
    )
    .returning('value')
    .executeTakeFirstOrThrow()
  return Number(row.value)
}

/** Callers of sandboxes handle only `SandboxError`: an unusable database is an unusable ledger. */
export function ledgerFailure(failure: unknown): unknown {
  if (!(failure instanceof StorageError)) return failure
  return new SandboxError('ledger', `The sandbox ledger cannot be used: ${failure.message}`, {
    cause: failure,
  })
}

async function findSlot(db: Kysely<SessionsSchema>, userId: string): Promise<LedgerSlot | undefined> {
  const row = await db
    .selectFrom('sandbox_slots')
    .selectAll()
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return row === undefined ? undefined : toSlot(row)
}

async function claimSlot(
  trx: Transaction<SessionsSchema>,
  slot: string,
  userId: string,
): Promise<LedgerSlot> {
  const existing = await findSlot(trx, userId)
  if (existing !== undefined) return existing
  const claimed = await trx
    .updateTable('sandbox_slots')
    .set((query) => ({
      state: 'claimed',
      user_id: userId,
      claimed_at: Date.now(),
      generation: query('generation', '+', 1),
    }))
    .where('slot', '=', slot)
    .where('state', '=', 'warm')
    .returningAll()
    .executeTakeFirst()
  if (claimed !== undefined) return toSlot(claimed)
  const row = await trx
    .selectFrom('sandbox_slots')
    .select(['slot', 'user_id'])
    .where('slot', '=', slot)
    .executeTakeFirst()
  if (row === undefined) throw noSlot(slot)
  // Claimed for the same user while waiting for the row.
  const mine = row.user_id === userId ? await findSlot(trx, userId) : undefined
  if (mine !== undefined) return mine
  throw new SandboxError('exists', `Slot ${slot} is not warm: it cannot be claimed.`)
}

async function addRow(db: Kysely<SessionsSchema>, slot: LedgerSlot): Promise<void> {
  const stored = await db
    .insertInto('sandbox_slots')
    .values(toRow(slot))
    .onConflict((conflict) => conflict.doNothing())
    .returning('slot')
    .executeTakeFirst()
  if (stored === undefined) {
    throw new SandboxError(
      'exists',
      `Slot ${slot.slot}, uid ${slot.uid}, volume ${slot.volume} or their user is in the ledger already.`,
    )
  }
}

/**
 * The count and the insert are one statement: two controllers that fill one pool never exceed its
 * size.
 */
async function addWarm(db: Kysely<SessionsSchema>, slot: LedgerSlot, mostWarm: number): Promise<void> {
  const warm = sql<number | string>`(select count(*) from sandbox_slots where state = 'warm')`
  // Explicit types, because PostgreSQL takes a bare parameter of a select for text.
  const { rows } = await sql`
    insert into sandbox_slots (slot, state, uid, volume, generation, created_at)
    select ${slot.slot}, 'warm', cast(${slot.uid} as integer), ${slot.volume},
      cast(${slot.generation} as bigint), cast(${slot.createdAt} as bigint)
    where ${warm} < cast(${mostWarm} as bigint)
    on conflict do nothing
    returning slot`.execute(db)
  if (rows.length > 0) return
  const counted = await db.selectNoFrom(warm.as('count')).executeTakeFirstOrThrow()
  // The pool has room, so the name, the uid or the volume is taken: the ordinary insert throws
  // that.
  if (Number(counted.count) < mostWarm) return addRow(db, slot)
  throw new SandboxError('limit_reached', `There are ${Number(counted.count)} warm slots already.`)
}

function noSlot(slot: string): SandboxError {
  return new SandboxError('not_found', `The ledger has no slot ${slot}.`)
}

function toRow(slot: LedgerSlot): Insertable<SessionsSchema['sandbox_slots']> {
  return {
    slot: slot.slot,
    state: slot.state,
    user_id: slot.userId ?? null,
    uid: slot.uid,
    volume: slot.volume,
    generation: slot.generation,
    created_at: slot.createdAt,
    claimed_at: slot.claimedAt ?? null,
  }
}

function toSlot(row: Selectable<SessionsSchema['sandbox_slots']>): LedgerSlot {
  const { state } = row
  if (state !== 'warm' && state !== 'claimed' && state !== 'condemned') {
    throw new StorageError('corrupt', `Slot ${row.slot} has the unknown state "${state}".`)
  }
  return {
    slot: row.slot,
    state,
    ...(row.user_id === null ? {} : { userId: row.user_id }),
    uid: row.uid,
    volume: row.volume,
    generation: Number(row.generation),
    createdAt: Number(row.created_at),
    ...(row.claimed_at === null ? {} : { claimedAt: Number(row.claimed_at) }),
  }
}
