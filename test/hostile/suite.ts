/** Plays every row of the table of hostile inputs in a real sandbox, and after each what must always be true. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { campaign, sample } from '../campaign.ts'
import { rows as control } from './control.ts'
import { rows as escape } from './escape.ts'
import { rows as exhaustion } from './exhaustion.ts'
import { rows as files } from './files.ts'
import { rows as output } from './output.ts'
import type { Row } from './row.ts'
import { CANARIES, rows as secrets } from './secrets.ts'
import { openStage, type Stage, type StageEngine } from './stage.ts'
import { openWatch, type Watch } from './watch.ts'

/** An ordinary run plays so many ids of each class, all light rows of one together, and so many heavy rows. */
const IDS_DRAWN = 9
const HEAVY_DRAWN = 1
const TRIES = 3

/** Rows that are played under one observation. */
interface Act {
  id: string
  what: string
  rows: Row[]
}

function acts(name: string, rows: readonly Row[]): Act[] {
  const each = (some: readonly Row[]): Act[] =>
    some.map((row) => ({ id: row.id, what: row.what, rows: [row] }))
  if (campaign.full) return each(rows)
  const light = Object.entries(
    Object.groupBy(
      rows.filter((row) => !row.heavy),
      ({ id }) => id,
    ),
  ).map(([id, some = []]): Act => ({ id, what: some.map(({ what }) => what).join('; '), rows: some }))
  const heavy = rows.filter((row) => row.heavy)
  return [...sample(name, light, IDS_DRAWN), ...each(sample(`${name} heavy`, heavy, HEAVY_DRAWN))]
}

/** Adds the name of the row to its error. */
async function named(row: Row, open: Stage): Promise<void> {
  try {
    await row.run(open)
  } catch (error) {
    if (error instanceof Error) error.message = `${row.id} ${row.what}: ${error.message}`
    throw error
  }
}

/** Tests of all rows in sandboxes of this engine, which is made for them and disposed of after them. */
export function playRows(open: () => Promise<StageEngine>): void {
  let stage: Stage | undefined
  let watch: Watch | undefined
  beforeAll(async () => {
    vi.stubEnv('SANDLOT_CANARY', CANARIES.environment)
    vi.stubEnv('OPENAI_API_KEY', CANARIES.modelKey)
    stage = await openStage(await open())
    watch = await openWatch(stage)
  }, 180_000)
  afterAll(async () => {
    if (campaign.full && watch !== undefined)
      console.info(`hostile on ${stage?.engine.name}: idle`, watch.idle, 'worst', watch.worst)
    await watch?.close()
    await stage?.close()
    vi.unstubAllEnvs()
  }, 120_000)

  async function play(act: Act, skip: (reason: string) => void): Promise<void> {
    if (stage === undefined || watch === undefined) throw new Error('the stage is not open')
    const [open, watching] = [stage, watch]
    const playable = act.rows.filter((row) => row.skip?.(open) === undefined)
    if (playable.length === 0) return skip(act.rows.map((row) => row.skip?.(open)).join('; '))
    for (let tries = 1; ; tries += 1) {
      const { broken, slow } = await watching.during(async () => {
        for (const row of playable) await named(row, open)
      })
      expect(broken).toEqual([])
      if (slow.length === 0) return
      if (tries === TRIES) expect(slow).toEqual([])
    }
  }

  describe.each([
    ['escape and privilege', escape],
    ['the control channel and the supervisor', control],
    ['exhaustion and neighbours', exhaustion],
    ['files, paths and arguments', files],
    ['network and secrets', secrets],
    ['output to people and models', output],
  ])('%s', (name, rows) => {
    test.for(acts(name, rows))('$id $what', { timeout: 600_000 }, (act, { skip }) => play(act, skip))
  })
}
