/**
 * Users' secrets: sealed by ai-agent, which alone has the key. Here they are opaque bytes with a
 * name.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { type Kysely, sql } from 'kysely'
import { inSharedChange } from '../audit/audit.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

/** Per person. */
const MAX_SECRETS = 200

interface SealedSecret {
  name: string
  /** Id of the key that opens it; reveals nothing about the key. */
  keyId: string
  sealed: Uint8Array
  /** Epoch milliseconds. */
  updatedAt: number
}

export interface SecretRows {
  get(userId: string, name: string): Promise<SealedSecret | undefined>
  /** Replaces one of that name. Rejects with `too_large` if there are `MAX_SECRETS` others. */
  put(userId: string, secret: SealedSecret, audit?: NewAudit): Promise<void>
  /** True if there was one. */
  remove(userId: string, name: string, audit?: NewAudit): Promise<boolean>
  /** For all users. */
  removeNamed(names: readonly string[]): Promise<void>
  /** By name. */
  names(userId: string): Promise<{ name: string; updatedAt: number }[]>
  /** Secrets sealed with another key, at most `limit`. */
  sealedOtherwise(keyId: string, limit: number): Promise<(SealedSecret & { userId: string })[]>
}

export function storedSecrets(db: Kysely<SessionsSchema>): SecretRows {
  return {
    async get(userId, name) {
      const row = await db
        .selectFrom('secrets')
        .selectAll()
        .where('user_id', '=', userId)
        .where('name', '=', name)
        .executeTakeFirst()
      return row === undefined
        ? undefined
        : { name, keyId: row.key_id, sealed: new Uint8Array(row.sealed), updatedAt: row.updated_at }
    },
    put: (...args) => putSecret(db, ...args),
    remove: (userId, name, audit) =>
      inSharedChange(db, { what: 'secrets', id: userId }, audit, async (trx) => {
        const gone = await trx
          .deleteFrom('secrets')
          .where('user_id', '=', userId)
          .where('name', '=', name)
          .returning('name')
          .executeTakeFirst()
        return gone !== undefined
      }),
    async removeNamed(names) {
      await db.deleteFrom('secrets').where('name', 'in', names).execute()
    },
    async names(userId) {
      const rows = await db
        .selectFrom('secrets')
        .select(['name', 'updated_at'])
        .where('user_id', '=', userId)
        .orderBy('name')
        .execute()
      return rows.map((row) => ({ name: row.name, updatedAt: row.updated_at }))
    },
    async sealedOtherwise(keyId, limit) {
      const rows = await db
        .selectFrom('secrets')
        .selectAll()
        .where('key_id', '!=', keyId)
        .orderBy('user_id')
        .orderBy('name')
        .limit(limit)
        .execute()
      return rows.map((row) => ({
        userId: row.user_id,
        name: row.name,
        keyId: row.key_id,
        sealed: new Uint8Array(row.sealed),
        updatedAt: row.updated_at,
      }))
    },
  }
}

async function putSecret(
  db: Kysely<SessionsSchema>,
  ...[userId, { name, keyId, sealed, updatedAt }, audit]: Parameters<SecretRows['put']>
): ReturnType<SecretRows['put']> {
  const row = { key_id: keyId, sealed, updated_at: updatedAt }
  await inSharedChange(db, { what: 'secrets', id: userId }, audit, async (trx) => {
    const { others } = await trx
      .selectFrom('secrets')
      .select((query) => query.fn.countAll<number>().as('others'))
      .where('user_id', '=', userId)
      .where('name', '!=', name)
      .executeTakeFirstOrThrow()
    if (others >= MAX_SECRETS)
      throw new SandlotError('too_large', `A person has at most ${MAX_SECRETS} secrets. Remove one first.`)
    await trx
      .insertInto('secrets')
      .values({ user_id: userId, name, ...row })
      .onConflict((conflict) => conflict.columns(['user_id', 'name']).doUpdateSet(row))
      .execute()
  })
}

export async function addSecrets({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('secrets')
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text', (column) => column.notNull())
    .addColumn('sealed', sql`bytea`, (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('secrets_key', ['user_id', 'name'])
    .execute()
}
