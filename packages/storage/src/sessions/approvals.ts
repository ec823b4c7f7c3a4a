/** The approvals that calls have asked for. */
import type { Kysely } from 'kysely'
import type { ApprovalRow } from '../tables/records.ts'
import { toApprovalRow } from '../tables/rows.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

export interface ApprovalRows {
  get(sessionId: string, toolCallId: string): Promise<ApprovalRow | undefined>
  /**
   * Number of approvals since `at` (epoch milliseconds), by session of this user, latest first.
   * Counts pending, answered and expired ones.
   */
  asksSince(userId: string, at: number): Promise<{ sessionId: string; asks: number }[]>
}

export function storedApprovals(db: Kysely<SessionsSchema>): ApprovalRows {
  return {
    async get(sessionId, toolCallId) {
      const row = await db
        .selectFrom('approvals')
        .selectAll()
        .where('session_id', '=', sessionId)
        .where('tool_call_id', '=', toolCallId)
        .executeTakeFirst()
      return row === undefined ? undefined : toApprovalRow(row)
    },
    async asksSince(userId, at) {
      const rows = await db
        .selectFrom('approvals')
        .innerJoin('sessions', 'sessions.id', 'approvals.session_id')
        .select(['sessions.id', (query) => query.fn.countAll<number>().as('asks')])
        .where('sessions.user_id', '=', userId)
        .where('approvals.asked_at', '>=', at)
        .where((query) =>
          query.or([
            query('approvals.answered_by', 'is', null),
            query('approvals.answered_by', 'in', ['user', 'expiry']),
          ]),
        )
        .groupBy('sessions.id')
        .orderBy((query) => query.fn.max('approvals.asked_at'), 'desc')
        .orderBy('sessions.id')
        .execute()
      return rows.map(({ id, asks }) => ({ sessionId: id, asks }))
    },
  }
}
