/**
 * The store fails in the middle, at every write of every script: there is no room, and none later until the client was told; or no
 * room for this write alone. The agent lives on.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isOutcome, metaOf } from '@sandlot/shared/events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { extent, sample } from '../../../../test/campaign.ts'
import { buildSbxd } from '../../../sandbox/test/build-sbxd.ts'
import type { ModelMessage } from '../../src/model/model.ts'
import { CrashBench, localSandboxes } from './bench.ts'
import { checkAfterCrashes, eachPlace, finalHistory } from './check.ts'
import { FailingDisk } from './failing-disk.ts'
import { PromptFailed } from './play.ts'
import { type CrashScript, SCRIPTS } from './scripts.ts'

let folder: string
let sbxd: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-sbxd-'))
  sbxd = await buildSbxd(folder)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function undisturbed(script: CrashScript): Promise<{ writes: number; history: ModelMessage[] }> {
  await using bench = await CrashBench.start(script, () => localSandboxes(sbxd))
  const disk = new FailingDisk()
  await bench.liveOn(disk)
  return { writes: disk.writes, history: await finalHistory(bench) }
}

/** A call ended because the store had failed. */
async function toldOfFailure(bench: CrashBench): Promise<boolean> {
  return bench.read(async (_store, log) =>
    log.filter(isOutcome).some((event) => metaOf(event).reason === 'tool_error'),
  )
}

describe.each(sample('scripts on a full disk', SCRIPTS, 6))('$name', (script) => {
  test(
    'with no room for any of its writes, it comes to the same when there is room',
    { timeout: extent(60_000, 1_800_000) },
    async () => {
      const { writes, history } = await undisturbed(script)
      const places = Array.from({ length: writes }, (_, place) => place)
      let struck = 0
      await eachPlace(sample(`full disk ${script.name}`, places, 2), async (place) => {
        await using bench = await CrashBench.start(script, () => localSandboxes(sbxd))
        const disk = new FailingDisk('full', place + 1)
        await bench.liveOn(disk)
        if (disk.struck) struck += 1
        await checkAfterCrashes(bench, history)
      })
      console.log(`${script.name}: ${writes} writes, ${struck} without room`)
      expect(struck).toBeGreaterThan(0)
    },
  )

  test(
    'with no room for one write alone, each call has one outcome and each prompt its end',
    { timeout: extent(60_000, 1_800_000) },
    async () => {
      const { writes, history } = await undisturbed(script)
      const places = Array.from({ length: writes }, (_, place) => place)
      let failed = 0
      await eachPlace(sample(`one write ${script.name}`, places, 1), async (place) => {
        await using bench = await CrashBench.start(script, () => localSandboxes(sbxd))
        const went = await bench.liveOn(new FailingDisk('once', place + 1)).catch((error: unknown) => error)
        if (went !== undefined) expect(went).toBeInstanceOf(PromptFailed)
        const told = went !== undefined || (await toldOfFailure(bench))
        if (told) failed += 1
        await checkAfterCrashes(bench, told ? undefined : history)
      })
      console.log(
        `${script.name}: ${writes} writes, ${failed} of them told as an error of the call or the prompt`,
      )
    },
  )
})
