/**
 * Agent settings of teams and people, set by administrators: one row each. The agent reads all at
 * start and caches them, so that no prompt waits for them.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import {
  type AgentSettings,
  type SettingsSubject,
  agentSettings,
  idList,
} from '@sandlot/shared/account/agent-settings'
import type { Kysely } from 'kysely'
import { inChange } from '../audit/audit.ts'
import type { SessionsSchema } from '../tables/sessions.ts'

export interface SettingsRecord {
  subject: SettingsSubject
  name?: string | undefined
  settings: AgentSettings
  revision: number
  members?: readonly string[] | undefined
}

export interface AgentSettingsRows {
  /** Throws `SandlotError` for a damaged one: its restrictions must not be lost. */
  all(): Promise<SettingsRecord[]>
  /**
   * Replaces the row with the previous revision (none: revision 1). False if the stored revision
   * differs.
   */
  put(row: SettingsRecord, at: number, audit?: NewAudit): Promise<boolean>
  /** Does nothing if there is none. */
  remove(subject: SettingsSubject, audit?: NewAudit): Promise<void>
  /** In one transaction: removes the first, and puts the other unchanged. */
  replace(subject: SettingsSubject, row: SettingsRecord, at: number): Promise<void>
  /**
   * Runs only once per database, in one transaction: adds missing rows, with revision 1. False if
   * it ran before.
   */
  seed(rows: readonly Omit<SettingsRecord, 'revision'>[], at: number): Promise<boolean>
}

const CHANGE = { what: 'settings' }
/** A row of `counters`. */
const SEEDED = 'settings_seeded'

export function storedAgentSettings(db: Kysely<SessionsSchema>): AgentSettingsRows {
  return {
    async all() {
      const rows = await db.selectFrom('agent_settings').selectAll().orderBy('subject').execute()
      return rows.map(toRecord)
    },
    put: (row, at, audit) =>
      inChange(db, CHANGE, audit, async (trx) => {
        const values = toRow(row, at)
        if (row.revision === 1) {
          const [added] = await trx
            .insertInto('agent_settings')
            .values(values)
            .onConflict((conflict) => conflict.column('subject').doNothing())
            .execute()
          return Number(added?.numInsertedOrUpdatedRows) === 1
        }
        const [changed] = await trx
          .updateTable('agent_settings')
          .set(values)
          .where('subject', '=', values.subject)
          .where('revision', '=', row.revision - 1)
          .execute()
        return Number(changed?.numUpdatedRows) === 1
      }),
    async remove(subject, audit) {
      await inChange(db, CHANGE, audit, (trx) =>
        trx.deleteFrom('agent_settings').where('subject', '=', keyOf(subject)).execute(),
      )
    },
    replace: (subject, row, at) =>
      inChange(db, CHANGE, undefined, async (trx) => {
        await trx.deleteFrom('agent_settings').where('subject', '=', keyOf(subject)).execute()
        await upsert(trx, row, at)
      }),
    seed: (rows, at) =>
      inChange(db, CHANGE, undefined, async (trx) => {
        const [first] = await trx
          .insertInto('counters')
          .values({ name: SEEDED, value: 1 })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .execute()
        if (Number(first?.numInsertedOrUpdatedRows) !== 1) return false
        for (const row of rows)
          await trx
            .insertInto('agent_settings')
            .values(toRow({ ...row, revision: 1 }, at))
            .onConflict((conflict) => conflict.column('subject').doNothing())
            .execute()
        return true
      }),
  }
}

async function upsert(db: Kysely<SessionsSchema>, record: SettingsRecord, at: number): Promise<void> {
  const { subject, ...row } = toRow(record, at)
  await db
    .insertInto('agent_settings')
    .values({ subject, ...row })
    .onConflict((conflict) => conflict.column('subject').doUpdateSet(row))
    .execute()
}

function toRow({ subject, name, settings, revision, members: of }: SettingsRecord, at: number) {
  return {
    subject: keyOf(subject),
    name: name ?? null,
    settings: JSON.stringify(settings),
    revision,
    members: of === undefined ? null : JSON.stringify(of),
    updated_at: at,
  }
}

function toRecord(row: SessionsSchema['agent_settings']): SettingsRecord {
  try {
    const [, kind, id = ''] = /^(team|person):(.+)$/s.exec(row.subject) ?? []
    return {
      subject: { kind: kind === 'team' ? 'team' : 'person', id },
      name: row.name ?? undefined,
      settings: agentSettings.parse(JSON.parse(row.settings)),
      revision: row.revision,
      members: row.members === null ? undefined : idList.parse(JSON.parse(row.members)),
    }
  } catch (error) {
    throw new SandlotError(
      'internal',
      `The settings of ${row.subject} in sessions.db are damaged. Restore it from a backup, or delete that row of agent_settings and set them again.`,
      { cause: error },
    )
  }
}

function keyOf({ kind, id }: SettingsSubject): string {
  return `${kind}:${id}`
}

export async function addAgentSettings({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('agent_settings')
    .addColumn('subject', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text')
    .addColumn('settings', 'text', (column) => column.notNull())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('members', 'text')
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .execute()
}
