/** The crash campaign with real processes and commands in a real container, which run on while the agent is dead. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { extent, sample } from '../../../../test/campaign.ts'
import { testConfig } from '../../../sandbox/test/support/config.ts'
import { type DockerFixture, dockerFixture, shell } from '../../../sandbox/test/support/docker-fixture.ts'
import { CrashBench, type CrashSandboxes, USER } from './bench.ts'
import { checkAfterCrashes, eachPlace, finalHistory } from './check.ts'
import { liveAndDie } from './kill.ts'
import { SCRIPTS } from './scripts.ts'

let engine: DockerFixture
beforeAll(async () => {
  engine = await dockerFixture()
})
afterAll(() => engine.dispose())

const inContainers = (): CrashSandboxes => ({
  // One container for all cases; each begins with an empty workspace.
  open: () => engine.controller(),
  close: async () => {
    const sandboxes = engine.controller()
    await shell(await sandboxes.acquire(USER), 'rm -rf /workspace/* /workspace/.tool-outputs')
    await sandboxes.close()
  },
})

describe('a process that is killed while its commands run in a container', () => {
  const inSandbox = SCRIPTS.filter(({ sandbox }) => sandbox === true)
  const scripts = sample('crash engine', inSandbox, 2)
  test.each(scripts)('$name', { timeout: extent(120_000, 7_200_000) }, async (script) => {
    const uncrashed = async () => {
      await using bench = await CrashBench.start(script, inContainers)
      const { passed } = await bench.live()
      return { passed, history: await finalHistory(bench) }
    }
    const { passed, history } = await uncrashed()
    const { deployment, deploymentKey, folder } = engine
    const docker = {
      deployment,
      key: Buffer.from(deploymentKey).toString('hex'),
      image: testConfig.image,
      ledger: join(folder, 'ledger.json'),
      host: testConfig.dockerHost,
    }
    let killed = 0
    await eachPlace(sample(`crash engine ${script.name}`, [...passed.keys()], 2), async (place) => {
      await using bench = await CrashBench.start(script, inContainers)
      const { folder: world, baseUrl } = bench.world
      const task = { script: script.name, folder: world, baseUrl, endsAt: place + 1, docker }
      if (await liveAndDie(task)) killed++
      expect((await bench.live()).how).toBe('done')
      await checkAfterCrashes(bench, history)
    })
    console.log(`${script.name}: ${killed} processes killed, of ${passed.length} points`)
    expect(killed).toBeGreaterThan(0)
  })
})
