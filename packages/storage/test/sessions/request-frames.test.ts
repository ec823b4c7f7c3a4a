/** Frames that the version before stored: its marks are in old events, and a purge reads them. */
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { openStore } from '../../src/database/open.ts'
import { openSessionStore } from '../../src/store/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { message } from '../support/contract.ts'
import { onBoth } from '../support/databases.ts'

onBoth(({ fresh }) => {
  test('of a purged person no frame is left that only they used; old marks are kept whole', async () => {
    const where = await fresh()
    const store = await openSessionStore(where)
    const { db, close } = await openStore<SessionsSchema>(where, 'sessions', sessionsMigrations)
    for (const [id, userId, frame] of [
      ['s', 'ann', 'aa01'],
      ['b', 'bob', 'bb02'],
    ] as const) {
      await store.sessions.create({ id, userId, cwd: '/workspace', mode: 'manual', at: 1 })
      await store.log.append(id, [message('x', { request: { body: 'MARK' } })])
      const mark = `"upTo":1,"frame":"${frame}","body":"d1","from":0,"digests":[]`
      await sql`update events set json = replace(json, '"body":"MARK"', ${mark}) where session_id = ${id}`.execute(
        db,
      )
      await db.insertInto('request_frames').values({ hash: frame, json: '{}' }).execute()
    }
    const [event] = await store.log.read('b')
    expect(event?._meta.sandlot.request).toEqual({
      upTo: 1,
      frame: 'bb02',
      body: 'd1',
      from: 0,
      digests: [],
    })
    await store.sessions.remove('s')
    await store.people.known.purge('ann')
    expect(await db.selectFrom('request_frames').select('hash').execute()).toEqual([{ hash: 'bb02' }])
    await close()
    await store.close()
  })
})
