/** The rows about escapes and control where the engine has its own filter alone: sbxd’s walls hold. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { asOnKubernetes, looseBackend } from '../../packages/sandbox/test/support/loose-backend.ts'
import { docker } from '../../packages/sandbox/test/support/docker-fixture.ts'
import { campaign, sample } from '../campaign.ts'
import { rows as control } from './control.ts'
import { rows as escape } from './escape.ts'
import { dockerEngine } from './docker-engine.ts'
import { openStage, type Stage } from './stage.ts'
import { filterRows, PROFILE_TEXT, UPPER_HALF_OF_PERSONALITY } from './system-calls.ts'

/** The filter’s own rows are all played. */
const OTHERS_DRAWN = 12
/** Rows that the engine’s own filter decides, not sbxd’s. */
const ENGINES = new Set([PROFILE_TEXT, UPPER_HALF_OF_PERSONALITY])

let stage: Stage | undefined
beforeAll(async () => {
  const engine = await dockerEngine()
  stage = await openStage(engine, looseBackend(engine.fixture, asOnKubernetes))
}, 180_000)
afterAll(() => stage?.close(), 120_000)

const others = [...escape, ...control].filter((row) => !filterRows.some((each) => each === row) && !row.heavy)
const drawn = campaign.full ? others : sample('engine filter', others, OTHERS_DRAWN)
const rows = [...filterRows, ...drawn].filter(({ what }) => !ENGINES.has(what))

test('the engine was given no filter of ours', async () => {
  const options = await docker(
    'inspect',
    '--format',
    '{{json .HostConfig.SecurityOpt}}',
    (await stage?.sandbox())?.id ?? '',
  )
  expect(options).toBe('["no-new-privileges:true"]')
})

describe('with the engine’s own filter alone', () => {
  test.for(rows)('$id $what', { timeout: 120_000 }, async (row, { skip }) => {
    if (stage === undefined) throw new Error('the stage is not open')
    const reason = row.skip?.(stage)
    if (reason !== undefined) return skip(reason)
    await row.run(stage)
  })
})
