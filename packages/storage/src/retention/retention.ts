/**
 * Retention in the sessions store, in batches. A chat that is running, waits for an answer, is
 * pinned by anyone, or was shared within the same time is skipped as a whole.
 */
import {
  RETAINED_FOR_EVER,
  type RetentionDays,
  type RetentionView,
  removedCounts,
  retentionDays,
} from '@sandlot/shared/admin/retention'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { inTransaction } from '../audit/audit.ts'
import type { GroupCommit } from '../database/group-commit.ts'
import { NO_USER } from '../tables/rows.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { DAY_MS } from '../usage/usage-sums.ts'

/** Chunks of outputs, or events, per commit. */
const PER_COMMIT = 16
const ROWS_PER_COMMIT = 500

type Stored = Pick<RetentionView, 'days' | 'revision' | 'last'>

/** A chat that is due. */
export interface AgedChat {
  id: string
  userId: string
  updatedAt: number
  /** Size of the part to remove. */
  bytes: number
}

/** The part of a chat to remove. */
export type OfChats = 'chats' | 'outputs' | 'images'

export interface RetentionReads {
  get(): Promise<Stored>
}

export interface RetentionRows extends RetentionReads {
  /** False if the stored revision differs. */
  put(days: RetentionDays, revision: number, audit: NewAudit): Promise<boolean>
  /** Records a run. */
  ran(at: number, removed: Readonly<Record<string, number>>): Promise<void>
  /**
   * Due chats, oldest first, after `after`: without activity since `before`, or with outputs or
   * images from before it.
   */
  aged(kind: OfChats, before: number, limit: number, after?: AgedChat): Promise<AgedChat[]>
  /** Remaining images in this chat from before then, and their bytes. */
  imagesOf(sessionId: string, before: number): Promise<{ count: number; bytes: number }>
  /**
   * Removes outputs of calls that ended before then; the model's text stays. Returns the number
   * with bytes.
   */
  removeOutputs(sessionId: string, before: number): Promise<number>
  /** Replaces each image from before then by a small one. Returns the number. */
  removeImages(sessionId: string, before: number): Promise<number>
  /** Usage rows and their daily sums. */
  usageBefore(at: number): Promise<{ count: number; bytes: number; oldest: number | null }>
  /** Removes a limited number of rows from each table. Returns the number; 0: none remain. */
  removeUsage(before: number): Promise<number>
}

export function retentionReads(db: Kysely<SessionsSchema>): RetentionReads {
  return {
    async get() {
      const row = await db.selectFrom('retention').selectAll().executeTakeFirst()
      if (row === undefined) return { days: RETAINED_FOR_EVER, revision: 0, last: null }
      const removed = removedCounts.parse(JSON.parse(row.removed ?? '{}'))
      return {
        days: retentionDays.parse(JSON.parse(row.days)),
        revision: row.revision,
        last: row.ran_at === null ? null : { at: row.ran_at, removed },
      }
    },
  }
}

export function storedRetention(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
): RetentionRows {
  return {
    ...retentionReads(db),
    put: (days, revision, audit) =>
      inTransaction(db, audit, async (trx) => {
        const before = await trx.selectFrom('retention').select('revision').executeTakeFirst()
        if ((before?.revision ?? 0) !== revision) return false
        const row = { days: JSON.stringify(days), revision: revision + 1 }
        await trx
          .insertInto('retention')
          .values({ id: 1, ...row, ran_at: null, removed: null })
          .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
          .execute()
        return true
      }),
    async ran(at, removed) {
      const row = { ran_at: at, removed: JSON.stringify(removed) }
      await db.updateTable('retention').set(row).execute()
    },
    aged: (...args) => agedChats(db, ...args),
    async imagesOf(sessionId, before) {
      const { rows } = await sql<{ count: number; bytes: number | null }>`
        select count(*) as count, sum(length(json)) as bytes from events
        where session_id = ${sessionId} and at < ${before} and ${HAS_IMAGE}
      `.execute(db)
      return { count: rows[0]?.count ?? 0, bytes: rows[0]?.bytes ?? 0 }
    },
    removeOutputs: (...args) => removeOutputs(commits, ...args),
    removeImages: (...args) => removeImages(commits, ...args),
    async usageBefore(at) {
      const { rows } = await sql<{ count: number; oldest: number | null }>`
        select count(*) as count, min(at) as oldest from usage where at < ${at}
      `.execute(db)
      const count = rows[0]?.count ?? 0
      return { count, bytes: count * 200, oldest: rows[0]?.oldest ?? null }
    },
    removeUsage: (...args) => removeUsage(commits, ...args),
  }
}

