/** Several replicas on one PostgreSQL: who has whom, and that nobody else writes. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Change, listenToChanges } from '../../src/database/changes.ts'
import { openSessionReader, openSessionStore } from '../../src/sessions/open.ts'
import { SCHEDULES } from '../../src/sessions/replicas.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { message } from '../support/contract.ts'
import { type Postgres, postgresPrograms, startPostgres } from '../support/postgres.ts'

if (postgresPrograms === undefined)
  process.stderr.write(
    'replicas: left out, there is no PostgreSQL on this machine (apt install postgresql)\n',
  )

const NOT_OWNER = { name: 'StorageError', code: 'not_owner' }

describe.skipIf(postgresPrograms === undefined)('replicas on PostgreSQL', () => {
  let postgres: Postgres
  let admin: Client
  let url: string
  const open: { close(): Promise<unknown> }[] = []

  beforeAll(async () => {
    postgres = await startPostgres(postgresPrograms ?? '')
    url = await postgres.database('replicas')
    await (await openSessionStore(url)).close()
    admin = new Client({ connectionString: url, options: '-c search_path=sessions' })
    await admin.connect()
  }, 60_000)
  afterEach(async () => {
    for (const one of open.splice(0)) await one.close()
    await admin.query('truncate replicas, owners, sessions cascade')
  })
  afterAll(async () => {
    await admin?.end()
    await postgres?.stop()
  })

  async function replica(id: string): Promise<SessionStore> {
    const store = await openSessionStore(url)
    open.push(store)
    await store.replicas.register({ id, url: `ws://${id}`, version: '1' })
    return store
  }

  /** As if it had not been heard of for 8 s. */
  const lapse = (id: string) =>
    admin.query('update replicas set heartbeat_at = heartbeat_at - 8000 where id = $1', [id])

  const create = (store: SessionStore, userId: string, id: string = randomUUID()) =>
    store.createSession({ id, userId, cwd: '/workspace', mode: 'manual', at: 1 })

  test('a person belongs to the first that claims them, and to another only when that one is dead or gives them up', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    expect(await a.replicas.claim('ann')).toEqual({ replicaId: 'a', epoch: 1, before: null })
    expect(await a.replicas.claim('ann')).toEqual({ replicaId: 'a', epoch: 1, before: 'a' })
    expect(await b.replicas.claim('ann')).toEqual({ replicaId: 'a', epoch: 1, before: 'a' })
    expect(await b.replicas.ownerOf('ann')).toBe('a')
    await lapse('a')
    expect(await b.replicas.ownerOf('ann')).toBeUndefined()
    expect(await b.replicas.claim('ann')).toEqual({ replicaId: 'b', epoch: 2, before: 'a' })
    // It is back, and takes nobody from a living one.
    expect(await a.replicas.heartbeat()).toEqual({ draining: false, owned: [] })
    expect(await a.replicas.claim('ann')).toEqual({ replicaId: 'b', epoch: 2, before: 'b' })
    await b.replicas.release(['ann'])
    expect(await a.replicas.claim('ann')).toEqual({ replicaId: 'a', epoch: 3, before: null })
    expect(await a.replicas.heartbeat()).toEqual({ draining: false, owned: [{ userId: 'ann', epoch: 3 }] })
  })

  test('one that is dead itself, or drains, claims nobody', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    await lapse('a')
    expect(await a.replicas.claim('ann')).toBeUndefined()
    await b.replicas.drain()
    expect(await b.replicas.claim('ann')).toBeUndefined()
    expect(await b.replicas.heartbeat()).toEqual({ draining: true, owned: [] })
    expect(await b.replicas.askToDrain('a')).toBe(false)
  })

  test('one that starts again under its id has its people, and the process before it writes no more', async () => {
    const before = await replica('a')
    await before.replicas.claim('ann')
    const { id } = await create(before, 'ann')
    const { epoch } = await before.takeOver(id)
    const after = await replica('a')
    expect(await before.replicas.heartbeat()).toBe('replaced')
    expect(await before.replicas.claim('bob')).toBeUndefined()
    await expect(before.append(id, [message('late')], {}, epoch)).rejects.toMatchObject(NOT_OWNER)
    expect(await after.replicas.claim('ann')).toEqual({ replicaId: 'a', epoch: 2, before: 'a' })
    await before.replicas.unregister()
    expect(await after.replicas.ownerOf('ann')).toBe('a')
  })

  test('of many claims at once one wins, and all learn who', async () => {
    const stores = [await replica('a'), await replica('b'), await replica('c')]
    const claims = await Promise.all(
      Array.from({ length: 10 }, () => stores.map((store) => store.replicas.claim('ann'))).flat(),
    )
    expect(new Set(claims.map((claim) => claim?.replicaId)).size).toBe(1)
    expect(claims.every((claim) => claim?.epoch === 1)).toBe(true)
  })

  test('readers see who lives and how many people each has', async () => {
    const [a] = [await replica('a'), await replica('b')]
    await a.replicas.claim('ann')
    await a.replicas.claim(SCHEDULES)
    await lapse('b')
    const reader = await openSessionReader(url)
    open.push(reader)
    expect(await reader.replicas.list()).toEqual([
      { id: 'a', url: 'ws://a', version: '1', draining: false, living: true, people: 1 },
      { id: 'b', url: 'ws://b', version: '1', draining: false, living: false, people: 0 },
    ])
    expect(await reader.replicas.ownerOf('ann')).toBe('a')
  })

  test('what an earlier owner has in memory cannot be stored, in no session of the person', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    await a.replicas.claim('ann')
    const [first, second] = [await create(a, 'ann'), await create(a, 'ann')]
    const owned = await a.takeOver(first.id)
    const other = await a.takeOver(second.id)
    await a.append(first.id, [message('one')], {}, owned.epoch)
    await expect(b.takeOver(first.id)).rejects.toMatchObject(NOT_OWNER)
    await lapse('a')
    await b.replicas.claim('ann')
    // The new owner has loaded neither of them yet.
    await expect(a.append(first.id, [message('late')], {}, owned.epoch)).rejects.toMatchObject(NOT_OWNER)
    await expect(a.append(second.id, [message('late')], {}, other.epoch)).rejects.toMatchObject(NOT_OWNER)
    const bytes = new Uint8Array([1])
    await expect(a.appendOutput(first.id, 'c', 0, bytes, owned.epoch)).rejects.toMatchObject(NOT_OWNER)
    await expect(a.checkOwner(first.id, owned.epoch)).rejects.toMatchObject(NOT_OWNER)
    await expect(a.takeOver(second.id)).rejects.toMatchObject(NOT_OWNER)
    const taken = await b.takeOver(first.id)
    expect(taken.events).toHaveLength(1)
    await b.append(first.id, [message('two')], {}, taken.epoch)
    expect(await b.readEvents(first.id)).toHaveLength(2)
  })

  test('people with unfinished prompts and no living owner are found', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    for (const [store, userId] of [
      [a, 'ann'],
      [b, 'bob'],
    ] as const) {
      await store.replicas.claim(userId)
      const { id } = await create(store, userId)
      const { epoch } = await store.takeOver(id)
      await store.append(id, [message('begins')], { runningPromptId: `p_${userId}` }, epoch)
    }
    expect(await b.replicas.unowned()).toEqual({ userIds: [], schedules: true, replicas: 2 })
    await b.replicas.claim(SCHEDULES)
    expect(await b.replicas.unowned()).toEqual({ userIds: [], schedules: false, replicas: 0 })
    await lapse('a')
    expect(await b.replicas.unowned()).toEqual({ userIds: ['ann'], schedules: false, replicas: 1 })
    await b.replicas.unregister()
    const { userIds } = await a.replicas.unowned()
    expect(userIds.toSorted()).toEqual(['ann', 'bob'])
  })

  test('one that the database has lost must be registered again', async () => {
    const a = await replica('a')
    await admin.query('delete from replicas')
    expect(await a.replicas.heartbeat()).toBe('forgotten')
  })

  test('changes are heard in order, also those of the time without a connection', async () => {
    const heard: Change[] = []
    const store = await replica('a')
    const listener = await listenToChanges({
      where: url,
      schema: 'sessions',
      changed: (changes) => void heard.push(...changes),
      leader: 'test',
      problem: () => undefined,
      pollMs: 50,
    })
    open.push(listener)
    expect(listener.leads()).toBe(true)
    const record = (what: string, id: string) =>
      admin.query('insert into changes (what, id) values ($1, $2)', [what, id])
    await record('people', 'ann')
    await until(() => heard.length === 1)
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where query like '%changes%' and pid <> pg_backend_pid()`,
    )
    await record('rules', 'bob')
    await until(() => heard.length === 2)
    expect(heard).toEqual([
      { what: 'people', id: 'ann' },
      { what: 'rules', id: 'bob' },
    ])
    await until(() => listener.leads())
    await admin.query('truncate changes restart identity')
    await until(() => heard.length === 3)
    expect(heard.at(-1)).toEqual({ what: 'everything' })
    expect(await store.problem()).toBeUndefined()
  })
})

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(10)
}
