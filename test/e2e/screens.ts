/**
 * Makes the screenshots in docs/screens from a real Sandlot with the demo model:
 * `node --conditions=sandlot-source test/e2e/screens.ts` after a build. Look at them before committing them.
 */
import { mkdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { firstVisit, launchBrowser, type Person, person } from './browser.ts'
import { startSandlot } from './processes.ts'

const folder = new URL('../../docs/screens/', import.meta.url).pathname
const DESKTOP = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 844 }

async function shoot(page: Page, name: string): Promise<void> {
  // Fonts, transitions and the last frame of a stream.
  await page.evaluate(() => document.fonts.ready)
  await sleep(400)
  await page.screenshot({ path: `${folder}${name}.png` })
  process.stdout.write(`${name}.png\n`)
}

/** Answers every approval with yes until the prompt is over. */
async function allowAll(someone: Person): Promise<void> {
  const allow = someone.page.getByTestId('approval').getByRole('button', { name: /^allow/i })
  const stop = someone.page.getByTestId('stop')
  while (await stop.isVisible()) {
    if (await allow.first().isVisible()) await allow.first().click()
    await sleep(150)
  }
}

const sandlot = await startSandlot()
const browser = await launchBrowser()
try {
  await mkdir(folder, { recursive: true })
  const visitor = await browser.newPage({ viewport: DESKTOP })
  await visitor.goto(sandlot.setupUrl)
  await shoot(visitor, 'setup')
  await visitor.close()

  const ada = await firstVisit(browser, sandlot)
  await shoot(ada.page, 'empty')

  await ada.say('make a file hello.py that prints the primes below 50 and run it')
  await ada.page.getByTestId('approval').waitFor()
  await shoot(ada.page, 'approval')
  await allowAll(ada)
  await shoot(ada.page, 'chat')
  const chat = ada.page.url()

  await ada.page.goto('/')
  await ada.say('run `for i in 1 2 3 4 5 6 7 8; do echo "step $i of 8"; sleep 1; done`')
  await ada.page.getByTestId('tool-output').filter({ hasText: 'step 3' }).waitFor()
  await shoot(ada.page, 'running')
  await ada.page.getByTestId('stop').click()
  await ada.idle()
  await shoot(ada.page, 'stopped')

  await ada.page.goto('/')
  await ada.say('show me what you can do')
  await sleep(500)
  await allowAll(ada)
  await shoot(ada.page, 'tour')
  const tour = ada.page.url()

  for (const [look, options] of [
    ['dark', { viewport: DESKTOP, colorScheme: 'dark' }],
    ['phone', { viewport: PHONE, isMobile: true, hasTouch: true }],
    ['phone-dark', { viewport: PHONE, isMobile: true, hasTouch: true, colorScheme: 'dark' }],
  ] as const) {
    const context = await browser.newContext({
      ...options,
      baseURL: sandlot.url,
      storageState: await ada.context.storageState(),
    })
    const other = person(await context.newPage())
    await other.page.goto(chat)
    await other.answers.last().waitFor()
    await shoot(other.page, `chat-${look}`)
    await other.page.goto(tour)
    await other.answers.last().waitFor()
    await shoot(other.page, `tour-${look}`)
    await other.page.goto('/')
    await other.composer.waitFor()
    await shoot(other.page, `empty-${look}`)
    await context.close()
  }
} finally {
  await browser.close()
  await sandlot.stop()
}
