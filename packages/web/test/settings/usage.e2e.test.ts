/** Usage, in a real browser: My usage, and everybody's. */
import type { Budget } from '@sandlot/shared/admin/usage'
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { service, signedIn, url, frames } = usePages()

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

test.each(
  oneLook('usage 1', [
    ['usage-light', { viewport: DESKTOP, theme: 'light' as const }],
    ['usage-phone-dark', { viewport: PHONE, theme: 'dark' as const }],
  ]),
)('one’s own by day and model with what is left, and that of all with CSV, %s', async (name, look) => {
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
  // Its cost, and how much of its input was cached.
  expect(await page.getByRole('region', { name: 'By model, as a table' }).getByText('unknown').count()).toBe(
    2,
  )
  await page.getByText('70 % read from cache', { exact: true }).waitFor()
  await page.getByText('Show as table').click()
  expect(await page.getByRole('rowheader', { name: /^\d{4}-\d\d-\d\d$/ }).count()).toBeGreaterThan(9)
  expect(await lookAt(page, name)).toEqual([])
  await page.getByLabel('Model', { exact: true }).selectOption('home-made')
  await until(() => expect(service.usage.asked.at(-1)).toMatch(/&model=home-made$/))
  await page.getByLabel('Days', { exact: true }).selectOption('Custom range')
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

test.each(
  oneLook('usage 2', [
    ['gauge-light', { viewport: DESKTOP, theme: 'light' as const }],
    ['gauge-phone-dark', { viewport: PHONE, theme: 'dark' as const, touch: true }],
  ]),
)(
  'in a chat: how full the context is, what each prompt took, its instruction files, what is left; and compacting, %s',
  async (name, look) => {
    service.usage.budgets = [{ ...MONTH, used: 18.2 }, TEAM]
    const log = new SessionLog()
    log.prompt('How many are there?')
    log.happened({
      type: 'instructions',
      text: 'Count twice.',
      files: [
        { path: 'AGENTS.md', bytes: 61_440, given: 18_022 },
        { path: 'reports/CLAUDE.md', bytes: 2_150, readAt: Date.UTC(2026, 10, 29, 9) },
        { path: 'reports/quarterly-figures/AGENTS.md', unreadable: 'link_outside' },
      ],
    })
    log.text('agent_message_chunk', 'There are seven.')
    log.counts(
      47_300,
      64_000,
      { input: 46_900, output: 400, cached: 40_000, reasoning: 120 },
      0.031,
      'assumed',
    )
    log.end('completed')
    service.add('s_usage', 'Counting', log)
    const page = await signedIn({ ...look, sessionId: 's_usage' })
    const took = page.getByTestId('prompt-spent')
    expect(await took.locator('summary').innerText()).toMatch(/· 47 k tokens · \$0\.03$/)
    await took.locator('summary').click()
    await took.getByText('46,900, 40,000 of them cached').waitFor()
    const warning = page.getByTestId('budget-warning')
    await warning
      .getByText('Your cost this month: 91 % used ($18.20 of $20.00); it starts again on 1 December')
      .waitFor()
    const gauge = page.getByTestId('context-gauge')
    expect(await gauge.getAttribute('aria-label')).toBe('74 % of context used')
    await gauge.click()
    await page.getByText('About 47 k of an assumed 64 k tokens.').waitFor()
    await page.getByText('Tokens of the team “Data” today').waitFor()
    const read = page.getByRole('region', { name: 'Workspace instructions' })
    expect(await read.getByRole('listitem').allInnerTexts()).toEqual([
      'AGENTS.md\n18 KiB of 60 KiB\n\nTruncated: these files exceed 32 KiB in total.',
      expect.stringMatching(/^reports\/CLAUDE\.md\n2\.1 KiB\n\nAs read on 29 Nov 2026, \d\d:00\.$/),
      'reports/quarterly-figures/AGENTS.md\n–\n\nCouldn’t be read: it is a link that is absolute or leads out of the workspace.',
    ])
    expect(await lookAt(page, name)).toEqual([])
    await page.getByRole('button', { name: 'Compact now' }).click()
    await until(() => expect(frames('ai_chat').at(-1)).toMatchObject({ text: '/compact' }))
    await warning.getByRole('button', { name: 'Dismiss' }).click()
    await warning.waitFor({ state: 'detached' })
  },
)

test('instruction files are listed where no answer was counted, too', async () => {
  const log = new SessionLog()
  log.prompt('How many are there?')
  log.happened({ type: 'instructions', text: 'Count twice.', files: [{ path: 'AGENTS.md', bytes: 12 }] })
  log.text('agent_message_chunk', 'There are seven.')
  log.end('completed')
  service.add('s_uncounted', 'Counting', log)
  const page = await signedIn({ viewport: DESKTOP, sessionId: 's_uncounted' })
  await page.getByRole('button', { name: 'Context use isn’t known' }).click()
  const read = page.getByRole('region', { name: 'Workspace instructions' })
  expect(await read.getByRole('listitem').allInnerTexts()).toEqual(['AGENTS.md\n12 B'])
})
