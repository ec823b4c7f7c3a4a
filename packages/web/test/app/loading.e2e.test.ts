/**
 * Bytes over the wire until a person reads their first chat, and the page's layout shifts in
 * between.
 */
import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { oneRunOfThree } from '../../../../test/campaign.ts'
import { freshDist } from '../fixture/dist.ts'
import { DESKTOP, lookAt, PHONE, until, usePages } from '../fixture/pages.ts'

const { complaints, service, url, newPage, signedIn, openChat } = usePages()

/** Compressed bodies. */
const MOST_BYTES = {
  '.br': { composer: 200_000, chat: 320_000 },
  '.gz': { composer: 230_000, chat: 370_000 },
}
/** The sum of a visit; 0.1 is what the web calls good. */
const MOST_SHIFT = 0.02

test('the composer needs at most 200 kB of files, the first chat 320 kB', async () => {
  const page = await newPage()
  service.setupNeeded = false
  await page.context().addCookies([{ ...service.newSignIn(), url: url() }])
  const paths = new Set<string>()
  page.on('request', (request) => paths.add(new URL(request.url()).pathname))
  const composer = page.getByTestId('composer')
  await page.route('**/assets/conversation-*.js', async (route) => {
    await composer.waitFor()
    await route.continue()
  })
  await page.goto(`${url()}/`)
  await composer.waitFor()
  const toComposer = [...paths].filter((path) => !path.includes('/conversation-'))
  await openChat(page, 's_fixed')
  await page.evaluate('document.fonts.ready')

  const dist = await freshDist()
  const sum = (ending: string, from: Iterable<string>): number => {
    const files = [...from]
      .filter((path) => !path.startsWith('/api/') && path !== '/ws')
      .map((path) => (existsSync(join(dist, path)) && path !== '/' ? path : '/index.html'))
    return [...new Set(files)].reduce((bytes, path) => bytes + smallest(join(dist, path), ending), 0)
  }
  for (const [ending, most] of Object.entries(MOST_BYTES)) {
    expect(sum(ending, toComposer)).toBeLessThanOrEqual(most.composer)
    expect(sum(ending, paths)).toBeLessThanOrEqual(most.chat)
  }
})

function smallest(file: string, ending: string): number {
  return statSync(existsSync(file + ending) ? file + ending : file).size
}

test('the first scripts are one file and the runtime of the others', async () => {
  const page = await readFile(join(await freshDist(), 'index.html'), 'utf8')
  expect(page.match(/\/assets\/[\w-]+\.js/g)).toHaveLength(2)
})

test.for([
  ['light desktop', DESKTOP, 'light'],
  ['dark phone', PHONE, 'dark'],
] as const)('on a %s the outline of the composer is painted before a script has come', async (look) => {
  const [, viewport, theme] = look
  const page = await newPage({ viewport, theme, touch: viewport === PHONE })
  service.setupNeeded = false
  await page.context().addCookies([{ ...service.newSignIn(), url: url() }])
  const released = Promise.withResolvers<void>()
  await page.route('**/assets/**', async (route) => {
    await released.promise
    await route.continue()
  })
  await page.goto(`${url()}/`, { waitUntil: 'commit' })
  const outline = page.locator('#shell .field')
  await outline.waitFor()
  const promised = await outline.boundingBox()
  const canvas = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
  released.resolve()
  await page.getByTestId('composer').waitFor()
  expect(await outline.isVisible()).toBe(false)
  expect(await page.locator('.composer').locator('..').boundingBox()).toEqual(promised)
  expect(await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')).toBe(canvas)
})

test('the page of a sign-in has no outline of a chat', async () => {
  service.setupNeeded = false
  const page = await newPage()
  await page.route('**/assets/**', () => undefined)
  await page.goto(`${url()}/sign-in`, { waitUntil: 'commit' })
  await page.locator('#shell').waitFor({ state: 'attached' })
  expect(await page.locator('#shell').isVisible()).toBe(false)
})

test('a menu is loaded with its first use, opens by keys too, and Escape leads back to its button', async () => {
  const page = await newPage()
  service.setupNeeded = false
  await page.context().addCookies([{ ...service.newSignIn(), url: url() }])
  const released = Promise.withResolvers<void>()
  await page.route('**/assets/popups-*.js', async (route) => {
    await released.promise
    await route.continue()
  })
  await page.goto(`${url()}/`)
  const mode = page.getByTestId('mode')
  const menu = page.getByRole('menu')
  await mode.focus()
  await page.keyboard.press('Enter')
  expect(await menu.count()).toBe(0)
  released.resolve()
  await menu.waitFor()
  await page.keyboard.press('Escape')
  await menu.waitFor({ state: 'detached' })
  await until(async () => expect(await page.evaluate('document.activeElement?.dataset.testid')).toBe('mode'))
})

test('a file of the page that has gone is got by loading it anew; what stays away says so', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.getByTestId('composer').fill('a draft')
  let lost = 0
  await page.route('**/assets/settings-page-*.js', async (route) => {
    lost += 1
    await (lost === 1 ? route.abort() : route.continue())
  })
  const settings = page.getByRole('button', { name: /Settings$/ })
  await settings.click()
  await page.getByRole('complementary', { name: 'Settings' }).waitFor()
  expect(lost).toBe(2)
  await page.goBack()
  expect(await page.getByTestId('composer').inputValue()).toBe('a draft')

  await page.route('**/assets/settings-page-*.js', (route) => route.abort())
  await page.reload()
  await settings.click()
  await page.getByRole('heading', { name: 'This page couldn’t be displayed' }).waitFor()
  expect(await lookAt(page, 'not-whole')).toEqual([])
  await page.unroute('**/assets/settings-page-*.js')
  await page.getByRole('button', { name: 'Reload' }).click()
  await page.getByRole('complementary', { name: 'Settings' }).waitFor()
  complaints.length = 0
})

