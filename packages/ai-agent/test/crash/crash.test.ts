/**
 * The crash campaign: every script is ended at every point (before and after each commit, at each live event, at each
 * step towards the sandbox and the model), then taken up to its end. Here the life freezes inside this process, which
 * makes thousands of them affordable; crash-process.test.ts kills real processes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { campaign, extent, randomFrom, sample } from '../../../../test/campaign.ts'
import { buildSbxd } from '../../../sandbox/test/support/build-sbxd.ts'
import type { ModelMessage } from '../../src/model/model.ts'
import { CrashBench, localSandboxes } from './bench.ts'
import { checkAfterCrashes, finalHistory } from './check.ts'
import { type CrashScript, SCRIPTS } from './scripts.ts'

let folder: string
let sbxd: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-sbxd-'))
  sbxd = await buildSbxd(folder)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A script without a crash: its points, and the model's final history. */
async function uncrashed(
  script: CrashScript,
): Promise<{ points: readonly string[]; history: ModelMessage[] }> {
  await using bench = await CrashBench.start(script, () => localSandboxes(sbxd))
  const { how, passed } = await bench.live()
  expect(how).toBe('done')
  const history = await finalHistory(bench)
  await checkAfterCrashes(bench, history)
  return { points: passed, history }
}

/** End one life after another at these points, then let one live. Returns how many were really ended. */
async function crash(
  script: CrashScript,
  ends: readonly number[],
  history: readonly ModelMessage[],
): Promise<number> {
  await using bench = await CrashBench.start(script, () => localSandboxes(sbxd))
  const at: string[] = []
  try {
    for (const end of ends) {
      const { how, passed } = await bench.live(end)
      if (how === 'killed') at.push(`${end} (${passed.at(-1)})`)
    }
    expect((await bench.live()).how).toBe('done')
    await checkAfterCrashes(bench, history)
    return at.length
  } catch (error) {
    throw new Error(`${script.name}, ended at point ${at.join(', then ')}`, { cause: error })
  }
}

describe.each(sample('crash scripts', SCRIPTS, 8))('$name', (script) => {
  test(
    'ended at any point and taken up, it comes to the same',
    { timeout: extent(60_000, 3_600_000) },
    async () => {
      const { points, history } = await uncrashed(script)
      const places = points.map((_, place) => place + 1)
      let killed = 0
      const once = sample(`crash ${script.name}`, places, 1)
      for (const end of once) killed += await crash(script, [end], history)

      const random = randomFrom(`${campaign.seed} twice ${script.name}`)
      const any = (): number => 1 + Math.floor(random() * points.length)
      const twice = extent(1, points.length)
      for (let n = 0; n < twice; n++) killed += await crash(script, [any(), any()], history)
      console.log(`${script.name}: ${points.length} points, ${once.length + twice} runs, ${killed} kills`)
      expect(killed).toBeGreaterThan(0)
    },
  )
})
