/**
 * The store fails in the middle, at every write of every script: there is no room, and none later
 * until the client was notified; or no room for this write alone. The agent lives on.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { extent, sample } from '../../../../test/campaign.ts'
import { buildSbxd } from '../../../sandbox/test/support/build-sbxd.ts'
import type { ModelMessage } from '../../src/model/model.ts'
import { CrashBench, localSandboxes } from './bench.ts'
import { checkAfterCrashes, eachPlace, finalHistory } from './check.ts'
import { type DiskFailure, FailingDisk } from './failing-disk.ts'
import { PromptFailed } from './play.ts'
import { type CrashScript, SCRIPTS } from './scripts.ts'

let folder: string
let sbxd: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-sbxd-'))
  sbxd = await buildSbxd(folder)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A failure of the disk at each place of the script where it writes, a few of them in an ordinary run; `then` looks at what became of it. */
async function atEachWrite(
  script: CrashScript,
  failure: DiskFailure,
  then: (bench: CrashBench, disk: FailingDisk, undisturbed: readonly ModelMessage[]) => Promise<void>,
): Promise<void> {
  const start = (): Promise<CrashBench> => CrashBench.start(script, () => localSandboxes(sbxd))
  const undisturbed = async (): Promise<{ writes: number; history: ModelMessage[] }> => {
    await using bench = await start()
    const disk = new FailingDisk()
    await bench.liveOn(disk)
    return { writes: disk.writes, history: await finalHistory(bench) }
  }
  const { writes, history } = await undisturbed()
  const places = Array.from({ length: writes }, (_, place) => place)
  let struck = 0
  await eachPlace(sample(`${failure} ${script.name}`, places, 2), async (place) => {
    await using bench = await start()
    const disk = new FailingDisk(failure, place + 1)
    await then(bench, disk, history)
    if (disk.struck) struck += 1
  })
  console.log(`${script.name}: ${struck} writes failed (${failure}), of ${writes}`)
  expect(struck).toBeGreaterThan(0)
}

/** A call ended because the store had failed. */
async function toldOfFailure(bench: CrashBench): Promise<boolean> {
  return bench.read(async (_store, log) =>
    log.filter(isOutcome).some((event) => metaOf(event).reason === 'tool_error'),
  )
}

const timeout = extent(60_000, 1_800_000)
describe.each(sample('scripts on a full disk', SCRIPTS, 6))('$name', (script) => {
  test('with no room for any of its writes, it comes to the same when there is room', { timeout }, () =>
    atEachWrite(script, 'full', async (bench, disk, undisturbed) => {
      await bench.liveOn(disk)
      await checkAfterCrashes(bench, undisturbed)
    }),
  )

  test(
    'with no room for one write alone, each call has one outcome and each prompt its end',
    { timeout },
    () =>
      atEachWrite(script, 'once', async (bench, disk, undisturbed) => {
        const went = await bench.liveOn(disk).catch((error: unknown) => error)
        if (went !== undefined) expect(went).toBeInstanceOf(PromptFailed)
        const told = went !== undefined || (await toldOfFailure(bench))
        await checkAfterCrashes(bench, told ? undefined : undisturbed)
      }),
  )
})
