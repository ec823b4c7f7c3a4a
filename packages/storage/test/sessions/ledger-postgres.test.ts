/** The ledger where several controllers share a database: the same contract, and claims that come at once from all of them. */
import { Migrator } from 'kysely/migration'
import { type Kysely, sql } from 'kysely'
import type { LedgerSlot } from '@sandlot/sandbox/ledger'
import { beforeAll, expect, test } from 'vitest'
import { extent } from '../../../../test/campaign.ts'
import { testLedger, warmSlot } from '../../../sandbox/test/support/ledger-contract.ts'
import { storedLedger } from '../../src/replicas/ledger.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'

describeOnPostgres('on PostgreSQL', (postgres) => {
  let admin: Kysely<unknown>
  let made = 0
  beforeAll(async () => {
    admin = postgres.connect()
    const ups = Object.entries(sessionsMigrations).map(([name, up]) => [name, { up }])
    const migrator = new Migrator({
      db: admin,
      provider: { getMigrations: async () => Object.fromEntries(ups) },
    })
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined) throw error
  }, 60_000)

  /** Tables of the ledger's own, as the migrations make them. */
  async function schema(): Promise<string> {
    const name = `ledger_${++made}`
    await sql`create schema ${sql.id(name)}`.execute(admin)
    for (const table of ['sandbox_slots', 'counters'])
      await sql`create table ${sql.id(name, table)} (like ${sql.id('public', table)} including all)`.execute(
        admin,
      )
    return name
  }

  testLedger('sessions store on PostgreSQL', async () => {
    const name = await schema()
    const opened: Kysely<SessionsSchema>[] = []
    const open = () => {
      const db = postgres.connect<SessionsSchema>(name)
      opened.push(db)
      return storedLedger(db)
    }
    const dispose = async (): Promise<void> => {
      for (const db of opened) await db.destroy()
    }
    return { ledger: open(), reopen: async () => open(), dispose }
  })

  test('two controllers claim for the same people at once: each person has one slot, and each claim returns it', async () => {
    const name = await schema()
    const dbs: Kysely<SessionsSchema>[] = [postgres.connect(name), postgres.connect(name)]
    const ledgers = dbs.map((db) => storedLedger(db))
    const [first] = ledgers
    const users = Array.from({ length: extent(6, 40) }, (_, n) => `user-${n}`)
    const slots = Array.from({ length: users.length * 4 }, (_, n) => `s${String(n).padStart(7, '0')}`)
    for (const [n, slot] of slots.entries()) await first?.add(warmSlot(slot, 30_000 + n))
    // Every user's claims, of different slots and of slots that others want too, all at the same time.
    const asked = users.flatMap((user, u) =>
      Array.from({ length: 8 }, (_, n) => ({ user, slot: slots[(u * 4 + (n % 5)) % slots.length] ?? '' })),
    )
    const claims = await Promise.allSettled(
      asked.map(
        ({ user, slot }, n) => ledgers[n % 2]?.claim(slot, user) ?? Promise.reject(new Error('none')),
      ),
    )
    const held = new Map<string, LedgerSlot>()
    for (const slot of (await first?.list()) ?? []) if (slot.userId !== undefined) held.set(slot.userId, slot)
    expect([...held.keys()].toSorted()).toEqual(users.toSorted())
    for (const [n, claim] of claims.entries()) {
      const user = asked[n]?.user ?? ''
      if (claim.status === 'fulfilled') expect(claim.value).toEqual(held.get(user))
      else expect(claim.reason).toMatchObject({ name: 'SandboxError', code: 'exists' })
    }
  }, 60_000)
})
