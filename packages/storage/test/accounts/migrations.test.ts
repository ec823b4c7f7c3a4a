import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AccountsSchema } from '../../src/tables/accounts.ts'
import { accountsMigrations } from '../../src/accounts/migrations.ts'
import { openWriter } from '../../src/database/database.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-accounts-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** The last of each state that some version has left behind: what comes after it has a later name. */
const LAST = ['010_team_seeds', '012_notices', '013_alerts'] as const

test.each(LAST)('accounts of the version that ended with %s are migrated', async (last) => {
  const file = join(folder, 'accounts.db')
  // 011 was never given.
  const earlier = Object.entries(accountsMigrations).filter(([name]) => name <= last)
  const before = await openWriter<AccountsSchema>(file, Object.fromEntries(earlier))
  await before.db.destroy()
  const now = await openWriter<AccountsSchema>(file, accountsMigrations)
  expect(await now.db.selectFrom('alert_state').selectAll().execute()).toEqual([])
  await now.db.destroy()
})

test('names are in their order, so that none comes before one that was applied', () => {
  const names = Object.keys(accountsMigrations)
  expect(names).toEqual(names.toSorted())
  expect(names.slice(0, 11)).toContain('012_notices')
})
