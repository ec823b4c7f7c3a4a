/**
 * The audit log: one table with the same shape in each database, written by the database's only
 * writer. Plain SQL, because both schemas have it.
 */
import type { AuditEntry, AuditFacts, AuditSource, NewAudit } from '@sandlot/shared/admin/audit'
import { storableJson, storableText } from '@sandlot/shared/base/storable-text'
import { type Kysely, type QueryExecutorProvider, type Transaction, sql } from 'kysely'
import { type Change, recordChange, wakeListeners } from '../database/changes.ts'
import { StorageError } from '../storage-error.ts'
import { type AuditRow, type ChainPoint, type ChainState, FIRST_HASH, checkChain, hashOf } from './chain.ts'

const MAX_TEXT_CHARS = 300
const MAX_FACTS_CHARS = 4_000
/** Above every number. */
const ALL = Number.MAX_SAFE_INTEGER
/** Lines per read. */
const PAGE = 1_000

/** Filters; absent ones match everything. */
export interface AuditQuery {
  /** Id, name or address of the actor, or a part of it. */
  who?: string | undefined
  /** Anywhere in the line. */
  text?: string | undefined
  what?: readonly string[] | undefined
  /** Epoch milliseconds, both included. */
  from?: number | undefined
  to?: number | undefined
  /** Only lines with this person as actor or subject. */
  about?: string | undefined
  /** Only lines after this one, newest first; of equal times the larger number. */
  behind?: { at: number; seq: number } | undefined
  limit: number
}

export interface AuditReads {
  /** The newest first. */
  page(query: AuditQuery): Promise<AuditEntry[]>
  /** The total effect of `removeOlder`. */
  olderThan(at: number): Promise<{ count: number; oldest: number | null; bytes: number }>
  /** Reads every line. */
  check(): Promise<ChainState>
}

export interface AuditLog extends AuditReads {
  /**
   * Writes a line. For an act that is a transaction of the store, pass the line to its method
   * instead.
   */
  write(entry: NewAudit): Promise<void>
  /** Removes at most `limit` of the oldest lines before `at`. Returns the number. */
  removeOlder(at: number, limit: number): Promise<number>
}

/** Runs `work` in a transaction with its line; without a line if it returns `false`. */
export function inTransaction<Schema, T>(
  db: Kysely<Schema>,
  entry: NewAudit | undefined,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return db.transaction().execute(async (trx) => {
    const result = await work(trx)
    if (entry !== undefined && result !== false) await appendAudit(trx, entry)
    return result
  })
}

/** The same, for data that other processes on the database reload when it changes. */
export async function inChange<Schema, T>(
  db: Kysely<Schema>,
  { what, id }: Change,
  entry: NewAudit | undefined,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  const result = await inTransaction(db, entry, async (trx) => {
    const done = await work(trx)
    if (done !== false) await recordChange(trx, what, id)
    return done
  })
  if (result !== false) await wakeListeners(db)
  return result
}

/**
 * The same for the owner `id`: data of a user is only read by the process that owns them, so no
 * change is recorded.
 */
export function inSharedChange<Schema, T>(
  db: Kysely<Schema>,
  change: Change & { id: string },
  entry: NewAudit | undefined,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return change.id.startsWith('deployment:')
    ? inChange(db, change, entry, work)
    : inTransaction(db, entry, work)
}

