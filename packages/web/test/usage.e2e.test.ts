/** What was used up, in a real browser: My usage, and what all have used up. */
import type { Budget } from '@sandlot/shared/office/usage'
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, until, usePages } from './fixture/pages.ts'

const { service, signedIn, url } = usePages()

const MONTH: Budget = {
  of: 'you',
  name: null,
  period: 'month',
  what: 'cost',
  limit: 20,
  used: 16.4,
  startsAgainAt: Date.UTC(2026, 11, 1),
  warns: true,
}
const TEAM: Budget = {
  ...MONTH,
  of: 'team',
  name: 'Data',
  period: 'day',
  what: 'tokens',
  limit: 2e6,
  used: 4e5,
  warns: false,
}

test.each([
  ['usage-light', { viewport: DESKTOP, theme: 'light' as const }],
  ['usage-phone-dark', { viewport: PHONE, theme: 'dark' as const }],
])('one’s own by day and model with what is left, and that of all with CSV, %s', async (name, look) => {
  service.usage.budgets = [MONTH, TEAM]
  const page = await signedIn(look)
  await page.goto(`${url()}/settings/usage`)
  const limits = page.getByRole('list', { name: 'Limits' })
  await limits.getByText('82 % used; it starts again on 1 December at midnight UTC.').waitFor()
  expect(await limits.getByRole('meter').first().getAttribute('aria-valuetext')).toBe(
    '82 % used: $16.40 of $20.00',
  )
  await limits.getByText('Tokens of the team “Data” today').waitFor()
  await page
    .getByRole('img', { name: /^Cost by day, from / })
    .locator('canvas')
    .waitFor()
  expect(await page.getByRole('region', { name: 'By model, as a table' }).getByText('unknown').count()).toBe(
    1,
  )
  await page.getByText('The same as a table').click()
  expect(await page.getByRole('rowheader', { name: /^\d{4}-\d\d-\d\d$/ }).count()).toBeGreaterThan(9)
  expect(await lookAt(page, name)).toEqual([])
  await page.getByLabel('Model', { exact: true }).selectOption('home-made')
  await until(() => expect(service.usage.asked.at(-1)).toMatch(/&model=home-made$/))
  await page.getByLabel('Days', { exact: true }).selectOption('Days of my choice')
  await page.getByLabel('First day (UTC)').fill('2026-11-01')
  await until(() => expect(service.usage.asked.at(-1)).toContain('from=2026-11-01'))

  await page.goto(`${url()}/settings/costs`)
  await page.getByRole('rowheader', { name: 'Ada Lovelace ada@example.org' }).waitFor()
  await page
    .getByRole('img', { name: /^Cost by day, from / })
    .locator('canvas')
    .waitFor()
  expect(await lookAt(page, `${name}-costs`)).toEqual([])
  await page.getByText('Tool', { exact: true }).click()
  await page.getByRole('rowheader', { name: 'run_shell_command' }).waitFor()
  await page.getByRole('radio', { name: 'Tool' }).press('ArrowLeft')
  await page.getByRole('rowheader', { name: 'home-made' }).waitFor()
  const saved = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download CSV' }).click()
  expect((await saved).suggestedFilename()).toMatch(/^sandlot-usage-by-model-.*\.csv$/)
})
