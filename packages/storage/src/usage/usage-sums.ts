/**
 * Usage, summed by day (UTC), person and model, and by day, person and tool. The sums change in the
 * transaction that stores an answer or an outcome, outlive the chat, and are the source of pages
 * and limits: a page over years costs its days, not its answers.
 *
 * Each sum has the person's teams at that time. Older ones do not, and count for the person's
 * current teams.
 */
import { idList } from '@sandlot/shared/account/agent-settings'
import type { CountedTool, CountedUsage } from '@sandlot/shared/admin/usage'
import { type Kysely, type RawBuilder, type Transaction, sql } from 'kysely'
import type { SessionsSchema, UsageSumKey } from '../tables/sessions.ts'
import type { Effects } from '../tables/records.ts'

type Trx = Transaction<SessionsSchema>

export const DAY_MS = 86_400_000

/** Days since 1970, inclusive. For all people, or one. */
interface UsageRange {
  from: number
  to: number
  userId?: string | undefined
  model?: string | undefined
}

/** Dimensions of a sum. A person in two teams counts for both, so teams add up to more. */
type UsageKey = 'day' | 'person' | 'team' | 'model' | 'tool'

/** A team’s id; null: people without a team. */
export type KeyValues = { day?: number; person?: string; team?: string | null; model?: string; tool?: string }

export interface UsageReads {
  /** Sums of answers. Without keys one sum, also of nothing. In no order. */
  sums(range: UsageRange, by: readonly Exclude<UsageKey, 'tool'>[]): Promise<(CountedUsage & KeyValues)[]>
  /** Sums of ended calls. */
  tools(range: UsageRange, by: readonly Exclude<UsageKey, 'model'>[]): Promise<(CountedTool & KeyValues)[]>
}

/** People with a shared limit. */
export type Together = { kind: 'team'; id: string } | { kind: 'deployment' }

const USAGE_SUMS = [
  'answers',
  'calls',
  'input',
  'output',
  'cached',
  'reasoning',
  'cost',
  'unpriced',
  'cached_of',
] as const
/** Cached tokens of the rows whose `cached_of` is known. */
const CACHED_KNOWN = 'cached_known'
const TOOL_SUMS = ['calls', 'failed', 'run_ms', 'wait_ms', 'output_bytes'] as const
const COLUMNS = { day: 'day', person: 'user_id', model: 'model', tool: 'tool' } as const

/** The day of a time, since 1970. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS)
}

/** The user’s teams as JSON; null if not known. */
export async function teamsOf(trx: Trx, userId: string): Promise<string | null> {
  const row = await trx.selectFrom('people').select('teams').where('user_id', '=', userId).executeTakeFirst()
  return row?.teams ?? null
}

/** Adds one answer. */
export async function sumUsage(
  trx: Trx,
  of: { userId: string; teams: string | null },
  usage: NonNullable<Effects['usage']>,
): Promise<void> {
  const sums = {
    answers: 1,
    calls: usage.calls ?? 0,
    input: usage.input,
    output: usage.output,
    cached: usage.cached ?? 0,
    reasoning: usage.reasoning,
    cost: usage.cost ?? 0,
    unpriced: usage.cost === undefined ? 1 : 0,
    cached_of: usage.cached === undefined ? 0 : usage.input,
  }
  await trx
    .insertInto('usage_days')
    .values({ ...keyOf(of, usage.at), model: usage.model, ...sums })
    .onConflict((conflict) =>
      conflict
        .columns(['user_id', 'day', 'model', 'teams'])
        .doUpdateSet((row) =>
          Object.fromEntries(
            USAGE_SUMS.map((name) => [
              name,
              row(row.ref(`usage_days.${name}`), '+', row.ref(`excluded.${name}`)),
            ]),
          ),
        ),
    )
    .execute()
}

