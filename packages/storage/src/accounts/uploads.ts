/**
 * Uploaded images that wait for their message, in a table if several services share the accounts,
 * since the message may reach another service. A single service uses files.
 */
import { type Kysely, sql } from 'kysely'
import { dialectOf } from '../database/dialect.ts'
import type { AccountsSchema } from '../tables/accounts.ts'

/** Stored uploads. Times are epoch milliseconds. */
export interface UploadShelf {
  /** The person's uploads, after removing those from before `since`. */
  waiting(userId: string, since: number): Promise<{ bytes: number; count: number }>
  put(userId: string, id: string, bytes: Buffer): Promise<void>
  /** Undefined: no such upload of this person since then. */
  get(userId: string, id: string, since: number): Promise<Buffer | undefined>
  /** False: see `get`. */
  remove(userId: string, id: string, since: number): Promise<boolean>
  removeAll(userId: string): Promise<void>
  /** All uploads from before `since`. */
  removeOlder(since: number): Promise<void>
}

export function storedUploads(db: Kysely<AccountsSchema>): UploadShelf {
  return {
    async waiting(userId, since) {
      await db.deleteFrom('upload').where('userId', '=', userId).where('createdAt', '<', since).execute()
      const { bytes, count } = await db
        .selectFrom('upload')
        .select(({ fn }) => [fn.sum<number | null>('size').as('bytes'), fn.countAll<number>().as('count')])
        .where('userId', '=', userId)
        .executeTakeFirstOrThrow()
      return { bytes: bytes ?? 0, count }
    },
    async put(userId, id, bytes) {
      const row = { id, userId, bytes, size: bytes.length, createdAt: Date.now() }
      await db.insertInto('upload').values(row).execute()
    },
    async get(userId, id, since) {
      const row = await db
        .selectFrom('upload')
        .select('bytes')
        .where('id', '=', id)
        .where('userId', '=', userId)
        .where('createdAt', '>=', since)
        .executeTakeFirst()
      return row === undefined ? undefined : Buffer.from(row.bytes)
    },
    async remove(userId, id, since) {
      const { numDeletedRows } = await db
        .deleteFrom('upload')
        .where('id', '=', id)
        .where('userId', '=', userId)
        .where('createdAt', '>=', since)
        .executeTakeFirst()
      return numDeletedRows > 0n
    },
    async removeAll(userId) {
      await db.deleteFrom('upload').where('userId', '=', userId).execute()
    },
    async removeOlder(since) {
      await db.deleteFrom('upload').where('createdAt', '<', since).execute()
    },
  }
}

export async function addUploads(db: Kysely<unknown>): Promise<void> {
  const isFile = dialectOf(db) === 'sqlite'
  await db.schema
    .createTable('upload')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('userId', 'text', (column) => column.notNull())
    .addColumn('bytes', isFile ? 'blob' : 'bytea', (column) => column.notNull())
    .addColumn('size', 'bigint', (column) => column.notNull())
    .addColumn('createdAt', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('upload_by_user').on('upload').columns(['userId', 'createdAt']).execute()
  // Images are already compressed.
  if (!isFile) await sql`alter table upload alter column bytes set storage external`.execute(db)
}
