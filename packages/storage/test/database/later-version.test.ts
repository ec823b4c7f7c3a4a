/**
 * Two versions on one PostgreSQL, like during a rolling update: effects of the later one's
 * migrations on the earlier one.
 */
import { textOf } from '@sandlot/shared/chat/events'
import { type Kysely, sql } from 'kysely'
import { beforeAll, expect, test } from 'vitest'
import type { Migrations } from '../../src/database/database.ts'
import { openStore } from '../../src/database/open.ts'
import { openSessionStore } from '../../src/store/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { message } from '../support/contract.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'

const ADDS = async (db: Kysely<unknown>): Promise<void> => {
  await sql`alter table events add column later text not null default 'later'`.execute(db)
  await sql`create table later_things (id text primary key)`.execute(db)
}

const WAITS = "select pid from pg_locks where not granted and mode = 'AccessExclusiveLock'"

describeOnPostgres('two versions', (postgres) => {
  let made = 0
  beforeAll(async () => {
    await (await openSessionStore(await postgres.database('empty'))).close()
  }, 60_000)
  const fresh = (): Promise<string> => postgres.database(`later_${++made}`, 'empty')

  /** The later version's start. */
  const migrate = async (url: string, later: Migrations): Promise<void> =>
    (await openStore(url, 'sessions', { ...sessionsMigrations, ...later })).close()

  test('this version goes on, and starts, where a later one has added something', async () => {
    const url = await fresh()
    const running = await openSessionStore(url)
    await running.sessions.create({ id: 's', userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
    await migrate(url, { '998_later': ADDS })
    await running.log.append('s', [message('went on')])
    await running.close()
    const started = await openSessionStore(url)
    await started.log.append('s', [message('started')])
    expect(
      (await started.log.read('s')).flatMap((event) =>
        event.sessionUpdate === 'agent_message_chunk' ? [textOf(event)] : [],
      ),
    ).toEqual(['went on', 'started'])
    await started.close()
  })

  test('what a later version has taken away keeps out those that still use it, by its name', async () => {
    const newest = Object.keys(sessionsMigrations).at(-1) ?? ''
    const number = newest.split('_', 1)[0] ?? ''
    const url = await fresh()
    await migrate(url, { [`998_without_a_thing_after_${number}`]: ADDS })
    await (await openSessionStore(url)).close()
    await postgres.rows(
      `later_${made}`,
      "insert into sessions.kysely_migration values ('999_without_another_after_998', '2030')",
    )
    await expect(openSessionStore(url)).rejects.toMatchObject({
      name: 'StorageError',
      code: 'newer_schema',
      message: expect.stringContaining('(it has 999_without_another_after_998)'),
    })
  })

  test('a version that lacks one of its own changes is of another line, and refused', async () => {
    const url = await fresh()
    await migrate(url, { '998_later': ADDS })
    const other = openStore(url, 'sessions', { ...sessionsMigrations, '997_ours': ADDS })
    await expect(other).rejects.toMatchObject({ code: 'newer_schema' })
  })

  test('a migration that waits for a table in use keeps nobody else from it', async () => {
    const url = await fresh()
    const store = await openSessionStore(url)
    await store.sessions.create({ id: 's', userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
    // Holds all tables, like a backup.
    const backup = await openStore(url, 'sessions', sessionsMigrations)
    const held = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const reading = backup.db.transaction().execute(async (trx) => {
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx)
      await sql`lock table events in access share mode`.execute(trx)
      held.resolve()
      await release.promise
    })
    await held.promise
    let isMigrated = false
    const migrating = migrate(url, { '998_later': ADDS }).then(() => void (isMigrated = true))
    await expect.poll(() => postgres.rows(`later_${made}`, WAITS), { timeout: 10_000 }).toHaveLength(1)
    await store.log.append('s', [message('meanwhile')])
    expect(isMigrated).toBe(false)
    release.resolve()
    await reading
    await migrating
    await store.log.append('s', [message('after')])
    expect(await store.log.read('s')).toHaveLength(2)
    await backup.close()
    await store.close()
  }, 60_000)
})
