import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RemovedData } from '@sandlot/shared/account/api'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { accountsMigrations } from '@sandlot/storage/accounts/migrations'
import type { AccountsSchema } from '@sandlot/storage/tables/accounts'
import { openWriter } from '@sandlot/storage/database/database'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { makeLog } from '../../src/log.ts'
import { Removals } from '../../src/people/removals.ts'
import { waitFor } from '../support/harness.ts'

const OPTIONS = { secret: 'x'.repeat(42), publicUrl: 'http://127.0.0.1:8002' }
const ANN = { name: 'Ann', email: 'ann@example.org', password: 'correct horse', role: 'member' as const }

test('whom to remove that cannot be read once the agent is there is read again later', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-removals-'))
  const open = () => openAccounts(join(folder, 'accounts.db'), OPTIONS)
  let accounts = await open()
  const { id } = await accounts.users.create(ANN)
  await accounts.users.remove(id, 'purge')
  const lines: string[] = []
  const asked: object[] = []
  let reads = 0
  const removals = new Removals({
    leads: () => true,
    accounts: {
      users: { remove: (...given) => accounts.users.remove(...given) },
      removals: {
        // The first time they are closed, then they are open again.
        async list() {
          reads += 1
          if (reads === 1) await accounts.close()
          if (reads === 2) accounts = await open()
          return accounts.removals.list()
        },
        done: (removal) => accounts.removals.done(removal),
        failed: (...given) => accounts.removals.failed(...given),
      },
    },
    agent: {
      whenConnected: async () => undefined,
      request: async (_method, params) => void asked.push(params),
    },
    sockets: { personRemoved: () => undefined },
    uploads: { removeAll: async () => undefined },
    log: makeLog(
      'info',
      (text) => text,
      (line) => void lines.push(line),
    ),
    retryMs: 1,
  })
  await waitFor(() => lines.some((line) => line.includes('a person was removed')))
  expect(lines[0]).toContain('pending removals could not be read')
  expect(asked).toEqual([{ userId: id, data: 'purge' }])
  await removals.close()
  await accounts.close()
  await rm(folder, { recursive: true })
})

test('who is asked for again while a try is under way is tried again at once when that fails', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-removals-'))
  const path = join(folder, 'accounts.db')
  await withPeople(path)
  const accounts = await openAccounts(path, OPTIONS)
  const asked: object[] = []
  const first = Promise.withResolvers<void>()
  const removals = new Removals({
    leads: () => true,
    accounts,
    agent: {
      whenConnected: async () => undefined,
      async request(_method, params) {
        asked.push(params)
        if (asked.length === 1) await first.promise
      },
    },
    sockets: { personRemoved: () => undefined },
    uploads: { removeAll: async () => undefined },
    log: makeLog(
      'fatal',
      (text) => text,
      () => undefined,
    ),
    // Nobody waits so long.
    retryMs: 600_000,
  })
  await removals.remove('a', 'keep')
  await waitFor(() => asked.length === 1)
  await removals.remove('a', 'purge')
  first.reject(new Error('no engine'))
  await waitFor(async () => (await accounts.removals.list()).length === 0)
  expect(asked).toEqual([
    { userId: 'a', data: 'keep' },
    { userId: 'a', data: 'purge' },
  ])
  await removals.close()
  await accounts.close()
  await rm(folder, { recursive: true })
})

type Outcome = 'done' | 'fails' | 'hangs'
const PEOPLE = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const asks = fc.array(
  fc.record({ who: fc.constantFrom(...PEOPLE), data: fc.constantFrom<RemovedData[]>('keep', 'purge') }),
  { minLength: 1, maxLength: 12 },
)
/** Outcomes of the first tries, by person; later ones succeed. */
const plans = fc.record(
  Object.fromEntries(
    PEOPLE.map((who) => [
      who,
      fc.array(fc.constantFrom<Outcome[]>('done', 'fails', 'hangs'), { maxLength: 3 }),
    ]),
  ),
)

test('property: each person is removed by the last request, one try at a time, and waits for no hanging removal', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-removals-'))
  let run = 0
  const removed = async (said: { who: string; data: RemovedData }[], outcomes: Record<string, Outcome[]>) => {
    const path = join(folder, `${(run += 1)}.db`)
    await withPeople(path)
    const accounts = await openAccounts(path, OPTIONS)
    const left = Object.fromEntries(Object.entries(outcomes).map(([who, plan]) => [who, [...plan]]))
    const healed = Promise.withResolvers<void>()
    const trying = new Set<string>()
    const twice: string[] = []
    const last = new Map<string, RemovedData>()
    const removals = new Removals({
      leads: () => true,
      accounts,
      agent: {
        whenConnected: async () => undefined,
        async request(_method, params) {
          const { userId, data } = params as { userId: string; data: RemovedData }
          if (trying.has(userId)) twice.push(userId)
          trying.add(userId)
          last.set(userId, data)
          const outcome = left[userId]?.shift()
          if (outcome === 'hangs') await healed.promise
          trying.delete(userId)
          if (outcome === 'fails') throw new Error('no engine')
        },
      },
      sockets: { personRemoved: () => undefined },
      uploads: { removeAll: async () => undefined },
      log: makeLog(
        'fatal',
        (text) => text,
        () => undefined,
      ),
      retryMs: 1,
      slowMs: 1,
    })
    const wanted = new Map<string, RemovedData>()
    for (const { who, data } of said)
      // Unknown people, and people that can no longer be stored, are refused.
      if (
        await removals.remove(who, data).then(
          () => true,
          () => false,
        )
      )
        wanted.set(who, data)
    const rest = async () => (await accounts.removals.list()).filter(({ done }) => !done).map(({ id }) => id)
    await waitFor(async () => (await rest()).every((who) => outcomes[who]?.includes('hangs')))
    healed.resolve()
    await waitFor(async () => (await rest()).length === 0)
    expect(last).toEqual(wanted)
    expect(twice).toEqual([])
    const kept = [...wanted].filter(([, data]) => data === 'keep').map(([who]) => who)
    expect((await accounts.removals.list()).map(({ id }) => id).toSorted()).toEqual(kept.toSorted())
    await removals.close()
    await accounts.close()
  }
  await fc.assert(fc.asyncProperty(asks, plans, removed), { numRuns: 40 })
  await rm(folder, { recursive: true })
})

/** Accounts of these people, whose passwords nobody needs: hashing them takes long. */
async function withPeople(path: string): Promise<void> {
  const { db, close } = await openWriter<AccountsSchema>(path, accountsMigrations)
  for (const id of PEOPLE) {
    const at = new Date(0).toISOString()
    const row = { id, name: id, email: `${id}@example.org`, role: 'member', emailVerified: 0 }
    await db
      .insertInto('auth_user')
      .values({ ...row, createdAt: at, updatedAt: at } as typeof row)
      .execute()
  }
  await close()
}
