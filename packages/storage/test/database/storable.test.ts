/**
 * Text that came through no request (from models, programs and servers), cleaned before it is
 * stored.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import { openStore } from '../../src/database/open.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { message } from '../support/contract.ts'
import { onBoth } from '../support/databases.ts'

/** Three bytes each in UTF-8, and hardly compressed. */
const LONG = Array.from({ length: 3_000 }, (_, at) =>
  String.fromCodePoint(0x4e00 + ((at * 7_919 + ((at * at) % 104_729)) % 20_000)),
).join('')

onBoth(({ name, fresh }) => {
  let where: string
  let store: SessionStore
  beforeEach(async () => {
    where = await fresh()
    store = await openSessionStore(where)
    await store.sessions.create({ id: 's', userId: 'ann', cwd: '/work\0space', mode: 'manual', at: 1 })
  })
  afterEach(() => store.close())

  const outcome = { promptId: 'p', callId: 'c\0', status: 'completed', runMs: 1, waitMs: 1, at: 5 } as const

  test('U+0000 and halves of characters are left out, in what is stored and in what is looked up', async () => {
    await store.log.append('s', [message('a')], {
      outcome: { ...outcome, tool: 'a\0b\ud800' },
      submission: { userId: 'ann', requestId: 'r\0', promptId: 'p\0' },
      usage: { promptId: 'p', model: 'm\0', input: 1, output: 1, cached: 0, reasoning: 0, cost: 1, at: 5 },
    })
    expect(await store.sessions.get('s')).toMatchObject({ cwd: '/workspace' })
    expect(await store.log.findSubmission('ann', '\0r')).toEqual({ sessionId: 's', promptId: 'p' })
    const reader = await openSessionReader(where)
    expect(await reader.usage.tools({ from: 0, to: 1 }, ['tool'])).toMatchObject([{ tool: 'ab\ufffd' }])
    await reader.close()
    expect(await store.sessions.get('s\0')).toMatchObject({ id: 's' })
  })

  test.runIf(name === 'PostgreSQL')('also in a list of values', async () => {
    const { db, close } = await openStore<SessionsSchema>(where, 'sessions', sessionsMigrations)
    const { rows } = await sql`select id from sessions where id = any(${['s\0']}::text[])`.execute(db)
    expect(rows).toEqual([{ id: 's' }])
    await close()
  })

  test('what one of the databases cannot hold is an error of the request, and nothing of it is stored', async () => {
    const submission = { userId: 'ann', requestId: LONG, promptId: 'p' }
    const stored = await store.log
      .append('s', [message('a')], { submission })
      .catch((error: unknown) => error)
    if (name === 'PostgreSQL') {
      expect(stored).toBeInstanceOf(SandlotError)
      expect(stored).toMatchObject({ code: 'bad_request', message: expect.stringContaining('54000') })
    }
    expect((await store.log.read('s')).length).toBe(name === 'PostgreSQL' ? 0 : 1)
    await store.log.append('s', [message('b')])
  })
})
