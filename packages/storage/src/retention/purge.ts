/**
 * Purge of a person's remaining data after their chats: usage, requests of only their chats, and
 * words in the search index. In pieces, like removals.
 */
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type Kysely, sql } from 'kysely'
import type { GroupCommit } from '../database/group-commit.ts'
import { searchIndexOf } from '../search/word-index.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

/** Sessions or frames per read. */
const PAGE = 200
const FRAME = /"frame":"([0-9a-f]+)"/g

export async function purgePerson(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
  userId: string,
): Promise<void> {
  await commits.run(async (trx) => {
    const theirs = ['usage', 'runs', 'usage_days', 'tool_days', 'submissions', 'outcomes'] as const
    for (const table of theirs) await trx.deleteFrom(table).where('user_id', '=', userId).execute()
  })
  await removeUnusedFrames(db, commits)
  await searchIndexOf(db).forgetRemoved(commits)
}

/** A frame contains the instructions of the request's user. */
async function removeUnusedFrames(
  db: Kysely<SessionsSchema>,
  commits: GroupCommit<SessionsSchema>,
): Promise<void> {
  const rows = await db.selectFrom('request_frames').select('hash').execute()
  const unused = new Set(rows.map(({ hash }) => hash))
  for (let after = ''; unused.size > 0;) {
    const sessions = await db
      .selectFrom('sessions')
      .select('id')
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)
      .execute()
    for (const { id } of sessions) {
      await pauseWhenDue()
      const marked = await sql<{ json: string }>`
        select json from events where session_id = ${id} and json like '%"frame":"%'
      `.execute(db)
      for (const { json } of marked.rows)
        for (const [, hash = ''] of json.matchAll(FRAME)) unused.delete(hash)
    }
    after = sessions.at(-1)?.id ?? after
    if (sessions.length < PAGE) break
  }
  const left = [...unused]
  for (let from = 0; from < left.length; from += PAGE)
    await commits.run((trx) =>
      trx
        .deleteFrom('request_frames')
        .where('hash', 'in', left.slice(from, from + PAGE))
        .execute(),
    )
}