async function agedChats(
  db: Kysely<SessionsSchema>,
  ...[kind, before, limit, after]: Parameters<RetentionRows['aged']>
): ReturnType<RetentionRows['aged']> {
  const { rows } = await sql<{ id: string; user_id: string; updated_at: number; bytes: number | null }>`
    select s.id, s.user_id, s.updated_at, ${BYTES[kind](before)} as bytes from sessions s
    where s.user_id != ${NO_USER} and s.created_at < ${before} and s.running_prompt_id is null
      and ${CONCERNED[kind](before)}
      and (s.updated_at > ${after?.updatedAt ?? -1}
        or (s.updated_at = ${after?.updatedAt ?? -1} and s.id > ${after?.id ?? ''}))
      and not exists (select 1 from approvals a
        where a.session_id = s.id and a.answered_at is null and a.expires_at > ${Date.now()})
      and not exists (select 1 from chat_marks m where m.session_id = s.id and m.pinned = 1)
      and not exists (select 1 from shares h where h.session_id = s.id and h.created_at >= ${before})
      and not exists (select 1 from snapshots p where p.session_id = s.id and p.created_at >= ${before})
    order by s.updated_at, s.id limit ${limit}
  `.execute(db)
  return rows.map((row) => ({
    id: row.id,
    userId: row.user_id,
    updatedAt: row.updated_at,
    bytes: row.bytes ?? 0,
  }))
}

async function removeOutputs(
  commits: GroupCommit<SessionsSchema>,
  ...[sessionId, before]: Parameters<RetentionRows['removeOutputs']>
): ReturnType<RetentionRows['removeOutputs']> {
  const isOld = sql<boolean>`stored_bytes > 0 and ${ENDED_AT} < ${before}`
  // Marked first, so that no read finds a partial output.
  const count = await commits.run(async (trx) => {
    const gone = await trx
      .selectFrom('outputs')
      .select(({ fn }) => [fn.countAll<number>().as('count'), fn.sum<number>('stored_bytes').as('bytes')])
      .where('session_id', '=', sessionId)
      .where(isOld)
      .executeTakeFirstOrThrow()
    await trx
      .updateTable('outputs')
      .set({ stored_bytes: 0, cut: 'retention' })
      .where('session_id', '=', sessionId)
      .where(isOld)
      .execute()
    await trx
      .updateTable('sessions')
      .set((query) => ({ stored_bytes: query('stored_bytes', '-', gone.bytes ?? 0) }))
      .where('id', '=', sessionId)
      .execute()
    return gone.count
  })
  for (;;) {
    const left = await commits.run(async (trx) => {
      const { rows } = await sql<{ call_id: string; start_at: number }>`
        select c.call_id, c.start_at from output_chunks c
        inner join outputs on outputs.session_id = c.session_id and outputs.call_id = c.call_id
        where c.session_id = ${sessionId} and outputs.stored_bytes = 0
        limit ${PER_COMMIT}
      `.execute(trx)
      for (const { call_id, start_at } of rows)
        await trx
          .deleteFrom('output_chunks')
          .where('session_id', '=', sessionId)
          .where('call_id', '=', call_id)
          .where('start_at', '=', start_at)
          .execute()
      return rows.length
    })
    if (left < PER_COMMIT) return count
  }
}

async function removeImages(
  commits: GroupCommit<SessionsSchema>,
  ...[sessionId, before]: Parameters<RetentionRows['removeImages']>
): ReturnType<RetentionRows['removeImages']> {
  let removed = 0
  for (let after = 0; ;) {
    const seq = await commits.run(async (trx) => {
      const { rows } = await sql<{ seq: number; json: string }>`
        select seq, json from events
        where session_id = ${sessionId} and seq > ${after} and at < ${before} and ${HAS_IMAGE}
        order by seq limit 1
      `.execute(trx)
      const [row] = rows
      if (row === undefined) {
        await sql`
          update sessions set images_gone_seq = coalesce(
            (select max(e.seq) from events e where e.session_id = sessions.id and e.at < ${before}), 0)
          where id = ${sessionId}
        `.execute(trx)
        return undefined
      }
      const json = JSON.stringify(withoutImages(JSON.parse(row.json), () => (removed += 1)))
      const less = Buffer.byteLength(row.json) - Buffer.byteLength(json)
      await trx
        .updateTable('events')
        .set({ json })
        .where('session_id', '=', sessionId)
        .where('seq', '=', row.seq)
        .execute()
      await trx
        .updateTable('sessions')
        .set((query) => ({ stored_bytes: query('stored_bytes', '-', less) }))
        .where('id', '=', sessionId)
        .execute()
      return row.seq
    })
    if (seq === undefined) return removed
    after = seq
  }
}