test.for([
  ['desktop', DESKTOP],
  ['phone', PHONE],
] as const)('on a %s nothing moves by itself while a chat opens', async ([name, viewport], { skip }) => {
  oneRunOfThree(`chats that open on a ${name}`, skip)
  const page = await signedIn({ viewport, touch: viewport === PHONE })
  await watchShift(page)
  const moved: [string, number][] = []
  for (const [sessionId, { log }] of service.sessions) {
    if (log.settled.length === 0) continue
    await page.goto(`${url()}/s/${sessionId}`)
    await page.getByTestId('message-user').first().waitFor()
    await settled(page)
    moved.push([sessionId, await shift(page)])
  }
  expect(moved.length).toBeGreaterThan(8)
  expect(moved.filter(([, sum]) => sum > MOST_SHIFT)).toEqual([])
})

test('nothing moves by itself while settings open', async ({ skip }) => {
  oneRunOfThree('settings that open', skip)
  const page = await signedIn()
  await watchShift(page)
  const moved: [string, number][] = []
  for (const path of [
    'security',
    'instructions',
    'keys',
    'people',
    'people/u_bob',
    'teams',
    'teams/t_data',
  ]) {
    await page.goto(`${url()}/settings/${path}`)
    await page.waitForLoadState('networkidle')
    await settled(page)
    moved.push([path, await shift(page)])
  }
  expect(moved.filter(([, sum]) => sum > MOST_SHIFT)).toEqual([])
})

test('an answer that is being written moves nothing that stands above it', async () => {
  const page = await signedIn()
  await watchShift(page)
  await page.reload()
  const words = Array.from({ length: 40 }, (_, n) => `Line ${n} of the answer, with some words.\n\n`)
  service.onChat = (sessionId, log) => {
    let offset = 0
    for (const text of words) {
      service.emit(sessionId, [log.liveText('m_a', offset, text)])
      offset += text.length
    }
    service.emit(sessionId, [log.text('agent_message_chunk', words.join(''), 'm_a'), log.end('completed')])
    service.change(sessionId, { running: false })
  }
  await page.getByTestId('composer').fill('Write forty lines.')
  await page.keyboard.press('Enter')
  await page.getByText('Line 39 of the answer').waitFor()
  await settled(page)
  expect(await shift(page)).toBeLessThanOrEqual(MOST_SHIFT)
})

async function watchShift(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const seen: unknown[] = []
    Object.assign(window, { layoutShifts: seen })
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) seen.push(entry.toJSON())
    }).observe({ type: 'layout-shift', buffered: true })
  })
}

/** Fonts and images are there, and what they change is painted. */
async function settled(page: Page): Promise<void> {
  await page.evaluate(async () => {
    await document.fonts.ready
    await Promise.all([...document.images].map((image) => image.decode().catch(() => undefined)))
    for (let frame = 0; frame < 5; frame++) await new Promise((done) => requestAnimationFrame(done))
  })
}

async function shift(page: Page): Promise<number> {
  const shifts = await page.evaluate(
    () => Reflect.get(window, 'layoutShifts') as { value: number; hadRecentInput: boolean }[],
  )
  return shifts.filter((one) => !one.hadRecentInput).reduce((sum, { value }) => sum + value, 0)
}
