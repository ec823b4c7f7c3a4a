/** The crash campaign with real processes: SIGKILL at a point, then the next process takes up what it finds. */
import { describe, expect, test } from 'vitest'
import { extent, sample } from '../../../../test/campaign.ts'
import { CrashBench } from './bench.ts'
import { checkAfterCrashes, eachPlace, finalHistory } from './check.ts'
import { liveAndDie } from './kill.ts'
import { type CrashScript, SCRIPTS } from './scripts.ts'

/** Those with a sandbox are in crash.engine.test.ts: one that is a child process would die with its parent. */
const scripts = SCRIPTS.filter(({ sandbox }) => sandbox === undefined)
const none = (): never => {
  throw new Error('this script uses no sandbox')
}

async function kill(script: CrashScript, endsAt: number, history: Parameters<typeof checkAfterCrashes>[1]) {
  await using bench = await CrashBench.start(script, none)
  const killed = await liveAndDie({ script: script.name, ...bench.world, endsAt })
  expect((await bench.live()).how).toBe('done')
  await checkAfterCrashes(bench, history)
  return killed
}

describe('a process that is killed', () => {
  const drawn = sample('crash processes', scripts, 1)
  test.each(drawn)('$name', { timeout: extent(60_000, 3_600_000) }, async (script) => {
    await using bench = await CrashBench.start(script, none)
    const { passed } = await bench.live()
    const history = await finalHistory(bench)
    const points = sample(`crash process ${script.name}`, [...passed.keys()], 2)
    let killed = 0
    await eachPlace(points, async (place) => {
      if (await kill(script, place + 1, history)) killed++
    })
    console.log(`${script.name}: ${killed} processes killed at ${points.length} of ${passed.length} points`)
    expect(killed).toBeGreaterThan(0)
  })
})