/** Call in a transaction. Throws `corrupt`. */
export async function appendAudit(trx: QueryExecutorProvider, entry: NewAudit): Promise<void> {
  // The update comes first: concurrent writers wait for it.
  const { rows } = await sql<{ seq: number; before: string }>`
    update audit_chain set head_seq = head_seq + 1 returning head_seq as seq, head_hash as before
  `.execute(trx)
  const [next] = rows
  if (next === undefined)
    throw new StorageError('corrupt', 'The audit log has no chain row. Restore the database from a backup.')
  const { who, from = {}, whom = {}, what, before, after, count = 1 } = entry
  const row = {
    seq: next.seq,
    at: Date.now(),
    what,
    who_id: clean(who.id) ?? '',
    who_name: clean(who.name) ?? '',
    who_email: clean(who.email),
    address: clean(from.address),
    key_name: clean(from.key),
    sign_in: clean(from.signIn),
    whom_id: clean(whom.id),
    whom_name: clean(whom.name),
    before_json: factsJson(before),
    after_json: factsJson(after),
    count,
  }
  const hash = hashOf(next.before, row)
  await sql`
    insert into audit (seq, at, what, who_id, who_name, who_email, address, key_name, sign_in,
      whom_id, whom_name, before_json, after_json, count, hash)
    values (${row.seq}, ${row.at}, ${row.what}, ${row.who_id}, ${row.who_name}, ${row.who_email},
      ${row.address}, ${row.key_name}, ${row.sign_in}, ${row.whom_id}, ${row.whom_name},
      ${row.before_json}, ${row.after_json}, ${row.count}, ${hash})
  `.execute(trx)
  await sql`update audit_chain set head_hash = ${hash}`.execute(trx)
}

export function auditReads<Schema>(db: Kysely<Schema>, source: AuditSource): AuditReads {
  return {
    async page(query) {
      const { rows } = await sql<AuditRow>`
        select * from audit where ${conditionsOf(query)}
        order by at desc, seq desc limit ${query.limit}
      `.execute(db)
      return rows.map((row) => toEntry(source, row))
    },
    async olderThan(at) {
      const { rows } = await sql<{ count: number; oldest: number | null; bytes: number | null }>`
        select count(*) as count, min(at) as oldest,
          sum(300 + coalesce(length(before_json), 0) + coalesce(length(after_json), 0)) as bytes
        from audit where seq < coalesce((select min(seq) from audit where at >= ${at}), ${ALL})
      `.execute(db)
      const [row] = rows
      return { count: row?.count ?? 0, oldest: row?.oldest ?? null, bytes: row?.bytes ?? 0 }
    },
    async check() {
      for (;;) {
        // Read first: lines written during the check come after this head, and are skipped.
        const { anchor, head } = await readChain(db)
        const state = await checkChain(anchor, head, allRows(db, head))
        // Repeat if retention has removed lines during the check.
        if ((await readChain(db)).anchor.seq === anchor.seq) return state
      }
    },
  }
}

export function storedAudit<Schema>(db: Kysely<Schema>, source: AuditSource): AuditLog {
  return {
    ...auditReads(db, source),
    write: (entry) => db.transaction().execute((trx) => appendAudit(trx, entry)),
    removeOlder: (at, limit) =>
      db.transaction().execute(async (trx) => {
        // From the beginning on: a clock that was set back leaves no hole.
        const { rows } = await sql<ChainPoint & { at: number }>`
          select seq, at, hash from audit order by seq limit ${limit}
        `.execute(trx)
        const young = rows.findIndex((row) => row.at >= at)
        const old = young === -1 ? rows : rows.slice(0, young)
        const last = old.at(-1)
        if (last === undefined) return 0
        await sql`delete from audit where seq <= ${last.seq}`.execute(trx)
        await sql`
          update audit_chain set anchor_seq = ${last.seq}, anchor_hash = ${last.hash}
        `.execute(trx)
        return old.length
      }),
  }
}

