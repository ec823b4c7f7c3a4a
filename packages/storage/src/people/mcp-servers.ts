/**
 * MCP servers added on the page: one row each. Values of headers and variables are secrets of the
 * same owner.
 */
import { type AddedServer, addedServer } from '@sandlot/shared/admin/mcp-servers'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Kysely } from 'kysely'
import { inChange } from '../audit/audit.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

export interface McpServerRecord {
  id: string
  ownerId: string
  revision: number
  server: AddedServer
}

export interface McpServerRows {
  all(): Promise<McpServerRecord[]>
  /**
   * Replaces the row with the previous revision (none: revision 1). False if the stored revision
   * differs.
   */
  put(row: McpServerRecord, at: number, audit?: NewAudit): Promise<boolean>
  /** Does nothing if there is none. */
  remove(id: string, audit?: NewAudit): Promise<void>
}

const CHANGE = { what: 'servers' }

export function storedMcpServers(db: Kysely<SessionsSchema>): McpServerRows {
  return {
    async all() {
      const rows = await db
        .selectFrom('mcp_servers')
        .selectAll()
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      return rows.map(({ id, user_id: ownerId, revision, server }) => ({
        id,
        ownerId,
        revision,
        server: addedServer.parse(JSON.parse(server)),
      }))
    },
    put: ({ id, ownerId, revision, server }, at, audit) =>
      inChange(db, CHANGE, audit, async (trx) => {
        const json = JSON.stringify(server)
        if (revision === 1) {
          const [added] = await trx
            .insertInto('mcp_servers')
            .values({ id, user_id: ownerId, server: json, revision, created_at: at })
            .onConflict((conflict) => conflict.column('id').doNothing())
            .execute()
          return Number(added?.numInsertedOrUpdatedRows) === 1
        }
        const [changed] = await trx
          .updateTable('mcp_servers')
          .set({ server: json, revision })
          .where('id', '=', id)
          .where('user_id', '=', ownerId)
          .where('revision', '=', revision - 1)
          .execute()
        return Number(changed?.numUpdatedRows) === 1
      }),
    async remove(id, audit) {
      await inChange(db, CHANGE, audit, (trx) => trx.deleteFrom('mcp_servers').where('id', '=', id).execute())
    },
  }
}

export async function addMcpServers(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('mcp_servers')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('server', 'text', (column) => column.notNull())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('mcp_servers_by_user').on('mcp_servers').column('user_id').execute()
}
