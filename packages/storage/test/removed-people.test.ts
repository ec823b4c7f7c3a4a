/**
 * Every table that names a person is emptied of a removed one, or says here why not. A new table
 * without a line fails.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openAccounts } from '../src/accounts/accounts.ts'
import { openSessionStore } from '../src/store/open.ts'

/** `remove`: with the person. `purge`: with their chats. Else why a row stays, or what removes it. */
const SESSIONS: Record<string, string> = {
  people: 'remove',
  secrets: 'remove',
  mcp_servers: 'remove',
  rules: 'remove',
  instructions: 'remove',
  notices: 'remove',
  chat_marks: 'remove',
  projects: 'remove',
  usage: 'purge',
  runs: 'purge',
  usage_days: 'purge',
  tool_days: 'purge',
  submissions: 'purge',
  outcomes: 'purge',
  sessions: 'each is deleted or handed over by the session manager',
  line: 'goes with the end of its prompt',
  sandbox_slots: 'goes with the sandbox, so that a volume is never forgotten',
  owners: 'the bare id, so that two agents never act for it',
  removed_people: 'the bare id, so that it is never given again',
}
const ACCOUNTS: Record<string, string> = {
  removal: 'what is left to do of it; goes when a purge is done',
  presence: 'goes within minutes, with the last page of theirs that is open',
  upload: 'goes with the removal, by the service, which may have the files on its disk',
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-removed-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

interface Column {
  name: string
  type: string
  notnull: number
}

/** Tables with a column that names a person, with that column. */
function tablesOf(db: DatabaseSync): { table: string; person: string; columns: Column[] }[] {
  const all = db.prepare("select name from sqlite_master where type = 'table'").all() as { name: string }[]
  return all.flatMap(({ name: table }) => {
    const columns = db
      .prepare('select name, type, "notnull" from pragma_table_info(?)')
      .all(table)
      .map(({ name, type, notnull }): Column => ({
        name: String(name),
        type: String(type),
        notnull: Number(notnull),
      }))
    const person = columns.find(({ name }) => /^(user_?id|owner_?id|person_?id)$/i.test(name))?.name
    return person === undefined ? [] : [{ table, person, columns }]
  })
}

test('of the agent’s database', async () => {
  const path = join(folder, 'sessions.db')
  const store = await openSessionStore(path)
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  const tables = tablesOf(db)
  expect(tables.map(({ table }) => table).toSorted()).toEqual(Object.keys(SESSIONS).toSorted())
  for (const { table, person, columns } of tables)
    for (const user of ['ann', 'bob']) {
      const values = columns.map(({ name, type }) => {
        if (name === person) return user
        if (/int|double|real/i.test(type)) return user === 'ann' ? 1 : 2
        return /bytea|blob/i.test(type) ? new Uint8Array([1]) : user
      })
      const names = columns.map(({ name }) => `"${name}"`).join(', ')
      db.prepare(`insert into "${table}" (${names}) values (${values.map(() => '?').join(', ')})`).run(
        ...values,
      )
    }
  const left = (user: string, how: string): string[] =>
    tables
      .filter(({ table, person }) => {
        const found = db.prepare(`select 1 from "${table}" where "${person}" = ?`).get(user)
        return SESSIONS[table] === how && found !== undefined
      })
      .map(({ table }) => table)
  const all = (how: string) => tables.map(({ table }) => table).filter((table) => SESSIONS[table] === how)
  await store.people.known.remove('ann', 1)
  expect(left('ann', 'remove')).toEqual([])
  expect(left('ann', 'purge')).toEqual(all('purge'))
  await store.people.known.purge('ann')
  expect(left('ann', 'purge')).toEqual([])
  for (const how of ['remove', 'purge']) expect(left('bob', how)).toEqual(all(how))
  db.close()
  await store.close()
})

test('of the service’s database: with the account', async () => {
  const path = join(folder, 'accounts.db')
  const options = { secret: 'x'.repeat(32), publicUrl: 'http://127.0.0.1:1' }
  await (await openAccounts(path, options)).close()
  const db = new DatabaseSync(path)
  const others = tablesOf(db).filter(({ table, person }) => {
    const keys = db
      .prepare('select "table", on_delete from pragma_foreign_key_list(?) where "from" = ?')
      .all(table, person) as { table: string; on_delete: string }[]
    return !keys.some((key) => key.table === 'auth_user' && key.on_delete === 'CASCADE')
  })
  expect(others.map(({ table }) => table).toSorted()).toEqual(Object.keys(ACCOUNTS).toSorted())
  db.close()
})
