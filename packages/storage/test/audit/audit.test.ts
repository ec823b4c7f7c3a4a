import type { NewAudit } from '@sandlot/shared/admin/audit'
import fc from 'fast-check'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkChain, FIRST_HASH, hashOf } from '../../src/audit/chain.ts'
import { openStore } from '../../src/database/open.ts'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import type { SessionReader, SessionStore } from '../../src/sessions/store.ts'
import { campaign, extent } from '../../../../test/campaign.ts'
import { onBoth } from '../support/databases.ts'

const ANN = { id: 'ann', name: 'Ann Adams', email: 'ann@example.org' }
const line = (more: Partial<NewAudit> = {}): NewAudit => ({ who: ANN, what: 'secret_set', ...more })

onBoth(({ fresh }) => {
  let where: string
  let store: SessionStore
  let reader: SessionReader
  beforeEach(async () => {
    where = await fresh()
    store = await openSessionStore(where)
    reader = await openSessionReader(where)
  })
  afterEach(async () => {
    await reader.close()
    await store.close()
  })

  /** A change by hand, outside of Sandlot. */
  async function byHand(statement: string): Promise<void> {
    const { db, close } = await openStore(where, 'sessions', sessionsMigrations)
    await sql.raw(statement).execute(db)
    await close()
  }

  test('a line says who did what to whom, from where, before and after', async () => {
    await store.admin.audit.write({
      who: ANN,
      from: { address: '192.0.2.7', key: 'laptop', signIn: 'si_1' },
      what: 'settings_changed',
      whom: { id: 'bob', name: 'Bob' },
      before: { mode: 'manual' },
      after: { mode: 'yolo' },
    })
    expect(await reader.admin.audit.page({ limit: 10 })).toMatchObject([
      {
        source: 'agent',
        seq: 1,
        who: ANN,
        from: { address: '192.0.2.7', key: 'laptop', signIn: 'si_1' },
        what: 'settings_changed',
        whom: { id: 'bob', name: 'Bob' },
        before: { mode: 'manual' },
        after: { mode: 'yolo' },
        count: 1,
      },
    ])
  })

  test('lines that are written at once make one chain', async () => {
    await Promise.all(Array.from({ length: 50 }, () => store.admin.audit.write(line())))
    expect(await reader.admin.audit.check()).toMatchObject({ lines: 50, head: { seq: 50 }, problems: [] })
  })

  test('a search finds by person, text, kind and time, page by page', async () => {
    for (let index = 0; index < 7; index++)
      await store.admin.audit.write(line({ whom: { name: `100%_${index}` }, what: 'secret_set' }))
    await store.admin.audit.write({ who: { id: 'bob', name: 'Bob' }, what: 'key_made' })
    const first = await reader.admin.audit.page({ limit: 5 })
    const last = first.at(-1)
    const rest = await reader.admin.audit.page({ limit: 5, behind: last && { at: last.at, seq: last.seq } })
    expect([...first, ...rest].map(({ seq }) => seq)).toEqual([8, 7, 6, 5, 4, 3, 2, 1])
    const found = async (query: object) =>
      (await reader.admin.audit.page({ limit: 9, ...query })).map(({ seq }) => seq)
    expect(await found({ text: '0%_3' })).toEqual([4])
    expect(await found({ text: "'" })).toEqual([])
    expect(await found({ who: 'bob' })).toEqual([8])
    expect(await found({ what: ['key_made'] })).toEqual([8])
    expect(await found({ what: [] })).toEqual([])
    expect(await found({ to: 0 })).toEqual([])
    expect(await found({ about: 'bob' })).toEqual([8])
  })

  test('what retention removes leaves the hash of its last line, and the chain holds', async () => {
    for (let index = 0; index < 10; index++) await store.admin.audit.write(line())
    const all = await reader.admin.audit.page({ limit: 20 })
    expect(await store.admin.audit.removeOlder(Date.now() + 1, 4)).toBe(4)
    const state = await reader.admin.audit.check()
    expect(state).toMatchObject({ lines: 6, problems: [] })
    expect(state.anchor).toEqual({ seq: 4, hash: all.find(({ seq }) => seq === 4)?.hash })
    expect(await store.admin.audit.removeOlder(Date.now() + 1, 100)).toBe(6)
    await store.admin.audit.write(line())
    expect(await reader.admin.audit.check()).toMatchObject({ lines: 1, head: { seq: 11 }, problems: [] })
  })

  test('a line that somebody edited, removed or put in by hand is found and named', async () => {
    for (let index = 0; index < 6; index++) await store.admin.audit.write(line())
    await byHand("update audit set who_name = 'Mallory' where seq = 2")
    await byHand('delete from audit where seq = 4')
    await byHand(
      `insert into audit select 99, at, what, who_id, who_name, who_email, address, key_name, sign_in,
      whom_id, whom_name, before_json, after_json, count, hash from audit where seq = 1`,
    )
    const { problems } = await reader.admin.audit.check()
    expect(problems).toHaveLength(3)
    expect(problems[0]).toMatch(/^Line 2 of .* was changed or put in by hand\.$/)
    expect(problems.slice(1)).toEqual(['Line 4 was removed by hand.', 'Line 99 was put in by hand.'])
    await byHand('delete from audit where seq > 4')
    expect((await reader.admin.audit.check()).problems.at(-1)).toBe('Lines 4 to 6 were removed by hand.')
  })
})

