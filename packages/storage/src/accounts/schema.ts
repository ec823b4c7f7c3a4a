/** The tables of accounts.db that our own queries touch. The `auth_*` tables are written through better-auth alone. */
import type { Migrations } from '../database.ts'
import { authTables } from './migrations/001-auth-tables.ts'
import { apiKeys } from './migrations/002-api-keys.ts'

export interface AccountsSchema {
  auth_user: { id: string; name: string; email: string; role: string | null }
  api_key: {
    id: string
    userId: string
    name: string
    /** The first characters of the secret, for people. */
    prefix: string
    /** SHA-256 of the whole secret, hex. */
    hash: string
    createdAt: number
    lastUsedAt: number | null
  }
}

export const accountsMigrations: Migrations = {
  '001_auth_tables': authTables,
  '002_api_keys': apiKeys,
}
