/**
 * Appends during cut connections to PostgreSQL, also between COMMIT and its answer, and during a
 * killed server: acknowledged events are stored once, and refused ones are not.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { type Server, type Socket, connect, createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { textOf } from '@sandlot/shared/chat/events'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { campaign, extent, randomFrom } from '../../../../test/campaign.ts'
import { openStore } from '../../src/database/open.ts'
import { openSessionStore } from '../../src/store/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { message } from '../support/contract.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'

const APPENDS = 50
const CUTS = ['before COMMIT', 'after COMMIT', 'its answer'] as const
type Cut = (typeof CUTS)[number] | undefined

/** Passes connections on to the server at `to`, and cuts them as `next` says for each COMMIT. */
async function startProxy(folder: string, to: string, next: () => Cut): Promise<Server> {
  const server = createServer((client: Socket) => {
    const upstream = connect(to)
    const end = (): void => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end)
    let cut: Cut
    client.on('data', (bytes) => {
      if (bytes.includes('Qcommit') || bytes.includes('commit\0')) cut = next()
      if (cut === 'before COMMIT') return end()
      upstream.write(bytes)
      // The server receives it, and its answer is lost.
      if (cut === 'after COMMIT') setImmediate(end)
    })
    upstream.on('data', (bytes) => (cut === 'its answer' ? end() : client.write(bytes)))
  })
  server.listen(join(folder, '.s.PGSQL.5432'))
  await once(server, 'listening')
  return server
}

async function appendMany(
  store: SessionStore,
  meanwhile: (n: number) => Promise<unknown>,
): Promise<{ said: string[]; refused: unknown[] }> {
  const said: string[] = []
  const refused: unknown[] = []
  for (let n = 0; n < APPENDS; n += 5) {
    const some = Array.from({ length: 5 }, async (_, k) => {
      const text = `event ${n + k}`
      await store.log.append(k % 2 === 0 ? 's' : 't', [message(text)]).then(
        () => said.push(text),
        (error: unknown) => refused.push(error),
      )
    })
    await meanwhile(n)
    await Promise.all(some)
  }
  return { said, refused }
}

describeOnPostgres('on PostgreSQL', (postgres) => {
  let folder: string
  let made = 0
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandlot-cuts-'))
    const empty = await openSessionStore(await postgres.database('empty'))
    await empty.close()
  }, 60_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  /** Its address, and a store with the sessions `s` and `t`. */
  async function opened(through?: string): Promise<{ url: string; store: SessionStore }> {
    const url = await postgres.database(`cut_${++made}`, 'empty')
    const store = await openSessionStore(
      through === undefined ? url : url.replace(/host=.*$/, `host=${encodeURIComponent(through)}`),
    )
    for (const id of ['s', 't'])
      await store.sessions.create({ id, userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
    return { url, store }
  }

  async function stored(url: string): Promise<string[]> {
    const reader = await openSessionStore(url)
    const events = [...(await reader.log.read('s')), ...(await reader.log.read('t'))]
    await reader.close()
    return events.flatMap((event) => (event.sessionUpdate === 'agent_message_chunk' ? [textOf(event)] : []))
  }

  test(`property: what is cut around COMMIT is stored once or not at all, as was said (seed ${campaign.seed})`, async () => {
    const random = randomFrom('cuts')
    const to = join(
      decodeURIComponent(/host=(.*)$/.exec(await postgres.database('any'))?.[1] ?? ''),
      '.s.PGSQL.5432',
    )
    let cutting = false
    let cuts = 0
    const proxy = await startProxy(folder, to, () => {
      if (!cutting || random() < 0.5) return undefined
      cuts += 1
      return CUTS[Math.floor(random() * CUTS.length)]
    })
    for (let run = 0; run < extent(2, 40); run++) {
      const { url, store } = await opened(folder)
      cutting = true
      const { said, refused } = await appendMany(store, () => Promise.resolve())
      cutting = false
      await store.close()
      const found = await stored(url)
      expect(found.toSorted()).toEqual(said.toSorted())
      expect(said.length + refused.length).toBe(APPENDS)
      for (const error of refused) expect(error).toMatchObject({ name: 'StorageError', code: 'unreachable' })
    }
    expect(cuts).toBeGreaterThan(2)
    proxy.close()
  }, 60_000)

  test('connections that are ended, and a server that is killed, lose and double nothing', async () => {
    const { url, store } = await opened()
    const { db, close } = await openStore(url, 'sessions', sessionsMigrations)
    const { said } = await appendMany(store, async (n) => {
      if (n === 25) await postgres.crash(() => Promise.resolve())
      else
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()
        `.execute(db)
    })
    expect((await stored(url)).toSorted()).toEqual(said.toSorted())
    await close()
    await store.close()
  }, 60_000)

  test('a deadlock is repeated once, and an append after a lost commit is no owner’s', async () => {
    const { store, url } = await opened()
    const both = await openStore<{ sessions: { id: string; title: string } }>(
      url,
      'sessions',
      sessionsMigrations,
    )
    const begun = { s: Promise.withResolvers<void>(), t: Promise.withResolvers<void>() }
    const done = { s: Promise.withResolvers<void>(), t: Promise.withResolvers<void>() }
    const order = async (first: 's' | 't', second: 's' | 't'): Promise<void> => {
      let tries = 0
      await both.db.transaction().execute(async (trx) => {
        // The victim could lock its first row again before the other one is woken.
        if (tries++ > 0) await done[second].promise
        for (const id of [first, second]) {
          await trx.updateTable('sessions').set({ title: first }).where('id', '=', id).execute()
          begun[first].resolve()
          await begun[second].promise
        }
      })
      done[first].resolve()
    }
    await Promise.all([order('s', 't'), order('t', 's')])

    const { epoch } = await store.log.takeOver('s')
    await store.log.append('s', [message('one')], {}, epoch, 0)
    await sql`update sessions set last_seq = 0`.execute(both.db)
    const lost = store.log.append('s', [message('two')], {}, epoch, 1)
    await expect(lost).rejects.toMatchObject({ name: 'StorageError', code: 'not_owner' })
    await both.close()
    await store.close()
  })

  test('where all connections of the process are in use, statements wait; where all of the server are, it is said', async () => {
    const { store, url } = await opened()
    const { db, close } = await openStore(url, 'sessions', sessionsMigrations)
    const rows = await Promise.all(Array.from({ length: 30 }, () => sql`select pg_sleep(0.01)`.execute(db)))
    expect(rows).toHaveLength(30)
    await sql`create role small login connection limit 0`.execute(db)
    await expect(openSessionStore(url.replace('sandlot@', 'small@'))).rejects.toMatchObject({
      name: 'StorageError',
      code: 'unreachable',
      message: expect.stringContaining('all its connections are in use'),
    })
    await close()
    await store.close()
  })
})
