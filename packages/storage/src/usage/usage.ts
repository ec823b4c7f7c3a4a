/**
 * Usage of people: a row for each model answer, and for each run of a prompt. Both outlive their
 * session.
 */
import { randomUUID } from 'node:crypto'
import { idList } from '@sandlot/shared/account/agent-settings'
import { type Kysely, type Transaction, sql } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'
import { DAY_MS, type Together, dayOf, teamsOf, usageReads } from './usage-sums.ts'

type Trx = Transaction<SessionsSchema>

/** A user's usage in a period, in all sessions, including deleted ones. */
export interface UserSpent {
  /** Model answers, including summaries. */
  turns: number
  /** Calls, including refused ones. */
  calls: number
  /** In and out. */
  tokens: number
  /** US dollars of the answers with known cost. */
  cost: number
  /** Answers of unknown cost. */
  unpriced: number
  /** Running milliseconds of prompts within the period; concurrent ones add up. */
  ms: number
}

/** Combined usage: the sum over users. */
export type SpentTogether = Omit<UserSpent, 'unpriced'>

export interface SpentReads {
  /**
   * A user's usage since `at`, in all sessions, including deleted ones. Running prompts count until
   * `now`. Epoch milliseconds.
   */
  spentSince(userId: string, at: number, now: number): Promise<UserSpent>
  /**
   * Combined usage since midnight UTC of this day (epoch milliseconds). Running prompts count until
   * `now`; without it `ms` is 0.
   */
  spentTogether(of: Together, at: number, now?: number): Promise<SpentTogether>
}

export function spentReads(db: Kysely<SessionsSchema>): SpentReads {
  return {
    spentSince: (userId, at, now) => spentSince(db, userId, at, now),
    spentTogether: (of, at, now) => spentTogether(db, of, dayOf(at), now),
  }
}

async function spentSince(
  db: Kysely<SessionsSchema>,
  userId: string,
  at: number,
  now: number,
): Promise<UserSpent> {
  // Whole days are summed already.
  const since = Math.ceil(at / DAY_MS)
  const parts = [sumsOfDays(db, userId, since), sumsOfPart(db, userId, at, since * DAY_MS)]
  const [days, part] = await Promise.all(parts)
  const runs = await db
    .selectFrom('runs')
    .select(['started_at', 'ended_at'])
    .where('user_id', '=', userId)
    .where((run) => run.or([run('ended_at', 'is', null), run('ended_at', '>', at)]))
    .execute()
  // PostgreSQL sums and counts into text.
  const sum = (name: keyof AnswerSums): number => Number(days?.[name] ?? 0) + Number(part?.[name] ?? 0)
  return {
    turns: sum('answers'),
    calls: sum('calls'),
    tokens: sum('input') + sum('output'),
    cost: sum('cost'),
    unpriced: sum('unpriced'),
    ms: runs.reduce((total, { started_at, ended_at }) => {
      const ms = Number(ended_at ?? now) - Math.max(Number(started_at), at)
      // A clock that was set back must not reduce usage.
      return total + Math.max(ms, 0)
    }, 0),
  }
}

type AnswerSums = Record<
  'answers' | 'calls' | 'input' | 'output' | 'cost' | 'unpriced',
  number | string | null
>

function sumsOfDays(
  db: Kysely<SessionsSchema>,
  userId: string,
  since: number,
): Promise<AnswerSums | undefined> {
  return db
    .selectFrom('usage_days')
    .select(({ fn }) => [
      fn.sum<number | string | null>('answers').as('answers'),
      fn.sum<number | string | null>('calls').as('calls'),
      fn.sum<number | string | null>('input').as('input'),
      fn.sum<number | string | null>('output').as('output'),
      fn.sum<number | string | null>('cost').as('cost'),
      fn.sum<number | string | null>('unpriced').as('unpriced'),
    ])
    .where('user_id', '=', userId)
    .where('day', '>=', since)
    .executeTakeFirst()
}

/** For a partial day: from `from` until before `to`. */
async function sumsOfPart(
  db: Kysely<SessionsSchema>,
  userId: string,
  from: number,
  to: number,
): Promise<AnswerSums | undefined> {
  if (from === to) return undefined
  return db
    .selectFrom('usage')
    .select(({ fn }) => [
      fn.countAll<number | string>().as('answers'),
      fn.sum<number | string | null>('calls').as('calls'),
      fn.sum<number | string | null>('input').as('input'),
      fn.sum<number | string | null>('output').as('output'),
      fn.sum<number | string | null>('cost').as('cost'),
      sql<number | string>`count(*) - count(cost)`.as('unpriced'),
    ])
    .where('user_id', '=', userId)
    .where('at', '>=', from)
    .where('at', '<', to)
    .executeTakeFirst()
}

