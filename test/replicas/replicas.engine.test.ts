/** Failures of several agents and services, and their effects: the rows of `matrix.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, onTestFailed, test } from 'vitest'
import { accountsMigrations } from '../../packages/storage/src/accounts/migrations.ts'
import type { Migrations } from '../../packages/storage/src/database/database.ts'
import { openStore } from '../../packages/storage/src/database/open.ts'
import { sessionsMigrations } from '../../packages/storage/src/store/migrations.ts'
import { postgresPrograms } from '../../packages/storage/test/support/postgres.ts'
import { sample } from '../campaign.ts'
import { THIS_VERSION } from '../e2e/processes.ts'
import { casesOf, ROWS, runCase } from './matrix.ts'
import { rollOut } from './roll-out.ts'
import { type World, openWorld } from './world.ts'

const REPLICAS = 2
/** Cases of an ordinary run. */
const FEW = 3

const missing =
  process.getuid?.() !== 0
    ? 'mounting a small disk needs root'
    : postgresPrograms === undefined
      ? 'there is no PostgreSQL on this machine (apt install postgresql)'
      : undefined
if (missing !== undefined) process.stderr.write(`replicas: left out, ${missing}\n`)

/** Adds columns and tables like a later version. */
async function migrateFurther(database: string): Promise<void> {
  const adds =
    (table: string): Migrations[string] =>
    async ({ schema }) => {
      const column = schema
        .alterTable(table)
        .addColumn('later', 'text', (of) => of.notNull().defaultTo('later'))
      await column.execute()
      await schema.createTable('later_things').addColumn('id', 'text').execute()
    }
  const sessions = { ...sessionsMigrations, '999_later': adds('sessions') }
  await (await openStore(database, 'sessions', sessions)).close()
  const accounts = { ...accountsMigrations, '999_later': adds('auth_user') }
  await (await openStore(database, 'accounts', accounts)).close()
}

describe.skipIf(missing !== undefined)('several agents and services', () => {
  const stack = new AsyncDisposableStack()
  let world: World
  beforeAll(async () => {
    world = await openWorld(postgresPrograms ?? '', REPLICAS, stack)
  }, 240_000)
  afterAll(() => stack.disposeAsync())

  const keepLogs = (): void => {
    mkdirSync('test-results', { recursive: true })
    writeFileSync(`test-results/failed-replicas.log`, world.sandlot.logs())
  }

  const cases = casesOf(ROWS).filter(({ row }) => REPLICAS > 1 || row.alone === true)
  for (const { name, row } of cases)
    if (row.missing !== undefined) process.stderr.write(`replicas: ${name}: left out, ${row.missing}\n`)
  test.each(
    sample(
      'replicas',
      cases.filter(({ row }) => row.missing === undefined).map((one) => [one.name, one] as const),
      FEW,
    ),
  )('%s', { timeout: 120_000 }, async (_name, one) => {
    onTestFailed(keepLogs)
    console.log(await runCase(world, one))
  })

  test('on a database that a later version has migrated all go on, start, hand over and take over', async () => {
    onTestFailed(keepLogs)
    await migrateFurther(world.database)
    console.log(await rollOut(world, THIS_VERSION))
  }, 240_000)
})
