/** Every row of the table of hostile inputs, in a real sandbox, and after each what must always be true. See README.md. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { campaign, sample } from '../campaign.ts'
import { rows as control } from './control.ts'
import { rows as escape } from './escape.ts'
import { rows as exhaustion } from './exhaustion.ts'
import type { Row } from './row.ts'
import { openStage, type Stage } from './stage.ts'
import { openWatch, type Watch } from './watch.ts'

/** Rows that take seconds: so many of each class in an ordinary run. */
const HEAVY_DRAWN = 2
const TRIES = 3

let stage: Stage | undefined
let watch: Watch | undefined
beforeAll(async () => {
  stage = await openStage()
  watch = await openWatch(stage)
}, 180_000)
afterAll(async () => {
  if (campaign.full && watch !== undefined) console.info('hostile: idle', watch.idle, 'worst', watch.worst)
  await watch?.close()
  await stage?.close()
}, 120_000)

async function play(row: Row, skip: (reason: string) => void): Promise<void> {
  if (stage === undefined || watch === undefined) throw new Error('the stage is not open')
  const [open, watching] = [stage, watch]
  const reason = row.skip?.(open)
  if (reason !== undefined) return skip(reason)
  for (let tries = 1; ; tries += 1) {
    const { broken, slow } = await watching.during(() => row.run(open))
    expect(broken).toEqual([])
    if (slow.length === 0) return
    if (tries === TRIES) expect(slow).toEqual([])
  }
}

describe.each([
  ['escape and privilege', escape],
  ['the control channel and the supervisor', control],
  ['exhaustion and neighbours', exhaustion],
])('%s', (name, rows) => {
  const heavy = new Set(
    sample(
      name,
      rows.filter((row) => row.heavy),
      HEAVY_DRAWN,
    ),
  )
  const drawn = rows.filter((row) => !row.heavy || heavy.has(row))
  test.for(drawn)('$id $what', { timeout: 600_000 }, (row, { skip }) => play(row, skip))
})
