/** Runs a suite of a store on both databases: a file of SQLite, and PostgreSQL where this machine has it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { accountsMigrations } from '../../src/accounts/schema.ts'
import { openStore } from '../../src/database/open.ts'
import { sessionsMigrations } from '../../src/sessions/schema.ts'
import { type Postgres, postgresPrograms, startPostgres } from './postgres.ts'

export interface Databases {
  name: 'SQLite' | 'PostgreSQL'
  /** Where an empty store can be opened: a path, or an address. */
  fresh(): Promise<string>
}

/** One server for all of a suite, and in it a database per call of `fresh`, migrated already. */
export function onBoth(suite: (databases: Databases) => void): void {
  describe('on SQLite', () => {
    let folder: string
    beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'sandlot-store-'))))
    afterAll(() => rmSync(folder, { recursive: true }))
    suite({ name: 'SQLite', fresh: async () => join(mkdtempSync(join(folder, 'd-')), 'store.db') })
  })

  if (postgresPrograms === undefined)
    process.stderr.write(
      'postgres: left out, there is no PostgreSQL on this machine (apt install postgresql)\n',
    )
  describe.skipIf(postgresPrograms === undefined)('on PostgreSQL', () => {
    let postgres: Postgres
    let made = 0
    beforeAll(async () => {
      postgres = await startPostgres(postgresPrograms ?? '')
      const empty = await postgres.database('empty')
      await (await openStore(empty, 'sessions', sessionsMigrations)).close()
      await (await openStore(empty, 'accounts', accountsMigrations)).close()
    }, 60_000)
    afterAll(() => postgres?.stop())
    suite({ name: 'PostgreSQL', fresh: () => postgres.database(`d${++made}`, 'empty') })
  })
}