const row = (seq: number) => ({
  seq,
  at: 1_000 + seq,
  what: 'secret_set',
  who_id: 'ann',
  who_name: 'Ann',
  who_email: null,
  address: null,
  key_name: null,
  sign_in: null,
  whom_id: null,
  whom_name: `name ${seq}`,
  before_json: null,
  after_json: null,
  count: 1,
})

function chainOf(lines: number) {
  let hash = FIRST_HASH
  return Array.from({ length: lines }, (_, index) => {
    hash = hashOf(hash, row(index + 1))
    return { ...row(index + 1), hash }
  })
}

test('any one change by hand is found, and names its line', async () => {
  const change = fc.record({
    lines: fc.integer({ min: 1, max: 30 }),
    at: fc.nat(29),
    how: fc.constantFrom('edit', 'remove', 'swap', 'add', 'hash'),
    field: fc.constantFrom('at', 'what', 'who_name', 'whom_name', 'address', 'count'),
  })
  await fc.assert(
    fc.asyncProperty(change, async ({ lines, at, how, field }) => {
      const chain = chainOf(lines)
      const index = at % lines
      const head = chain.at(-1) ?? { seq: 0, hash: FIRST_HASH }
      const point = { seq: head.seq, hash: head.hash }
      const changed = chain.map((one) => ({ ...one }))
      const target = changed[index]
      const other = changed[(index + 1) % lines]
      if (target === undefined || other === undefined) return
      const named = target.seq
      if (how === 'edit')
        Object.assign(target, { [field]: field === 'at' || field === 'count' ? 77_777 : 'x' })
      if (how === 'hash') target.hash = 'f'.repeat(64)
      if (how === 'remove') changed.splice(index, 1)
      if (how === 'swap') {
        if (lines === 1) return
        ;[target.whom_name, other.whom_name] = [other.whom_name, target.whom_name]
      }
      if (how === 'add') changed.push({ ...row(lines + 1), hash: hashOf(head.hash, row(lines + 1)) })
      const clean = await checkChain({ seq: 0, hash: FIRST_HASH }, point, chain)
      expect(clean.problems).toEqual([])
      const { problems } = await checkChain({ seq: 0, hash: FIRST_HASH }, point, changed)
      expect(problems.join('\n')).toContain(`Line ${how === 'add' ? lines + 1 : named} `)
    }),
    { seed: campaign.seed, numRuns: extent(200, 5_000) },
  )
})