/** Used by both stores. */
export async function addAudit(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('audit')
    .addColumn('seq', 'bigint', (column) => column.primaryKey())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('what', 'text', (column) => column.notNull())
    .addColumn('who_id', 'text', (column) => column.notNull())
    .addColumn('who_name', 'text', (column) => column.notNull())
    .addColumn('who_email', 'text')
    .addColumn('address', 'text')
    .addColumn('key_name', 'text')
    .addColumn('sign_in', 'text')
    .addColumn('whom_id', 'text')
    .addColumn('whom_name', 'text')
    .addColumn('before_json', 'text')
    .addColumn('after_json', 'text')
    .addColumn('count', 'bigint', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('audit_by_time').on('audit').columns(['at', 'seq']).execute()
  await db.schema
    .createTable('audit_chain')
    .addColumn('anchor_seq', 'bigint', (column) => column.notNull())
    .addColumn('anchor_hash', 'text', (column) => column.notNull())
    .addColumn('head_seq', 'bigint', (column) => column.notNull())
    .addColumn('head_hash', 'text', (column) => column.notNull())
    .execute()
  await sql`
    insert into audit_chain (anchor_seq, anchor_hash, head_seq, head_hash)
    values (0, ${FIRST_HASH}, 0, ${FIRST_HASH})
  `.execute(db)
}

async function readChain(db: QueryExecutorProvider): Promise<{ anchor: ChainPoint; head: ChainPoint }> {
  const { rows } = await sql<{
    anchor_seq: number
    anchor_hash: string
    head_seq: number
    head_hash: string
  }>`select * from audit_chain`.execute(db)
  const [row] = rows
  const start = { seq: 0, hash: FIRST_HASH }
  if (row === undefined) return { anchor: start, head: start }
  return {
    anchor: { seq: row.anchor_seq, hash: row.anchor_hash },
    head: { seq: row.head_seq, hash: row.head_hash },
  }
}

/** Includes lines after the head that cannot be new: they were inserted by hand. */
async function* allRows(db: QueryExecutorProvider, head: ChainPoint): AsyncGenerator<AuditRow> {
  let after = -1
  for (;;) {
    const { rows } = await sql<AuditRow>`
      select * from audit where seq > ${after} order by seq limit ${PAGE}
    `.execute(db)
    if (rows.length === 0) return
    const { head: now } = await readChain(db)
    for (const row of rows) if (row.seq <= head.seq || row.seq > now.seq) yield row
    after = rows.at(-1)?.seq ?? after
  }
}

function conditionsOf({ who, text, what, from, to, about, behind }: AuditQuery) {
  const parts = [sql`1 = 1`]
  if (who !== undefined)
    parts.push(sql`(who_id = ${who} or lower(who_name) like lower(${like(who)}) escape '!'
      or lower(who_email) like lower(${like(who)}) escape '!')`)
  if (about !== undefined) parts.push(sql`(who_id = ${about} or whom_id = ${about})`)
  if (text !== undefined) {
    const columns = ['what', 'who_name', 'who_email', 'address', 'key_name', 'whom_id', 'whom_name']
    const all = [...columns, 'before_json', 'after_json'].map(
      (column) => sql`lower(${sql.ref(column)}) like lower(${like(text)}) escape '!'`,
    )
    parts.push(sql`(${sql.join(all, sql` or `)})`)
  }
  if (what !== undefined) parts.push(what.length === 0 ? sql`1 = 0` : sql`what in (${sql.join([...what])})`)
  if (from !== undefined) parts.push(sql`at >= ${from}`)
  if (to !== undefined) parts.push(sql`at <= ${to}`)
  if (behind !== undefined)
    parts.push(sql`(at < ${behind.at} or (at = ${behind.at} and seq < ${behind.seq}))`)
  return sql.join(parts, sql` and `)
}

function like(text: string): string {
  return `%${text.replaceAll(/[!%_]/g, '!$&')}%`
}

function toEntry(source: AuditSource, row: AuditRow): AuditEntry {
  return {
    source,
    seq: row.seq,
    at: row.at,
    who: { id: row.who_id, name: row.who_name, email: row.who_email },
    from: { address: row.address, key: row.key_name, signIn: row.sign_in },
    what: row.what,
    whom: { id: row.whom_id, name: row.whom_name },
    before: parsed(row.before_json),
    after: parsed(row.after_json),
    count: row.count,
    hash: row.hash,
  }
}

/** A line damaged by hand is still shown. */
function parsed(json: string | null): Record<string, unknown> | null {
  if (json === null) return null
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? { ...value } : { value }
  } catch {
    return { damaged: json }
  }
}

/** The stored form, which the hash covers. */
function clean(text: string | undefined): string | null {
  return text === undefined ? null : storableText(text.slice(0, MAX_TEXT_CHARS))
}

function factsJson(value: AuditFacts | undefined): string | null {
  if (value === undefined) return null
  const json = JSON.stringify(storableJson(value))
  return json.length > MAX_FACTS_CHARS ? JSON.stringify({ tooLong: json.length }) : json
}
