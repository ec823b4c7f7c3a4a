import { textOf } from '@sandlot/shared/chat/events'
import { messageOf } from '@sandlot/shared/base/errors'
import { sql } from 'kysely'
import { beforeAll, expect, test } from 'vitest'
import { healthText, toAccountUserError, toUserError } from '../../src/plain-words.ts'
import { openStore } from '../../src/database/open.ts'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { message, testSessionStore } from '../support/contract.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'

describeOnPostgres('on PostgreSQL', (postgres) => {
  let made = 0
  beforeAll(async () => {
    const store = await openSessionStore(await postgres.database('empty'))
    await store.close()
  }, 60_000)

  testSessionStore('postgres', async () => {
    const url = await postgres.database(`contract_${++made}`, 'empty')
    const store = await openSessionStore(url)
    const reader = await openSessionReader(url)
    return { store, reader, remove: () => undefined }
  })

  test('a server that has crashed is known until it is back, and what was stored is there', async () => {
    const store = await openSessionStore(await postgres.database('crashed', 'empty'))
    await store.sessions.create({ id: 's', userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
    await store.log.append('s', [message('before')])
    expect(await store.problem()).toBeUndefined()
    await postgres.crash(async () => {
      await expect(store.log.append('s', [message('lost')])).rejects.toMatchObject({
        name: 'StorageError',
        code: 'unreachable',
        message: expect.stringMatching(/^PostgreSQL at .*\/crashed: it cannot be reached/),
      })
      const problem = await store.problem()
      expect(problem).toMatchObject({ code: 'unreachable' })
      expect(healthText(problem)).toContain('cannot be reached')
      expect(messageOf(toUserError(problem))).toMatch(/^Nothing can be saved just now: the database cannot/)
      expect(messageOf(toAccountUserError(problem))).toMatch(/^Signing in is not possible just now: the data/)
    })
    expect(await store.problem()).toBeUndefined()
    await store.log.append('s', [message('after')])
    expect(
      (await store.log.read('s')).flatMap((event) =>
        event.sessionUpdate === 'agent_message_chunk' ? [textOf(event)] : [],
      ),
    ).toEqual(['before', 'after'])
    await store.close()
  })

  test('a statement and an idle transaction have an end, who asks has a name, outputs are not compressed', async () => {
    const url = await postgres.database('settings', 'empty')
    const { db, close } = await openStore<SessionsSchema>(url, 'sessions', sessionsMigrations)
    const { rows } = await sql<Record<string, string>>`select current_setting('statement_timeout') statement,
      current_setting('idle_in_transaction_session_timeout') idle, current_setting('application_name') name,
      (select attstorage::text from pg_attribute
        where attrelid = 'sessions.output_chunks'::regclass and attname = 'bytes') storage`.execute(db)
    expect(rows).toEqual([
      { statement: '30s', idle: '5s', name: expect.stringMatching(/^sandlot \S+ \d+@/), storage: 'e' },
    ])
    await close()
  })

  test.each([
    ['a role that may not make schemas', 'poor', {}, /make it the owner of the database/],
    ['TLS that the server has not', '', { sslmode: 'require' }, /it has no TLS; turn that on there/],
    ['a database that is not there', '', { database: 'nowhere' }, /it refuses DATABASE_URL; correct name/],
  ])('%s is one sentence that says what to do', async (_name, role, settings, words) => {
    const url = new URL(await postgres.database(`refused_${++made}`))
    if (role !== '') {
      await postgres.rows('postgres', `create role ${role} login`)
      url.username = role
    }
    if ('database' in settings) url.pathname = settings.database
    if ('sslmode' in settings) url.searchParams.set('sslmode', settings.sslmode)
    await expect(openSessionStore(url.href)).rejects.toMatchObject({
      name: 'StorageError',
      code: 'cannot_open',
      message: expect.stringMatching(words),
    })
  })

  test('another that starts leaves a copy that is being made, and removes what is left of an old one', async () => {
    const url = await postgres.database('copies', 'empty')
    const store = await openSessionStore(url)
    for (const [id, at] of [
      ['young', Date.now()],
      ['old', Date.now() - 2 * 3_600_000],
    ] as const)
      await store.sessions.create({ id, userId: '', cwd: '/workspace', mode: 'manual', at })
    await (await openSessionStore(url)).close()
    const { db, close } = await openStore<SessionsSchema>(url, 'sessions', sessionsMigrations)
    expect(await db.selectFrom('sessions').select('id').execute()).toEqual([{ id: 'young' }])
    await close()
    await store.close()
  })

  test('two that open it at once migrate it once', async () => {
    const url = await postgres.database('new')
    const stores = await Promise.all([openSessionStore(url), openSessionReader(url), openSessionReader(url)])
    expect(await stores[0].sessions.unfinished()).toEqual([])
    for (const store of stores) await store.close()
  })

  test('an address without a database of that name is refused in words, without its password', async () => {
    const url = (await postgres.database('gone'))
      .replace('/gone?', '/elsewhere?')
      .replace('sandlot@', 'sandlot:hunter2@')
    const refused = await openSessionStore(url).catch((error: unknown) => error)
    expect(refused).toMatchObject({ name: 'StorageError', code: 'cannot_open' })
    expect(String(refused)).not.toContain('hunter2')
  })
})
