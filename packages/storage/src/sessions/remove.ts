/**
 * Removal of a session: in pieces, each a commit, so that neither the process nor other sessions'
 * writes wait for gigabytes. The first removes its user, so that no read finds the rest.
 */
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Kysely } from 'kysely'
import { appendAudit } from '../audit/audit.ts'
import { dialectOf } from '../database/dialect.ts'
import type { GroupCommit } from '../database/group-commit.ts'
import { NO_USER } from '../tables/rows.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import { removeIndexed } from '../search/index-texts.ts'
import { recordRun } from '../usage/usage.ts'

/** Per commit; a chunk has at most 256 KiB. */
const CHUNKS_PER_COMMIT = 16
const EVENTS_PER_COMMIT = 200
const YOUNG_MS = 60 * 60_000

type Commits = GroupCommit<SessionsSchema>

/** Returns its user; undefined if there is none. */
export async function removeSession(
  commits: Commits,
  id: string,
  audit?: NewAudit,
): Promise<string | undefined> {
  const userId = await commits.run(async (trx) => {
    const row = await trx
      .selectFrom('sessions')
      .select(['user_id', 'updated_at'])
      .where('id', '=', id)
      .where('user_id', '!=', NO_USER)
      .executeTakeFirst()
    if (row === undefined) return undefined
    // Its runs get no other end.
    await recordRun(trx, { id, userId: row.user_id }, null, row.updated_at)
    await trx.deleteFrom('submissions').where('session_id', '=', id).execute()
    const gone = { user_id: NO_USER, running_prompt_id: null }
    await trx.updateTable('sessions').set(gone).where('id', '=', id).execute()
    if (audit !== undefined) await appendAudit(trx, audit)
    return row.user_id
  })
  if (userId !== undefined) await removeRows(commits, id)
  return userId
}

/** For a session without a user. */
export async function removeRows(commits: Commits, id: string): Promise<void> {
  while (await removeChunks(commits, id));
  while (await commits.run((trx) => removeIndexed(trx, id, EVENTS_PER_COMMIT)));
  while (await removeEvents(commits, id));
  await commits.run((trx) => trx.deleteFrom('sessions').where('id', '=', id).execute())
}

/**
 * Removes remains of interrupted removals. Never rejects: no read finds them, and the next start
 * retries.
 */
export async function removeLeftOver(db: Kysely<SessionsSchema>, commits: Commits): Promise<void> {
  const remove = async (): Promise<void> => {
    const left = await db
      .selectFrom('sessions')
      .select('id')
      .where('user_id', '=', NO_USER)
      // On a shared database a young one may be a copy in progress.
      .$if(dialectOf(db) === 'postgres', (query) => query.where('updated_at', '<', Date.now() - YOUNG_MS))
      .execute()
    for (const { id } of left) await removeRows(commits, id)
  }
  await Promise.allSettled([remove()])
}

/** True if more may remain. */
function removeChunks(commits: Commits, id: string): Promise<boolean> {
  return commits.run(async (trx) => {
    const { numDeletedRows } = await trx
      .deleteFrom('output_chunks')
      .where((query) =>
        query(
          query.refTuple('session_id', 'call_id', 'start_at'),
          'in',
          query
            .selectFrom('output_chunks')
            .select(['session_id', 'call_id', 'start_at'])
            .where('session_id', '=', id)
            .limit(CHUNKS_PER_COMMIT)
            .$asTuple('session_id', 'call_id', 'start_at'),
        ),
      )
      .executeTakeFirstOrThrow()
    return Number(numDeletedRows) === CHUNKS_PER_COMMIT
  })
}

/** True if more may remain. */
function removeEvents(commits: Commits, id: string): Promise<boolean> {
  return commits.run(async (trx) => {
    const { numDeletedRows } = await trx
      .deleteFrom('events')
      .where('session_id', '=', id)
      .where('seq', 'in', (query) =>
        query.selectFrom('events').select('seq').where('session_id', '=', id).limit(EVENTS_PER_COMMIT),
      )
      .executeTakeFirstOrThrow()
    return Number(numDeletedRows) === EVENTS_PER_COMMIT
  })
}
