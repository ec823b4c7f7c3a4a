import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { openAccounts } from '../../src/accounts/accounts.ts'
import { accountsMigrations } from '../../src/accounts/migrations.ts'
import { openWriter } from '../../src/database/database.ts'

const OPTIONS = { secret: 'x'.repeat(40), publicUrl: 'http://127.0.0.1:8002' }

test('a user of an older version is a member after the migration', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'sandlot-roles-')), 'accounts.db')
  const old = Object.entries(accountsMigrations).filter(([name]) => name < '005')
  const before = await openWriter(path, Object.fromEntries(old))
  await sql`insert into auth_user (id, name, email, "emailVerified", "createdAt", "updatedAt", role)
    values ('ann', 'Ann', 'ann@example.org', 0, '2026-01-01', '2026-01-01', 'user')`.execute(before.db)
  await before.close()

  const after = await openAccounts(path, OPTIONS)
  expect(await after.users.list()).toStrictEqual([
    { id: 'ann', name: 'Ann', email: 'ann@example.org', role: 'member', teams: [] },
  ])
  await after.close()
})
