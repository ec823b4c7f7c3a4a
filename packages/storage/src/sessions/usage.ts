/** What users have spent: a row for each answer of a model, which outlives its session. */
import type { Kysely } from 'kysely'
import type { SessionsSchema } from './schema.ts'

/** Migration: what an answer cost, in US dollars; null where no price was known. */
export async function addUsageCost({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('usage').addColumn('cost', 'double precision').execute()
}

/** As `SessionStore.spentSince`. */
export async function spentSince(
  db: Kysely<SessionsSchema>,
  userId: string,
  at: number,
): Promise<{ tokens: number; cost: number; unpriced: number }> {
  const row = await db
    .selectFrom('usage')
    .select(({ fn }) => [
      fn.sum<number | string | null>('input').as('input'),
      fn.sum<number | string | null>('output').as('output'),
      fn.sum<number | string | null>('cost').as('cost'),
      fn.countAll<number | string>().as('answers'),
      fn.count<number | string>('cost').as('priced'),
    ])
    .where('user_id', '=', userId)
    .where('at', '>=', at)
    .executeTakeFirst()
  // PostgreSQL sums and counts into text.
  return {
    tokens: Number(row?.input ?? 0) + Number(row?.output ?? 0),
    cost: Number(row?.cost ?? 0),
    unpriced: Number(row?.answers ?? 0) - Number(row?.priced ?? 0),
  }
}
