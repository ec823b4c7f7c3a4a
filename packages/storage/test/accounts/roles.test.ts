import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { openAccounts } from '../../src/accounts/accounts.ts'

const OPTIONS = { secret: 'x'.repeat(40), publicUrl: 'http://127.0.0.1:8002' }

test('a user of an older version is a member after the migration', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'sandlot-roles-')), 'accounts.db')
  const before = await openAccounts(path, OPTIONS)
  const ann = { name: 'Ann', email: 'ann@example.org', password: 'correct horse' }
  const { id } = await before.createUser({ ...ann, role: 'member' })
  await before.close()
  const file = new Database(path)
  file.exec(`update auth_user set role = 'user'; drop table team_member; drop table team;
    delete from kysely_migration where name >= '005'`)
  file.close()

  const after = await openAccounts(path, OPTIONS)
  expect(await after.listUsers()).toStrictEqual([
    { id, name: 'Ann', email: 'ann@example.org', role: 'member', teams: [] },
  ])
  await after.close()
})
