/** Fixture of every end-to-end test: a scripted provider, a Sandlot, a browser with a signed-in user. */
import { writeFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, onTestFailed } from 'vitest'
import {
  type FakeProvider,
  type RecordedRequest,
  type Scripted,
  startFakeProvider,
} from '../../packages/ai-agent/test/support/fake-provider.ts'
import { firstVisit, launchBrowser, type Person } from './browser.ts'
import { type RunningSandlot, startSandlot } from './processes.ts'

export interface World {
  sandlot: RunningSandlot
  browser: Browser
  ada: Person
  provider: FakeProvider
  /** Requests that the provider got since this was called. */
  script: (...answers: Scripted[]) => { requests: () => readonly RecordedRequest[] }
}

/** One Sandlot for a file of tests; each test begins with a new chat. */
export function useWorld(agent: Record<string, string> = { SANDLOT_DEFAULT_MODE: 'yolo' }): () => World {
  let world: World | undefined
  const get = (): World => {
    if (world === undefined) throw new Error('the world has not been made')
    return world
  }

  beforeAll(async () => {
    const provider = await startFakeProvider()
    const sandlot = await startSandlot({
      agent: {
        OPENAI_BASE_URL: provider.baseUrl,
        OPENAI_API_KEY: 'sk-test-canary',
        OPENAI_MODEL: 'scripted',
        ...agent,
      },
    })
    const browser = await launchBrowser()
    const ada = await firstVisit(browser, sandlot)
    world = {
      provider,
      sandlot,
      browser,
      ada,
      script(...answers) {
        const before = provider.requests.length
        provider.add(...answers)
        return { requests: () => provider.requests.slice(before) }
      },
    }
  })

  beforeEach(async () => {
    onTestFailed(async ({ task }) => {
      const name = task.name.replaceAll(/[^A-Za-z0-9]+/g, '-').slice(0, 60)
      await get().ada.page.screenshot({ path: `test-results/failed-${name}.png` })
      await writeFile(`test-results/failed-${name}.log`, get().sandlot.logs())
    })
    await get().ada.page.goto('/')
    await get().ada.composer.waitFor()
  })

  afterAll(async () => {
    if (world === undefined) return
    await world.browser.close()
    await world.sandlot.stop()
    await world.provider.close()
  })
  return get
}