/** Adds one call that has ended. */
export async function sumOutcome(
  trx: Trx,
  of: { userId: string; teams: string | null },
  outcome: NonNullable<Effects['outcome']>,
): Promise<void> {
  const sums = {
    calls: 1,
    failed: outcome.status === 'failed' ? 1 : 0,
    run_ms: Math.round(outcome.runMs),
    wait_ms: Math.round(outcome.waitMs),
    output_bytes: outcome.outputBytes ?? 0,
  }
  await trx
    .insertInto('tool_days')
    .values({ ...keyOf(of, outcome.at), tool: outcome.tool, ...sums })
    .onConflict((conflict) =>
      conflict
        .columns(['user_id', 'day', 'tool', 'teams'])
        .doUpdateSet((row) =>
          Object.fromEntries(
            TOOL_SUMS.map((name) => [
              name,
              row(row.ref(`tool_days.${name}`), '+', row.ref(`excluded.${name}`)),
            ]),
          ),
        ),
    )
    .execute()
}

function keyOf({ userId, teams }: { userId: string; teams: string | null }, at: number): UsageSumKey {
  return { user_id: userId, teams: teams ?? '', day: dayOf(at) }
}

export function usageReads(db: Kysely<SessionsSchema>): UsageReads {
  return {
    async sums(range, by) {
      const names = [...USAGE_SUMS, CACHED_KNOWN]
      const rows = await groupedRows(db, 'usage_days', range, by, names)
      return splitByTeam(db, rows, by, names).then((split) =>
        split.map(({ key, sums }) => ({ ...key, ...toUsage(sums) })),
      )
    },
    async tools(range, by) {
      const rows = await groupedRows(db, 'tool_days', range, by, TOOL_SUMS)
      return splitByTeam(db, rows, by, TOOL_SUMS).then((split) =>
        split.map(({ key, sums }) => ({ ...key, ...toTool(sums) })),
      )
    },
  }
}

type Row = Record<string, string | number | null>

/** With the columns `day`, `user_id`, … of the keys, and `teams` and `owner` for teams. */
async function groupedRows(
  db: Kysely<SessionsSchema>,
  table: 'usage_days' | 'tool_days',
  { from, to, userId, model }: UsageRange,
  by: readonly UsageKey[],
  sums: readonly string[],
): Promise<Row[]> {
  const keys = by.flatMap((key) => (key === 'team' ? [] : [sql.ref(COLUMNS[key])]))
  // The user whose current teams count, if those of that time are not known.
  const ownerOfTeams = sql`case when teams = '' then user_id else '' end`
  const groups = by.includes('team') ? [...keys, sql.ref('teams'), ownerOfTeams] : keys
  const selected = [
    ...keys,
    ...(by.includes('team') ? [sql.ref('teams'), sql`${ownerOfTeams} as owner`] : []),
    ...sums.map((name) => sql`sum(${summed(name)}) as ${sql.ref(name)}`),
  ]
  const { rows } = await sql<Row>`
    select ${sql.join(selected)} from ${sql.table(table)}
    where day >= ${from} and day <= ${to}
    ${userId === undefined ? sql`` : sql`and user_id = ${userId}`}
    ${model === undefined ? sql`` : sql`and model = ${model}`}
    ${groups.length === 0 ? sql`` : sql`group by ${sql.join(groups)}`}
  `.execute(db)
  return rows
}

function summed(name: string): RawBuilder<unknown> {
  return name === CACHED_KNOWN ? sql`case when cached_of is null then 0 else cached end` : sql.ref(name)
}

interface Split {
  key: KeyValues
  sums: Record<string, number>
}

async function splitByTeam(
  db: Kysely<SessionsSchema>,
  rows: readonly Row[],
  by: readonly UsageKey[],
  names: readonly string[],
): Promise<Split[]> {
  const all = rows.map((row) => ({
    row,
    key: keyIn(row, by),
    // PostgreSQL sums and counts into text.
    sums: Object.fromEntries(names.map((name) => [name, Number(row[name] ?? 0)])),
  }))
  if (!by.includes('team')) return all
  const now = await db.selectFrom('people').select(['user_id', 'teams']).execute()
  const today = new Map(now.map((person) => [person.user_id, person.teams]))
  const split = new Map<string, Split>()
  for (const { row, key, sums } of all) {
    const text = row['teams'] === '' ? (today.get(String(row['owner'])) ?? '[]') : String(row['teams'])
    const teams: readonly (string | null)[] = idList.parse(JSON.parse(text))
    for (const team of teams.length === 0 ? [null] : teams) {
      const id = JSON.stringify([key.day, key.person, key.model, key.tool, team])
      const before = split.get(id)
      const added = names.map((name) => [name, (before?.sums[name] ?? 0) + (sums[name] ?? 0)])
      split.set(id, { key: { ...key, team }, sums: Object.fromEntries(added) })
    }
  }
  return [...split.values()]
}

