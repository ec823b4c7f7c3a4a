/** Through a pooler by session everything works; one by transaction or by statement is refused at the start. */
import { afterEach, describe, expect, test } from 'vitest'
import { openAccounts } from '../../src/accounts/accounts.ts'
import { listenToChanges } from '../../src/database/changes.ts'
import { openStore } from '../../src/database/open.ts'
import { openSessionStore } from '../../src/store/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'
import { type Pooler, pgbouncer, startPgbouncer } from '../support/pgbouncer.ts'

if (pgbouncer === undefined)
  process.stderr.write('pgbouncer: left out, there is none on this machine (apt install pgbouncer)\n')

describe.skipIf(pgbouncer === undefined)('pgbouncer', () => {
  describeOnPostgres('before PostgreSQL', (postgres) => {
    let made = 0
    let pooler: Pooler | undefined
    afterEach(async () => {
      await pooler?.stop()
      pooler = undefined
    })

    async function through(mode: 'session' | 'transaction' | 'statement') {
      const database = `pooled${++made}`
      const direct = await postgres.database(database)
      pooler = await startPgbouncer(pgbouncer ?? '', { server: postgres.folder, database, mode })
      return { database, direct, url: pooler.of(direct) }
    }

    test('by session: stores open, write, notify, lead, and go on after it was away', async () => {
      const { url, direct, database } = await through('session')
      const store = await openSessionStore(url)
      const accounts = await openAccounts(url, { secret: 'x'.repeat(40), publicUrl: 'http://127.0.0.1:8002' })
      await store.sessions.create({ id: 's', userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
      expect(await postgres.rows(database, 'select id from sessions.sessions')).toEqual([{ id: 's' }])

      const seen: string[] = []
      let wake = (): void => undefined
      const until = async (isSo: () => boolean): Promise<void> => {
        while (!isSo()) await new Promise<void>((resolve) => void (wake = resolve))
      }
      const listen = (where: string) =>
        listenToChanges({
          where,
          schema: 'sessions',
          leader: 'the one',
          changed: (changes) => (seen.push(...changes.map(({ what }) => what)), wake()),
          problem: () => wake(),
          // Only a notification wakes it.
          pollMs: 600_000,
        })
      const first = await listen(url)
      const second = await listen(direct)
      expect([first.leads(), second.leads()]).toEqual([true, false])
      const { db, close } = await openStore<{ changes: { what: string } }>(
        url,
        'sessions',
        sessionsMigrations,
      )
      const tell = async (what: string) => {
        await db.insertInto('changes').values({ what }).execute()
        await postgres.rows(database, "select pg_notify('sandlot_sessions', '')")
      }
      await tell('one')
      await until(() => seen.filter((what) => what === 'one').length === 2)

      await pooler?.restart()
      // The connections that rested are lost, and the next statement opens others.
      await expect
        .poll(() =>
          store.sessions
            .create({ id: 't', userId: 'ann', cwd: '/', mode: 'manual', at: 2 })
            .then(() => 'made', String),
        )
        .toMatch(/^made|there is a session t/i)
      await tell('two')
      await until(() => seen.filter((what) => what === 'two').length === 2)
      await Promise.all([first.close(), second.close(), close(), store.close(), accounts.close()])
    }, 60_000)

    test.each(['transaction', 'statement'] as const)('by %s: refused with what to do', async (mode) => {
      const { url, database } = await through(mode)
      await expect(openSessionStore(url)).rejects.toMatchObject({
        code: 'cannot_open',
        message: expect.stringContaining(
          'a pooler in between must work by session, and this one works by transaction. Set pool_mode = session',
        ),
      })
      const made = 'select 1 from pg_namespace where nspname = $1'
      expect(await postgres.rows(database, made, ['sessions'])).toEqual([])
    })
  })
})
