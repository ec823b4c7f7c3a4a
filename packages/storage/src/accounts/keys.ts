/** API keys: random, hashed at rest, shown once. */
import { createHash } from 'node:crypto'
import type { ApiKey, NewApiKey } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { randomText } from '@sandlot/shared/base/ids'
import { DEFAULT_KEY_SCOPES, type KeyScope, keyScope } from '@sandlot/shared/account/sign-in-api'
import type { Kysely } from 'kysely'
import { inTransaction } from '../audit/audit.ts'
import { accountOf } from './account-rows.ts'
import type { AccountsSchema } from '../tables/accounts.ts'
import { API_KEY_PREFIX, MAX_KEYS_PER_USER } from './store.ts'
import type { FoundKey, KeyGrant, KeyRows } from './store.ts'

const SECRET_CHARS = 40
const SHOWN_CHARS = API_KEY_PREFIX.length + 4
/** Without it, a key in steady use would write on every request. */
const LAST_USED_STEP_MS = 60_000

/** A fast hash is enough for 206 random bits, and every request pays for it. */
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')

export function storedKeys(db: Kysely<AccountsSchema>): KeyRows {
  return {
    find: (secret) => findByKey(db, secret),
    create: (...args) => createKey(db, ...args),
    list: (userId) => listKeys(db, userId),
    remove: (userId, id) => deleteKey(db, userId, id),
  }
}

async function createKey(
  db: Kysely<AccountsSchema>,
  userId: string,
  name: string,
  { scopes = [...DEFAULT_KEY_SCOPES], expiresAt = null }: KeyGrant = {},
  audit?: NewAudit,
): Promise<NewApiKey> {
  const secret = `${API_KEY_PREFIX}${randomText(SECRET_CHARS)}`
  const row: ApiKey = {
    id: `key_${randomText(20)}`,
    name,
    prefix: secret.slice(0, SHOWN_CHARS),
    createdAt: Date.now(),
    lastUsedAt: null,
    scopes,
    expiresAt,
  }
  const { id, prefix } = row
  const line = audit && { ...audit, whom: { id, name }, after: { prefix, scopes, expiresAt } }
  await inTransaction(db, line, async (trx) => {
    const held = await trx
      .selectFrom('api_key')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('userId', '=', userId)
      .executeTakeFirstOrThrow()
    if (held.count >= MAX_KEYS_PER_USER) {
      throw new SandlotError(
        'conflict',
        `You have ${MAX_KEYS_PER_USER} keys. Delete one that you do not use.`,
      )
    }
    await trx
      .insertInto('api_key')
      .values({ ...row, scopes: scopes.join(' '), userId, hash: hashOf(secret) })
      .execute()
  })
  return { ...row, key: secret }
}

async function listKeys(db: Kysely<AccountsSchema>, userId: string): Promise<ApiKey[]> {
  const rows = await db
    .selectFrom('api_key')
    .select(['id', 'name', 'prefix', 'createdAt', 'lastUsedAt', 'scopes', 'expiresAt'])
    .where('userId', '=', userId)
    .orderBy('createdAt', 'desc')
    .orderBy('id')
    .execute()
  return rows.map((row) => ({ ...row, scopes: readScopes(row.scopes) }))
}

/** Unknown scopes of a newer version are ignored. */
function readScopes(text: string): KeyScope[] {
  return text.split(' ').flatMap((one) => keyScope.safeParse(one).data ?? [])
}

async function deleteKey(db: Kysely<AccountsSchema>, userId: string, id: string): Promise<boolean> {
  const result = await db
    .deleteFrom('api_key')
    .where('userId', '=', userId)
    .where('id', '=', id)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

async function findByKey(db: Kysely<AccountsSchema>, secret: string): Promise<FoundKey | undefined> {
  if (!secret.startsWith(API_KEY_PREFIX)) return undefined
  const row = await db
    .selectFrom('api_key')
    .innerJoin('auth_user', 'auth_user.id', 'api_key.userId')
    .select([
      'api_key.id as keyId',
      'api_key.name as keyName',
      'api_key.lastUsedAt',
      'auth_user.id',
      'auth_user.name',
    ])
    .select(['auth_user.email', 'auth_user.role', 'api_key.scopes', 'api_key.expiresAt'])
    .where('api_key.hash', '=', hashOf(secret))
    .executeTakeFirst()
  if (row === undefined) return undefined
  const now = Date.now()
  if (row.expiresAt !== null && row.expiresAt <= now)
    throw new SandlotError('unauthenticated', 'This API key has expired. Create another one in the settings.')
  if (row.lastUsedAt === null || now - row.lastUsedAt >= LAST_USED_STEP_MS) {
    await db.updateTable('api_key').set({ lastUsedAt: now }).where('id', '=', row.keyId).execute()
  }
  return {
    account: await accountOf(db, row),
    keyId: row.keyId,
    keyName: row.keyName,
    scopes: readScopes(row.scopes),
  }
}
