/** What a key may do, and until when. Earlier keys keep what they could do. */
import type { Migration } from '../../database/database.ts'

export const keyScopes: Migration = {
  async up(db) {
    await db.schema
      .alterTable('api_key')
      .addColumn('scopes', 'text', (column) => column.notNull().defaultTo('chat read files exec'))
      .execute()
    await db.schema.alterTable('api_key').addColumn('expiresAt', 'bigint').execute()
  },
}