/**
 * Combined usage since the day, including days that a clock has skipped: one that was set back must
 * not reduce usage. Without `now`, running time is 0.
 */
async function spentTogether(
  db: Kysely<SessionsSchema>,
  of: Together,
  sinceDay: number,
  now: number | undefined,
): Promise<SpentTogether> {
  const range = { from: sinceDay, to: Number.MAX_SAFE_INTEGER }
  const [all] = of.kind === 'deployment' ? await usageReads(db).sums(range, []) : []
  const team =
    of.kind === 'team'
      ? (await usageReads(db).sums(range, ['team'])).find((sum) => sum.team === of.id)
      : undefined
  const { answers = 0, calls = 0, input = 0, output = 0, cost } = all ?? team ?? {}
  const ms = now === undefined ? 0 : await ranTogether(db, of, sinceDay * DAY_MS, now)
  return { turns: answers, calls, tokens: input + output, cost: cost ?? 0, ms }
}

/** Running milliseconds since `at`; concurrent prompts add up. */
async function ranTogether(
  db: Kysely<SessionsSchema>,
  of: Together,
  at: number,
  now: number,
): Promise<number> {
  const end = sql`coalesce(ended_at, ${now})`
  const begin = sql`case when started_at > ${at} then started_at else ${at} end`
  const ran = sql<number | string>`sum(case when ${end} > ${begin} then ${end} - ${begin} else 0 end)`
  const since = db
    .selectFrom('runs')
    .where((run) => run.or([run('ended_at', 'is', null), run('ended_at', '>', at)]))
  if (of.kind === 'deployment') {
    const all = await since.select(ran.as('ms')).executeTakeFirst()
    return Number(all?.ms ?? 0)
  }
  const people = await db.selectFrom('people').select(['user_id', 'teams']).execute()
  const today = new Map(people.map((person) => [person.user_id, person.teams]))
  const rows = await since
    .select(['user_id', 'teams', ran.as('ms')])
    .groupBy(['user_id', 'teams'])
    .execute()
  const theirs = rows.filter(({ user_id, teams }) => {
    const ids = teams ?? today.get(user_id)
    return ids !== undefined && ids !== null && idList.parse(JSON.parse(ids)).includes(of.id)
  })
  return theirs.reduce((sum, { ms }) => sum + Number(ms), 0)
}

/** At `at` the session starts this prompt, or none: its previous run has ended. */
export async function recordRun(
  trx: Trx,
  session: { id: string; userId: string },
  promptId: string | null,
  at: number,
): Promise<void> {
  await trx
    .updateTable('runs')
    .set({ ended_at: at })
    .where('session_id', '=', session.id)
    .where('ended_at', 'is', null)
    .execute()
  if (promptId === null) return
  await trx
    .insertInto('runs')
    .values({
      id: randomUUID(),
      user_id: session.userId,
      session_id: session.id,
      prompt_id: promptId,
      started_at: at,
      ended_at: null,
      teams: await teamsOf(trx, session.userId),
    })
    .execute()
}

/** US dollars of an answer; null if no price was known. */
export async function addUsageCost({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('usage').addColumn('cost', 'double precision').execute()
}

/** Number of an answer's calls: 0 for older ones, where it is not known. */
export async function addUsageCalls({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .alterTable('usage')
    .addColumn('calls', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
}

/**
 * Runs of prompts. One that runs now, and is resumed by the next start, counts from its last event
 * on.
 */
export async function addRuns(db: Kysely<unknown>): Promise<void> {
  const { schema } = db
  await schema
    .createTable('runs')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('session_id', 'text', (column) => column.notNull())
    .addColumn('prompt_id', 'text', (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('ended_at', 'bigint')
    .execute()
  await schema.createIndex('runs_by_user').on('runs').columns(['user_id', 'ended_at']).execute()
  await schema
    .createIndex('runs_open')
    .on('runs')
    .column('session_id')
    .where(sql.ref('ended_at'), 'is', null)
    .execute()
  await sql`
    insert into runs (id, user_id, session_id, prompt_id, started_at)
    select id, user_id, id, running_prompt_id, updated_at from sessions where running_prompt_id is not null
  `.execute(db)
}

/** Teams at the start of a prompt, and an index for all runs in a period. */
export async function addRunTeams({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('runs').addColumn('teams', 'text').execute()
  await schema.createIndex('runs_by_end').on('runs').column('ended_at').execute()
}
