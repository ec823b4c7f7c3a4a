/** Audit, retention and one's own data, in a real browser. */
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'

const { service, signedIn, url } = usePages()

test.each(
  oneLook('audit', [
    ['audit-light', { viewport: DESKTOP, theme: 'light' as const }],
    ['audit-phone-dark', { viewport: PHONE, theme: 'dark' as const, touch: true }],
  ]),
)('the log is searched, exported and checked; retention shows what would go, %s', async (name, look) => {
  const page = await signedIn(look)
  await page.goto(`${url()}/settings/audit`)
  const lines = page.getByRole('list', { name: 'Lines' }).getByRole('listitem')
  await lines.getByText('Changed a person').waitFor()
  await lines.getByText('Sign-in failed, 41 times').waitFor()
  await lines.first().getByText('Before and after').click()
  await lines.first().getByText('→').waitFor()
  expect(await lines.first().getByRole('definition').innerText()).toBe('member → admin')
  const chat = lines.getByRole('link', { name: 'Fix the failing prime tests' })
  expect(await chat.getAttribute('href')).toBe('/s/s_1')
  await page.getByRole('button', { name: 'Older lines' }).click()
  await lines.getByText('terminal t_1').waitFor()
  await lines.getByText('GITHUB_TOKEN').waitFor()
  await page.getByRole('button', { name: 'Check every line' }).click()
  await page.getByText('Agent: all 4 lines intact.').waitFor()
  await page.getByText(/^Line 2 of .* was changed or put in by hand\.$/).waitFor()
  expect(await lookAt(page, name)).toEqual([])

  await page.getByLabel('What', { exact: true }).selectOption('Sign-in failed')
  await page.getByLabel('Who', { exact: true }).fill('Not signed in')
  await until(() => expect(service.audit.asked.at(-1)).toMatch(/who=Not\+signed\+in&what=sign_in_failed$/))
  await until(async () => expect(await lines.count()).toBe(1))
  const saved = page.waitForEvent('download')
  await page.getByRole('link', { name: 'CSV' }).click()
  expect((await saved).suggestedFilename()).toBe('sandlot-audit.csv')

  await page.goto(`${url()}/settings/retention`)
  await page.getByRole('checkbox', { name: 'Chats' }).check()
  await page.getByRole('checkbox', { name: 'Audit log' }).check()
  await page.getByRole('button', { name: 'Preview' }).click()
  const going = page.getByRole('list', { name: 'Would be removed' })
  await going.getByText('12 chats, about 46 MiB').waitFor()
  await going.getByText('1 chat more is open or running now, and stays until closed.').waitFor()
  expect(await lookAt(page, `${name}-retention`)).toEqual([])
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  const asked = page.getByRole('alertdialog', { name: 'Remove older data?' })
  await asked.getByText('12 chats (46 MiB). They’re permanently removed within a day.').waitFor()
  await asked.getByRole('button', { name: 'Save and remove' }).click()
  await page.getByText('Retention saved.').waitFor()
  expect(service.audit.retention.days).toMatchObject({ chats: 365, audit: 365, usage: null })

  await page.goto(`${url()}/settings/data`)
  const archive = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download all of my data' }).click()
  expect((await archive).suggestedFilename()).toBe('sandlot-my-data.zip')
  await page.getByRole('button', { name: 'Delete my account…' }).click()
  const form = page.getByRole('form', { name: 'Delete my account' })
  const remove = form.getByRole('button', { name: 'Delete my account' })
  await form.getByLabel('Your password', { exact: true }).fill('correct horse')
  expect(await remove.isDisabled()).toBe(true)
  await form.getByLabel(/^Type “/).fill('ada@example.org')
  expect(await remove.isEnabled()).toBe(true)
  expect(await lookAt(page, `${name}-own-data`)).toEqual([])
})
