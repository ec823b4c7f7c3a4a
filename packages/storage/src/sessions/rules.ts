/** Users' rules: from “always” answers, and written ones. Revoking one deletes its row. */
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { type Rule, ruleEffect, ruleMatch } from '@sandlot/shared/chat/rules'
import type { Kysely, Selectable, Transaction } from 'kysely'
import { inSharedChange } from '../audit/audit.ts'
import { StorageError } from '../storage-error.ts'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { UserRule } from '../tables/records.ts'

/** Per user: every call is compared with each. */
const MAX_RULES = 1_000

export interface RuleStore {
  /**
   * All rules of this user, including expired ones, in the order of creation. Without those whose
   * prompt is not running, or whose session is removed. A damaged rule that allows is skipped,
   * which only restricts more. Rejects with `corrupt` for a damaged one that denies or asks, or
   * may.
   */
  list(userId: string): Promise<Rule[]>
  /** Rejects with `conflict` if the id exists, with `too_large` above `MAX_RULES`. */
  add(userId: string, rule: UserRule, audit?: NewAudit): Promise<void>
  /** True if this user had such a rule. */
  revoke(userId: string, id: string, audit?: NewAudit): Promise<boolean>
}

/** `leftOut` is called once for every skipped damaged rule; must not throw. */
export function storedRules(
  db: Kysely<SessionsSchema>,
  leftOut: (why: StorageError) => void = () => undefined,
): RuleStore {
  const reported = new Set<string>()
  const leaveOut = (why: StorageError, id: string): void => {
    if (!reported.has(id)) leftOut(why)
    reported.add(id)
  }
  return {
    async list(userId) {
      const rows = await db
        .selectFrom('rules')
        .selectAll()
        .where('user_id', '=', userId)
        .where((query) =>
          query.or([
            query('session_id', 'is', null),
            query.exists(
              query
                .selectFrom('sessions')
                .select('sessions.id')
                .whereRef('sessions.id', '=', 'rules.session_id')
                .where((of) =>
                  of.or([
                    of('rules.prompt_id', 'is', null),
                    of('sessions.running_prompt_id', '=', of.ref('rules.prompt_id')),
                  ]),
                ),
            ),
          ]),
        )
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      return rows.flatMap((row) => {
        const rule = toRule(row)
        if (!(rule instanceof StorageError)) return rule
        // A skipped one could be one that denies.
        if (row.effect !== 'allow') throw rule
        leaveOut(rule, row.id)
        return []
      })
    },
    add: (userId, rule, audit) =>
      inSharedChange(db, { what: 'rules', id: userId }, audit, (trx) => insertRules(trx, userId, [rule])),
    revoke: (userId, id, audit) =>
      inSharedChange(db, { what: 'rules', id: userId }, audit, async (trx) => {
        const gone = await trx
          .deleteFrom('rules')
          .where('user_id', '=', userId)
          .where('id', '=', id)
          .returning('id')
          .executeTakeFirst()
        return gone !== undefined
      }),
  }
}

/** Throws `conflict` or `too_large`, which rolls back the whole transaction. */
export async function insertRules(
  trx: Transaction<SessionsSchema>,
  userId: string,
  rules: readonly UserRule[],
): Promise<void> {
  const { count } = await trx
    .selectFrom('rules')
    .select((query) => query.fn.countAll<number>().as('count'))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
  if (count + rules.length > MAX_RULES)
    throw new SandlotError('too_large', `A person has at most ${MAX_RULES} rules. Revoke some of them first.`)
  for (const rule of rules) {
    const stored = await trx
      .insertInto('rules')
      .values({
        id: rule.id,
        user_id: userId,
        effect: rule.effect,
        match_json: JSON.stringify(rule.match),
        created_at: rule.createdAt,
        expires_at: rule.expiresAt ?? null,
        session_id: rule.endsWith?.sessionId ?? null,
        prompt_id: rule.endsWith?.promptId ?? null,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst()
    if (stored === undefined) throw new SandlotError('conflict', `There is a rule ${rule.id} already.`)
  }
}

/** Removes rules of the session's other prompts, when `runningPromptId` starts. */
export async function endRules(
  trx: Transaction<SessionsSchema>,
  sessionId: string,
  runningPromptId: string | null,
): Promise<void> {
  await trx
    .deleteFrom('rules')
    .where('session_id', '=', sessionId)
    .where('prompt_id', 'is not', null)
    .$if(runningPromptId !== null, (query) => query.where('prompt_id', '!=', runningPromptId))
    .execute()
}

/** The error if it is damaged. */
function toRule(row: Selectable<SessionsSchema['rules']>): Rule | StorageError {
  try {
    return {
      id: row.id,
      effect: ruleEffect.parse(row.effect),
      match: ruleMatch.parse(JSON.parse(row.match_json)),
      origin: 'user',
      createdAt: row.created_at,
      ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
      ...(row.session_id === null
        ? {}
        : {
            endsWith: {
              sessionId: row.session_id,
              ...(row.prompt_id === null ? {} : { promptId: row.prompt_id }),
            },
          }),
    }
  } catch (cause) {
    const words = `The rule ${row.id} is damaged; revoke it and write it again: ${messageOf(cause)}`
    return new StorageError('corrupt', words, { cause })
  }
}

export async function addRules({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('rules')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('effect', 'text', (column) => column.notNull())
    .addColumn('match_json', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .execute()
  await schema.createIndex('rules_by_user').on('rules').columns(['user_id', 'created_at']).execute()
}

/** Rules that end with a session or a prompt. */
export async function addRuleEnds({ schema }: Kysely<unknown>): Promise<void> {
  // Two statements: SQLite adds one column at a time.
  await schema
    .alterTable('rules')
    .addColumn('session_id', 'text', (column) => column.references('sessions.id').onDelete('cascade'))
    .execute()
  await schema.alterTable('rules').addColumn('prompt_id', 'text').execute()
}
