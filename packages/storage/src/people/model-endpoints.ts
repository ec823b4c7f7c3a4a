/** Model endpoints added by administrators: one row each. Their keys are secrets. */
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { type Endpoint, askings, endpoint, joinAsking, splitAsking } from '@sandlot/shared/account/models-api'
import type { Kysely } from 'kysely'
import { inChange } from '../audit/audit.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

export interface EndpointRecord {
  id: string
  revision: number
  endpoint: Endpoint
}

export interface ModelEndpointRows {
  /** The oldest first. */
  all(): Promise<EndpointRecord[]>
  /**
   * Replaces the row with the previous revision (none: revision 1). False if the stored revision
   * differs.
   */
  put(row: EndpointRecord, at: number, audit?: NewAudit): Promise<boolean>
  /** Does nothing if there is none. */
  remove(id: string, audit?: NewAudit): Promise<void>
}

const CHANGE = { what: 'models' }

export function storedModelEndpoints(db: Kysely<SessionsSchema>): ModelEndpointRows {
  return {
    async all() {
      const rows = await db
        .selectFrom('model_endpoints')
        .selectAll()
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      return rows.map(({ id, revision, ...row }) => ({ id, revision, endpoint: endpointOf(row) }))
    },
    put: ({ id, revision, endpoint: value }, at, audit) =>
      inChange(db, CHANGE, audit, async (trx) => {
        const columns = columnsOf(value)
        if (revision === 1) {
          const [added] = await trx
            .insertInto('model_endpoints')
            .values({ id, ...columns, revision, created_at: at })
            .onConflict((conflict) => conflict.column('id').doNothing())
            .execute()
          return Number(added?.numInsertedOrUpdatedRows) === 1
        }
        const [changed] = await trx
          .updateTable('model_endpoints')
          .set({ ...columns, revision })
          .where('id', '=', id)
          .where('revision', '=', revision - 1)
          .execute()
        return Number(changed?.numUpdatedRows) === 1
      }),
    async remove(id, audit) {
      await inChange(db, CHANGE, audit, (trx) =>
        trx.deleteFrom('model_endpoints').where('id', '=', id).execute(),
      )
    },
  }
}

/** The previous version leaves `asking` as it is when it changes the row. */
function columnsOf(value: Endpoint): { endpoint: string; asking: string } {
  const { plain, asking } = splitAsking(value)
  return { endpoint: JSON.stringify(plain), asking: JSON.stringify(asking) }
}

function endpointOf(row: { endpoint: string; asking: string | null }): Endpoint {
  const plain = endpoint.parse(JSON.parse(row.endpoint))
  return row.asking === null ? plain : joinAsking(plain, askings.parse(JSON.parse(row.asking)))
}

export async function addModelAsking(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('model_endpoints').addColumn('asking', 'text').execute()
}

export async function addModelEndpoints(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('model_endpoints')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('endpoint', 'text', (column) => column.notNull())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
}
