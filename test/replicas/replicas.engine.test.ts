/** What fails while several agents and services work, and what is true afterwards: the rows of `matrix.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, onTestFailed, test } from 'vitest'
import { postgresPrograms } from '../../packages/storage/test/support/postgres.ts'
import { sample } from '../campaign.ts'
import { CASES, runCase } from './matrix.ts'
import { type World, openWorld } from './world.ts'

const REPLICAS = 2
/** Of what a full run takes all. */
const FEW = 3

const missing =
  process.getuid?.() !== 0
    ? 'mounting a small disk needs root'
    : postgresPrograms === undefined
      ? 'there is no PostgreSQL on this machine (apt install postgresql)'
      : undefined
if (missing !== undefined) process.stderr.write(`replicas: left out, ${missing}\n`)

describe.skipIf(missing !== undefined)('several agents and services', () => {
  const stack = new AsyncDisposableStack()
  let world: World
  beforeAll(async () => {
    world = await openWorld(postgresPrograms ?? '', REPLICAS, stack)
  }, 120_000)
  afterAll(() => stack.disposeAsync())

  const cases = CASES.filter(({ row }) => REPLICAS > 1 || row.alone === true)
  for (const { name, row } of cases)
    if (row.missing !== undefined) process.stderr.write(`replicas: ${name}: left out, ${row.missing}\n`)
  test.each(
    sample(
      'replicas',
      cases.filter(({ row }) => row.missing === undefined).map((one) => [one.name, one] as const),
      FEW,
    ),
  )('%s', { timeout: 120_000 }, async (_name, one) => {
    onTestFailed(() => {
      mkdirSync('test-results', { recursive: true })
      writeFileSync(`test-results/failed-replicas.log`, world.sandlot.logs())
    })
    console.log(await runCase(world, one))
  })
})
