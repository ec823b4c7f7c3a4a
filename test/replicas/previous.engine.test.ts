/** From the version before to this one while people work, both as they are: agents, services and sandboxes of either. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, onTestFailed, test } from 'vitest'
import { postgresPrograms } from '../../packages/storage/test/support/postgres.ts'
import { campaign } from '../campaign.ts'
import { THIS_VERSION } from '../e2e/processes.ts'
import { makePrevious, previousIsMissing } from './previous.ts'
import { rollOut } from './roll-out.ts'
import { type World, openWorld } from './world.ts'

const missing =
  process.getuid?.() !== 0
    ? 'mounting a small disk needs root'
    : postgresPrograms === undefined
      ? 'there is no PostgreSQL on this machine (apt install postgresql)'
      : previousIsMissing
if (campaign.full && missing !== undefined) process.stderr.write(`the version before: left out, ${missing}\n`)

describe.skipIf(!campaign.full || missing !== undefined)('the version before', () => {
  const stack = new AsyncDisposableStack()
  let world: World
  beforeAll(async () => {
    world = await openWorld(postgresPrograms ?? '', 2, stack, { version: await makePrevious(stack) })
  }, 600_000)
  afterAll(() => stack.disposeAsync())

  test('is replaced by this one, one process after the other, and takes over from one that dies', async () => {
    onTestFailed(() => {
      mkdirSync('test-results', { recursive: true })
      writeFileSync('test-results/failed-previous.log', world.sandlot.logs())
    })
    console.log(await rollOut(world, THIS_VERSION))
  }, 300_000)
})
