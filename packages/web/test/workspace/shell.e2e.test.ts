/** Terminals and the sandbox's panel, in a real browser and a real shell. */
import type { Page } from 'playwright-core'
import { afterAll, afterEach, expect, test } from 'vitest'
import { oneRunOfThree } from '../../../../test/campaign.ts'
import { PHONE, lookAt, usePages } from '../fixture/pages.ts'

const { service, signedIn } = usePages()
afterEach(async () => {
  const { sandboxes } = await service.shell.sandboxes()
  await sandboxes.stop('u_ada')
})
afterAll(() => service.shell.stop())

/** The terminal's text for screen readers. */
const screenOf = (page: Page) => shown(page).locator('.xterm-accessibility-tree')
const shown = (page: Page) => page.getByTestId('terminal').filter({ visible: true })

async function openPanel(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  await page.getByRole('tab', { name }).click()
}

async function openTerminal(page: Page): Promise<void> {
  await openPanel(page, 'Terminal')
  await page.getByRole('button', { name: 'Open a terminal' }).click()
  await shown(page).locator('.xterm-helper-textarea').waitFor({ state: 'attached' })
}

async function type(page: Page, text: string): Promise<void> {
  await shown(page).locator('.xterm-helper-textarea').focus()
  await page.keyboard.type(text)
  await page.keyboard.press('Enter')
}

test('a terminal is a shell that takes keys, is resized, comes back after a reload, and can be shown to the agent', async () => {
  const page = await signedIn()
  await openTerminal(page)
  await type(page, 'PS1="$ "; clear; echo "sum $((40 + 2))"')
  await screenOf(page).getByText('sum 42').first().waitFor()
  await type(page, 'stty size')
  await screenOf(page)
    .getByText(/^\d+ \d\d+$/)
    .first()
    .waitFor()
  expect(await lookAt(page, 'terminal-light')).toEqual([])

  await page.getByRole('button', { name: 'Show this to the agent' }).click()
  await expect.poll(() => page.getByTestId('composer').inputValue()).toMatch(/```\n.*sum 42/s)

  await page.reload()
  await screenOf(page).getByText('sum 42').first().waitFor()
  // Keys of the page are the terminal's while it has the focus.
  await type(page, 'echo still-$((1 + 1))')
  await screenOf(page).getByText('still-2').first().waitFor()
  await page.keyboard.press('Control+k')
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  await page.keyboard.press('Shift+Escape')
  await expect.poll(() => page.evaluate('document.activeElement?.id')).toBe('composer')

  // A second one, shown in another window, and ended there.
  await page.getByRole('button', { name: 'New terminal' }).click()
  await page.getByRole('button', { name: 'Terminal 2', exact: true }).waitFor()
  await type(page, 'exit')
  await page.getByText('This terminal has ended.').waitFor()
  await page.getByRole('button', { name: 'Close', exact: true }).click()
  await page.getByRole('button', { name: 'Close terminal 1' }).click()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Open a terminal' }).waitFor()
})

test('20 MB come through without the page holding more than its window', async ({ skip }) => {
  oneRunOfThree('20 MB in a terminal', skip)
  const page = await signedIn()
  await openTerminal(page)
  await page.evaluate(`{
    window.longest = 0
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration)
    }).observe({ type: 'longtask' })
  }`)
  const began = Date.now()
  await type(page, 'head -c 20000000 /dev/zero | tr "\\0" "x" | fold -w 100; echo "over $((1 + 1))"')
  await screenOf(page).getByText('over 2').first().waitFor({ timeout: 120_000 })
  const longest = Number(await page.evaluate('window.longest'))
  const heap = Number(await page.evaluate('performance.memory.usedJSHeapSize'))
  console.info({ seconds: (Date.now() - began) / 1000, longest, heapMB: heap / 1e6 })
  expect(heap).toBeLessThan(300e6)
  await page.getByRole('button', { name: 'Close terminal 1' }).click()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Open a terminal' }).waitFor()
}, 180_000)

test('on a phone there are the keys that its keyboard lacks, in either theme', async () => {
  const page = await signedIn({ viewport: PHONE, theme: 'dark', touch: true })
  await openTerminal(page)
  await type(page, 'PS1="$ "; clear; ls --color=always -d /usr /bin /etc; cat')
  await screenOf(page).getByText('/etc').first().waitFor()
  await page.getByRole('button', { name: 'Ctrl, with the next key' }).click()
  await page.keyboard.type('d')
  await type(page, 'echo back-$((1 + 1))')
  await screenOf(page).getByText('back-2').first().waitFor()
  expect(await lookAt(page, 'terminal-phone-dark')).toEqual([])
  await page.getByRole('button', { name: 'Close terminal 1' }).click()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Open a terminal' }).waitFor()
  expect(await lookAt(page, 'terminal-phone-empty-dark')).toEqual([])
})

test('the sandbox says how it stands and what it uses, and is stopped when a person says so', async () => {
  const { sandboxes } = await service.shell.sandboxes()
  await sandboxes.acquire('u_ada')
  const page = await signedIn()
  await openPanel(page, 'Sandbox')
  await page.getByText('Running', { exact: true }).waitFor()
  await page.getByRole('meter', { name: 'Workspace' }).waitFor()
  await page.getByText('No network.').waitFor()
  await page.getByText('Nothing is running in the background.').waitFor()
  await page.getByText(/^Started in /).click()
  await page.getByRole('list', { name: 'Startup' }).getByText('sbxd, has answered').waitFor()
  expect(await lookAt(page, 'sandbox-light')).toEqual([])
  await page.getByRole('button', { name: 'Stop…' }).click()
  await page.getByText('Your workspace is kept.').waitFor()
  expect(await lookAt(page, 'sandbox-stop-light')).toEqual([])
  await page.getByRole('button', { name: 'Stop it' }).click()
  await page.getByText('Sandbox stopped. Your workspace is kept.').waitFor()
  await page.getByText(/^(Stopped|Not made yet)$/).waitFor()

  const phone = await signedIn({ viewport: PHONE, theme: 'dark', touch: true })
  await openPanel(phone, 'Sandbox')
  await phone.getByText(/^(Stopped|Not made yet)$/).waitFor()
  expect(await lookAt(phone, 'sandbox-phone-dark')).toEqual([])
})