function keyIn(row: Row, by: readonly UsageKey[]): KeyValues {
  return {
    ...(by.includes('day') ? { day: Number(row['day']) } : {}),
    ...(by.includes('person') ? { person: String(row['user_id']) } : {}),
    ...(by.includes('model') ? { model: String(row['model']) } : {}),
    ...(by.includes('tool') ? { tool: String(row['tool']) } : {}),
  }
}

function toUsage(sums: Record<string, number>): CountedUsage {
  const { answers = 0, calls = 0, input = 0, output = 0, cached = 0, reasoning = 0, unpriced = 0 } = sums
  // The cost of no answers is known: nothing.
  const cost = answers > 0 && unpriced === answers ? null : (sums['cost'] ?? 0)
  const { cached_of: of = 0, [CACHED_KNOWN]: known = 0 } = sums
  // Some providers count cached tokens that are not in their input.
  const cachedShare = of === 0 ? null : Math.min(1, known / of)
  return { answers, calls, input, output, cached, cachedShare, reasoning, cost, unpriced }
}

function toTool(sums: Record<string, number>): CountedTool {
  const {
    calls = 0,
    failed = 0,
    run_ms: runMs = 0,
    wait_ms: waitMs = 0,
    output_bytes: outputBytes = 0,
  } = sums
  return { calls, failed, runMs, waitMs, outputBytes }
}

/** Teams at the time of usage, and the user of an outcome. */
export async function addUsageOwners({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('usage').addColumn('teams', 'text').execute()
  await schema.alterTable('outcomes').addColumn('user_id', 'text').execute()
  await schema.alterTable('outcomes').addColumn('at', 'bigint').execute()
  await schema.alterTable('outcomes').addColumn('output_bytes', 'bigint').execute()
}

/** Sums of all existing answers, and of calls from now on. */
export async function addUsageSums(db: Kysely<unknown>): Promise<void> {
  const count = ['answers', 'calls', 'input', 'output', 'cached', 'reasoning'] as const
  const usage = keyColumns(db, 'usage_days', 'model')
  await count
    .reduce((table, name) => table.addColumn(name, 'bigint', (column) => column.notNull()), usage)
    .addColumn('cost', 'double precision', (column) => column.notNull())
    .addColumn('unpriced', 'bigint', (column) => column.notNull())
    .execute()
  const tools = keyColumns(db, 'tool_days', 'tool')
  await TOOL_SUMS.reduce(
    (table, name) => table.addColumn(name, 'bigint', (column) => column.notNull()),
    tools,
  ).execute()
  for (const table of ['usage_days', 'tool_days'])
    await db.schema.createIndex(`${table}_by_day`).on(table).column('day').execute()
  // Both databases truncate an integer division towards zero.
  await sql`
    insert into usage_days
      (user_id, teams, day, model, answers, calls, input, output, cached, reasoning, cost, unpriced)
    select user_id, '', at / ${sql.lit(DAY_MS)}, model, count(*), sum(calls), sum(input), sum(output),
      sum(cached), sum(reasoning), coalesce(sum(cost), 0), count(*) - count(cost)
    from usage group by user_id, at / ${sql.lit(DAY_MS)}, model
  `.execute(db)
}

/** Input tokens of answers whose cached tokens the provider counted; null in earlier sums. */
export async function addCachedOf({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('usage_days').addColumn('cached_of', 'bigint').execute()
}

function keyColumns({ schema }: Kysely<unknown>, table: string, of: string) {
  return schema
    .createTable(table)
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('teams', 'text', (column) => column.notNull())
    .addColumn('day', 'bigint', (column) => column.notNull())
    .addColumn(of, 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${table}_key`, ['user_id', 'day', of, 'teams'])
}