function removeUsage(
  commits: GroupCommit<SessionsSchema>,
  ...[before]: Parameters<RetentionRows['removeUsage']>
): ReturnType<RetentionRows['removeUsage']> {
  return commits.run(async (trx) => {
    const day = Math.floor(before / DAY_MS)
    const statements: RawBuilder<unknown>[] = [
      sql`delete from usage where id in (select id from usage where at < ${before} limit ${ROWS_PER_COMMIT})`,
      sql`delete from runs where id in (
        select id from runs where ended_at < ${before} limit ${ROWS_PER_COMMIT})`,
      sql`delete from usage_days where day < ${day}`,
      sql`delete from tool_days where day < ${day}`,
    ]
    let removed = 0
    for (const statement of statements) removed += Number((await statement.execute(trx)).numAffectedRows ?? 0)
    return removed
  })
}

const HAS_IMAGE = sql`json like '%"mimeType":"image/%' and length(json) > ${sql.lit(2_000)}`

/** End of the call of a row of `outputs`; without one, its chat’s last event. */
const ENDED_AT = sql`coalesce(
  (select c.at from outcomes c where c.session_id = outputs.session_id and c.call_id = outputs.call_id),
  (select u.updated_at from sessions u where u.id = outputs.session_id))`

type Condition = Record<OfChats, (before: number) => RawBuilder<unknown>>

const BYTES: Condition = {
  chats: () => sql`s.stored_bytes`,
  outputs: (before) => sql`(select sum(outputs.stored_bytes) from outputs
    where outputs.session_id = s.id and ${ENDED_AT} < ${before})`,
  images: () => sql`0`,
}

const CONCERNED: Condition = {
  chats: (before) => sql`s.updated_at < ${before}`,
  // Includes remains of an interrupted removal.
  outputs: (before) => sql`exists (select 1 from outputs
    where outputs.session_id = s.id and ${ENDED_AT} < ${before}
      and exists (select 1 from output_chunks k
        where k.session_id = outputs.session_id and k.call_id = outputs.call_id))`,
  // Events are in order of time: the first candidate decides for all.
  images: (before) => sql`(select e.at from events e
    where e.session_id = s.id and e.seq > s.images_gone_seq order by e.seq limit 1) < ${before}`,
}

/** A grey picture with a cross: a chat keeps its layout, and a model still gets an image. */
const REMOVED_IMAGE = {
  mimeType: 'image/png',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAGAAAABACAAAAADAXy3SAAAAtUlEQVR42u2XSwqAMAxEvT85ibfyJm5E/LQwU3ili8m28B7YZhK3Ha5tP9CKIIIIIohgjqCqBg91QY2cWYKyj5w76GIUvnTJHZDE115RE6XxxWfagIl8tQ9+OJUvN9oHKPP1Tn4hdb4RFQ+owXey6MY6fCvsLrDF99K07qLi2ue788DmryagPxF9yfQzpRuNjgo67Oi4pgcOPTLpoU+vLfTiha+OM5Zfdn3PL1QEEUQQwRoCuE7J7nMBqoIeOQAAAABJRU5ErkJggg==',
}

/** A copy with the small picture instead of every image; `found` is called for each. */
function withoutImages(value: unknown, found: () => void): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutImages(one, found))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  const isImage = entries.some(
    ([key, of]) => key === 'mimeType' && typeof of === 'string' && of.startsWith('image/'),
  )
  const data: unknown = isImage ? Reflect.get(value, 'data') : undefined
  if (typeof data === 'string' && data.length > REMOVED_IMAGE.data.length) {
    found()
    return { ...value, ...REMOVED_IMAGE }
  }
  return Object.fromEntries(entries.map(([key, of]) => [key, withoutImages(of, found)]))
}

export async function addRetention({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('retention')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('days', 'text', (column) => column.notNull())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('ran_at', 'bigint')
    .addColumn('removed', 'text')
    .execute()
  await schema
    .alterTable('sessions')
    .addColumn('images_gone_seq', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
}
