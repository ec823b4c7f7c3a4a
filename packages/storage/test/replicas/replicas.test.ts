/** Several replicas on one PostgreSQL: ownership of users, and refused writes of other replicas. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { campaign, extent } from '../../../../test/campaign.ts'
import { type Change, listenToChanges } from '../../src/database/changes.ts'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import { SCHEDULES } from '../../src/replicas/replicas.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { message } from '../support/contract.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'

const NOT_OWNER = { name: 'StorageError', code: 'not_owner' }

/** Keeps with each event who had its person when it was stored. */
const OWNER_OF_EVENT = `
  create table owner_of_event (session_id text, seq bigint, json text, owner text);
  create function note_owner() returns trigger language plpgsql as $$ begin
    insert into owner_of_event select new.session_id, new.seq, new.json, o.replica_id
      from sessions.sessions s join sessions.owners o on o.user_id = s.user_id where s.id = new.session_id;
    return null;
  end $$;
  create trigger note_owner after insert on events for each row execute function note_owner()`

describeOnPostgres('replicas on PostgreSQL', (postgres) => {
  let admin: Client
  let url: string
  const open: { close(): Promise<unknown> }[] = []

  beforeAll(async () => {
    url = await postgres.database('replicas')
    await (await openSessionStore(url)).close()
    admin = new Client({ connectionString: url, options: '-c search_path=sessions' })
    await admin.connect()
  }, 60_000)
  afterEach(async () => {
    for (const one of open.splice(0)) await one.close()
    await admin.query('truncate replicas, owners, sessions cascade')
  })
  afterAll(() => admin?.end())

  async function replica(id: string): Promise<SessionStore> {
    const store = await openSessionStore(url)
    open.push(store)
    await store.replicas.register({ id, url: `ws://${id}`, version: '1' })
    return store
  }

  /** Simulates a last heartbeat 8 s ago. */
  const lapse = (id: string) =>
    admin.query('update replicas set heartbeat_at = heartbeat_at - 8000 where id = $1', [id])

  const create = (store: SessionStore, userId: string, id: string = randomUUID()) =>
    store.sessions.create({ id, userId, cwd: '/workspace', mode: 'manual', at: 1 })

  test('a person belongs to the first that claims them, and to another only when that one is dead or gives them up', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    expect(await a.replicas.claim('ann')).toEqual({ replicaId: 'a', epoch: 1, before: null })
    expect(await a.replicas.claim('ann')).toEqual({ replicaId: 'a', epoch: 1, before: 'a' })
    expect(await b.replicas.claim('ann')).toEqual({ replicaId: 'a', epoch: 1, before: 'a' })
    expect(await b.replicas.ownerOf('ann')).toBe('a')
    await lapse('a')
    expect(await b.replicas.ownerOf('ann')).toBeUndefined()
    expect(await b.replicas.claim('ann')).toEqual({ replicaId: 'b', epoch: 2, before: 'a' })
    // It is back, and takes over no user of a living one.
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
    const { epoch } = await before.log.takeOver(id)
    const after = await replica('a')
    expect(await before.replicas.heartbeat()).toBe('replaced')
    expect(await before.replicas.claim('bob')).toBeUndefined()
    await expect(before.log.append(id, [message('late')], {}, epoch)).rejects.toMatchObject(NOT_OWNER)
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

  test('agents that live have one engine: another is refused and both are named, also when they begin at once', async () => {
    const begin = async (id: string, engine?: string): Promise<string[]> => {
      const store = await openSessionStore(url)
      open.push(store)
      return store.replicas.register({ id, url: `ws://${id}`, version: '1', engine })
    }
    const refused = (...names: string[]): object => ({
      name: 'StorageError',
      code: 'other_engine',
      message: expect.stringMatching(new RegExp(names.join('.*'))) as string,
    })
    expect(await begin('a', 'one')).toEqual([])
    expect(await begin('b', 'one')).toEqual([])
    await expect(begin('c', 'two')).rejects.toMatchObject(refused('Agent a', 'one', 'agent c', 'two'))
    // Not known passes, and is named to who knows.
    expect(await begin('old')).toEqual([])
    expect(await begin('a', 'one')).toEqual(['old'])
    for (const id of ['a', 'b']) await lapse(id)
    // An earlier process of the same id is ignored.
    expect(await begin('c', 'two')).toEqual(['old'])
    await expect(begin('b', 'one')).rejects.toMatchObject(refused('Agent c', 'two', 'agent b', 'one'))
    expect(await begin('c', 'three')).toEqual(['old'])

    await admin.query('truncate replicas, owners')
    const ids = Array.from({ length: 8 }, (_, n) => `${n}`)
    const begun = await Promise.allSettled(ids.map((id) => begin(id, `engine ${Number(id) % 2}`)))
    const { rows } = await admin.query<{ engine: string }>('select distinct engine from replicas')
    expect(rows).toHaveLength(1)
    expect(begun.filter(({ status }) => status === 'fulfilled')).toHaveLength(4)
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
    const owned = await a.log.takeOver(first.id)
    const other = await a.log.takeOver(second.id)
    await a.log.append(first.id, [message('one')], {}, owned.epoch)
    await expect(b.log.takeOver(first.id)).rejects.toMatchObject(NOT_OWNER)
    await lapse('a')
    await b.replicas.claim('ann')
    // The new owner has loaded neither of them yet.
    await expect(a.log.append(first.id, [message('late')], {}, owned.epoch)).rejects.toMatchObject(NOT_OWNER)
    await expect(a.log.append(second.id, [message('late')], {}, other.epoch)).rejects.toMatchObject(NOT_OWNER)
    const bytes = new Uint8Array([1])
    await expect(a.outputs.append(first.id, 'c', 0, bytes, owned.epoch)).rejects.toMatchObject(NOT_OWNER)
    await expect(a.log.checkOwner(first.id, owned.epoch)).rejects.toMatchObject(NOT_OWNER)
    await expect(a.log.takeOver(second.id)).rejects.toMatchObject(NOT_OWNER)
    const taken = await b.log.takeOver(first.id)
    expect(taken.events).toHaveLength(1)
    await b.log.append(first.id, [message('two')], {}, taken.epoch)
    expect(await b.log.read(first.id)).toHaveLength(2)
  })

  test('a claim waits for what the earlier owner is storing at that moment', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    await a.replicas.claim('ann')
    const { id } = await create(a, 'ann')
    const { epoch } = await a.log.takeOver(id)
    const holder = new Client({ connectionString: url, options: '-c search_path=sessions' })
    await holder.connect()
    await holder.query('begin; lock table events in share mode')
    const order: string[] = []
    const append = a.log.append(id, [message('one')], {}, epoch).then(() => order.push('stored'))
    const waits = `select from pg_locks where not granted and relation = 'sessions.events'::regclass`
    await expect.poll(async () => (await admin.query(waits)).rowCount).toBe(1)
    await lapse('a')
    const claim = b.replicas.claim('ann').then(() => order.push('claimed'))
    await expect
      .poll(async () => (await admin.query('select from pg_locks where not granted')).rowCount)
      .toBe(2)
    await holder.query('commit')
    await holder.end()
    await Promise.all([append, claim])
    expect(order).toEqual(['stored', 'claimed'])
  })

  test('people with unfinished prompts and no living owner are found', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    for (const [store, userId] of [
      [a, 'ann'],
      [b, 'bob'],
    ] as const) {
      await store.replicas.claim(userId)
      const { id } = await create(store, userId)
      const { epoch } = await store.log.takeOver(id)
      await store.log.append(id, [message('begins')], { runningPromptId: `p_${userId}` }, epoch)
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

  test('however claims, lapses, loads and appends fall together: one owner at a time, and only theirs is stored', async () => {
    const ids = ['a', 'b'] as const
    const stores = { a: await replica('a'), b: await replica('b') }
    // Owner at the moment of each event, by the database.
    await admin.query(OWNER_OF_EVENT)
    const acts = fc.constantFrom('claim', 'lapse', 'beat', 'load', 'append', 'append', 'output', 'release')
    const step = fc.record({ who: fc.constantFrom(...ids), act: acts })
    const steps = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 4, maxLength: 14 })
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const userId = randomUUID()
        const { id } = await create(stores.a, userId)
        const ofEpoch = new Map<number, string>()
        const state = { a: { session: 0 }, b: { session: 0 } }
        const act = async ({ who, act: doing }: (typeof all)[number][number]): Promise<void> => {
          const { replicas, ...store } = stores[who]
          const mine = state[who]
          if (doing === 'lapse') return void (await lapse(who))
          if (doing === 'beat') return void (await replicas.heartbeat())
          if (doing === 'release') return replicas.release([userId])
          if (doing === 'claim') {
            const claim = await replicas.claim(userId)
            if (claim === undefined) return
            expect(ofEpoch.get(claim.epoch) ?? claim.replicaId).toBe(claim.replicaId)
            ofEpoch.set(claim.epoch, claim.replicaId)
            return
          }
          if (doing === 'load') return void (mine.session = (await store.log.takeOver(id)).epoch)
          const bytes = new Uint8Array([1])
          if (doing === 'output') return void (await store.outputs.append(id, who, 0, bytes, mine.session))
          await store.log.append(id, [message(who)], {}, mine.session)
        }
        for (const together of all) {
          const done = await Promise.allSettled(together.map(act))
          for (const one of done) if (one.status === 'rejected') expect(one.reason).toMatchObject(NOT_OWNER)
        }
        const { rows } = await admin.query<{ seq: number; text: string; owner: string }>(
          `select seq::int, json::json->'content'->>'text' as text, owner from owner_of_event where session_id = $1 order by seq`,
          [id],
        )
        expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, index) => index + 1))
        for (const { text, owner } of rows) expect(owner).toBe(text)
        for (const who of ids) await stores[who].replicas.heartbeat()
      }),
      { numRuns: extent(12, 300), seed: campaign.seed },
    )
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
