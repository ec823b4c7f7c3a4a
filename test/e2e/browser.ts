/** A person at a real browser: what they see and do, by the roles and test ids of the page. */
import { existsSync } from 'node:fs'
import { chromium, type Browser, type BrowserContext, type Locator, type Page } from 'playwright-core'
import type { RunningSandlot } from './processes.ts'

export const ACCOUNT = { name: 'Ada', email: 'ada@example.test', password: 'correct horse battery staple' }

/** The same engine without a window and what belongs to one: half the processor time for a page. */
const HEADLESS = '/usr/bin/chromium-headless-shell'

/** `whole`: with what only a browser with windows has, such as notices. */
export function launchBrowser({ whole = false } = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: !whole && existsSync(HEADLESS) ? HEADLESS : '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
    // Without it a name of a download that is not ASCII is “download”.
    env: { ...process.env, LC_ALL: 'C.UTF-8' },
  })
}

export interface Person {
  page: Page
  context: BrowserContext
  composer: Locator
  cards: Locator
  answers: Locator
  /** Type a message and press Enter. */
  say(text: string): Promise<void>
  /** Wait until no prompt runs: the Stop button is gone and the composer sends again. */
  idle(): Promise<void>
  /** The `n`th tool card. */
  card(n: number): Locator
  /** Wait until the `n`th card has this status. */
  cardIs(n: number, status: 'pending' | 'in_progress' | 'completed' | 'failed'): Promise<Locator>
}

export function person(page: Page): Person {
  const cards = page.getByTestId('tool-card')
  const composer = page.getByTestId('composer')
  return {
    page,
    context: page.context(),
    composer,
    cards,
    answers: page.getByTestId('message-assistant'),
    async say(text) {
      await composer.fill(text)
      await composer.press('Enter')
      await page.getByTestId('message-user').filter({ hasText: text }).last().waitFor()
    },
    async idle() {
      await page.getByTestId('stop').waitFor({ state: 'hidden', timeout: 60_000 })
    },
    card: (n) => cards.nth(n),
    async cardIs(n, status) {
      const card = cards.nth(n)
      await card.and(page.locator(`[data-status="${status}"]`)).waitFor({ timeout: 60_000 })
      return card
    },
  }
}

/** The first visit: the one-time setup token makes the administrator and signs them in. */
export async function firstVisit(
  browser: Browser,
  sandlot: Pick<RunningSandlot, 'url' | 'setupUrl'>,
): Promise<Person> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, baseURL: sandlot.url })
  const page = await context.newPage()
  await page.goto(sandlot.setupUrl)
  await page.getByLabel('Name').fill(ACCOUNT.name)
  await page.getByLabel('E-mail').fill(ACCOUNT.email)
  await page.getByLabel('Password', { exact: true }).fill(ACCOUNT.password)
  await page.getByRole('button', { name: /create/i }).click()
  const someone = person(page)
  await someone.composer.waitFor()
  return someone
}
