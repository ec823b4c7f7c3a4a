/** A year of counted answers, for benchmarks. */
import { sql } from 'kysely'
import { openWriter } from '../src/database/database.ts'
import type { SessionsSchema } from '../src/tables/sessions.ts'
import { sessionsMigrations } from '../src/store/migrations.ts'

export const USAGE_DAYS = { from: '2025-01-01', to: '2025-12-31' }

/**
 * Answers of all people and three models, as a version wrote them that had no sums: those are made when the file is opened.
 */
export async function makeUsage(path: string, people: readonly string[], answers: number): Promise<void> {
  const before = Object.entries(sessionsMigrations).filter(([name]) => name < '035')
  const old = await openWriter<SessionsSchema>(path, Object.fromEntries(before))
  await sql`
    with recursive nth(n) as (select 0 where ${answers} > 0 union all select n + 1 from nth where n + 1 < ${answers})
    insert into usage (id, user_id, session_id, prompt_id, model, input, output, cached, reasoning, cost, calls, at)
    select 'u' || n, json_extract(${JSON.stringify(people)}, '$[' || (n / 365 % ${sql.lit(people.length)}) || ']'), 's', 'p', 'model-' || (n / 7300 % 3),
      12000, 600, 9000, 100, 0.01, 2, ${Date.parse(USAGE_DAYS.from)} + (n % 365) * 86400000
    from nth
  `.execute(old.db)
  await old.close()
}
