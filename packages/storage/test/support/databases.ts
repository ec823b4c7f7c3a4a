/** Runs a suite of a store on both databases: a file of SQLite, and PostgreSQL where this machine has it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { accountsMigrations } from '../../src/accounts/migrations.ts'
import { openStore } from '../../src/database/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { describeOnPostgres } from './on-postgres.ts'

export interface Databases {
  name: 'SQLite' | 'PostgreSQL'
  /** The path or address of an empty store. */
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

  describeOnPostgres('on PostgreSQL', (postgres) => {
    let made = 0
    beforeAll(async () => {
      const empty = await postgres.database('empty')
      await (await openStore(empty, 'sessions', sessionsMigrations)).close()
      await (await openStore(empty, 'accounts', accountsMigrations)).close()
    }, 60_000)
    suite({ name: 'PostgreSQL', fresh: () => postgres.database(`d${++made}`, 'empty') })
  })
}
