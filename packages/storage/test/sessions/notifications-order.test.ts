/** The outbox of notifications with several writers: a reader with a cursor misses no row. */
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { insertNotifications, notificationReads } from '../../src/shares/notifications.ts'
import { openSessionStore } from '../../src/store/open.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { openStore } from '../../src/database/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'

describeOnPostgres('on PostgreSQL', (postgres) => {
  let store: SessionStore
  let db: Kysely<SessionsSchema>
  let close: () => Promise<void>
  beforeAll(async () => {
    const url = await postgres.database('notices')
    store = await openSessionStore(url)
    const opened = await openStore<SessionsSchema>(url, 'sessions', sessionsMigrations)
    ;({ db, close } = opened)
    for (const id of ['s_1', 's_2'])
      await store.sessions.create({ id, userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
  }, 60_000)
  afterAll(async () => {
    await close?.()
    await store?.close()
  })

  const notice = (ref: string) => ({ userId: 'ann', kind: 'ended' as const, ref })

  test('a row of a transaction that commits later has a larger number', async () => {
    const [begun, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = db.transaction().execute(async (trx) => {
      await insertNotifications(trx, 's_1', [notice('slow'), notice('slow too')], Date.now())
      begun.resolve()
      await commit.promise
    })
    await begun.promise
    let isDone = false
    const quick = db
      .transaction()
      .execute((trx) => insertNotifications(trx, 's_2', [notice('quick')], Date.now()))
      .then(() => (isDone = true))
    await new Promise((resolve) => setTimeout(resolve, 100))
    // It waits for the number, so that what is read between the two is not skipped.
    expect(isDone).toBe(false)
    expect(await store.notifications.after(0, 10)).toEqual([])
    commit.resolve()
    await Promise.all([slow, quick])
    expect((await notificationReads(db).after(0, 10)).map(({ ref }) => ref)).toEqual([
      'slow',
      'slow too',
      'quick',
    ])
  })

  test('a reader beside many writers gets every row once', async () => {
    let cursor = (await notificationReads(db).after(0, 100)).at(-1)?.id ?? 0
    const writing = Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        db.transaction().execute(async (trx) => {
          await insertNotifications(trx, index % 2 === 0 ? 's_1' : 's_2', [notice(`n${index}`)], Date.now())
          await new Promise((resolve) => setTimeout(resolve, index % 5))
        }),
      ),
    )
    const seen: string[] = []
    let isOver = false
    void writing.then(() => (isOver = true))
    for (;;) {
      const wasOver = isOver
      for (const { id, ref } of await store.notifications.after(cursor, 7)) {
        cursor = id
        seen.push(ref)
      }
      if (wasOver && (await store.notifications.after(cursor, 1)).length === 0) break
    }
    expect(seen.filter((ref) => ref.startsWith('n')).toSorted()).toEqual(
      Array.from({ length: 60 }, (_, index) => `n${index}`).toSorted(),
    )
  })
})
