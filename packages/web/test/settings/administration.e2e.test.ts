/** The deployment as a whole, as administrators see and change it, in a real browser. */
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'

const { service, signedIn, url } = usePages()

test.each(
  oneLook('administration', [
    ['light', { viewport: DESKTOP, theme: 'light' as const }],
    ['phone-dark', { viewport: PHONE, theme: 'dark' as const }],
  ]),
)('tools, sandboxes, rules for everybody and the configuration, %s', async (name, look) => {
  const page = await signedIn(look)
  const wide = look.viewport === DESKTOP
  const open = async (section: string, title: string) => {
    await page.goto(`${url()}/settings/${section}`)
    await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor()
  }

  await open('overview', 'Overview')
  const alerts = page.getByRole('list', { name: 'Open alerts' })
  await alerts.getByText('The disk is nearly full').waitFor()
  await page.getByRole('button', { name: 'Send test' }).click()
  await page.getByText('Sent to everyone.').waitFor()
  await page.getByRole('button', { name: 'Check now' }).click()
  const failed = page.getByRole('list', { name: 'Failed checks' })
  await failed.getByText('→ Set "live-restore": true').waitFor()
  expect(await failed.getByRole('listitem').count()).toBe(2)
  await page.getByText('1 required check failed. 1 recommendation.').waitFor()
  await page.getByText('3 other checks').click()
  await page.getByText('Docker Engine 20.10.24').waitFor()
  expect(await lookAt(page, `overview-${name}`)).toEqual([])

  await open('backups', 'Backups')
  const made = page.getByRole('list', { name: 'Backups made so far' })
  await made.getByText('The disk of /mnt/other-disk is full.').waitFor()
  expect(await made.getByRole('listitem').count()).toBe(5)
  expect(await made.getByText('No longer in the folder').count()).toBe(1)
  await page
    .getByText('./sandlot restore /mnt/other-disk/sandlot/sandlot-4f1c-20261127T033000Z.tar')
    .waitFor()
  if (wide) {
    // The list of sections leads to its end by itself.
    const current = page.getByRole('navigation', { name: 'Sections' }).locator('[aria-current=page]')
    const box = await current.boundingBox()
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(DESKTOP.height)
  }
  expect(await lookAt(page, `backups-${name}`)).toEqual([])

  await open('tools', 'Tools')
  const rows = page.getByRole('table', { name: 'Tools' }).getByRole('rowheader')
  await rows.first().waitFor()
  expect(await rows.allInnerTexts()).toEqual([
    'run_shell_command',
    'read_file',
    expect.stringContaining('search-flights'),
    expect.stringContaining('write_file'),
  ])
  await page.getByRole('button', { name: 'p95' }).click()
  await page.getByRole('button', { name: 'p95' }).click()
  const sorted = page.locator('th[aria-sort=ascending]')
  expect(await sorted.innerText()).toBe('p95')
  expect(await rows.nth(1).innerText()).toBe('read_file')
  expect(await lookAt(page, `tools-${name}`)).toEqual([])

  await open('sandboxes', 'Sandboxes')
  const list = page.getByRole('list', { name: 'Sandboxes' })
  await list.getByText('memory 412 MiB of 2 GiB').waitFor()
  // Those that are not awake are not asked.
  expect(service.administration.measured).toEqual([['u_ada']])
  expect(await lookAt(page, `sandboxes-${name}`)).toEqual([])
  await list.getByRole('button', { name: 'Stop the sandbox of Ada' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Sandbox of Ada stopped.').waitFor()
  expect(service.administration.done).toEqual(['POST /api/admin/sandboxes/u_ada/stop'])

  await open('policy', 'Rules for everybody')
  const form = page.getByRole('form', { name: 'New rule' })
  await form.getByLabel('Pattern').fill('git push *')
  await form.getByRole('button', { name: 'Add rule' }).click()
  const rules = page.getByRole('list', { name: 'Rules for everybody' })
  await rules.getByText('commands that begin with git push').waitFor()
  expect(await lookAt(page, `policy-${name}`)).toEqual([])
  await rules.getByRole('button', { name: 'Revoke Never commands that begin with git push' }).click()
  await page.getByText('None yet.').waitFor()

  await open('configuration', 'Configuration')
  const agents = page.getByRole('list', { name: 'Settings of the agent' })
  await agents.getByText('OPENAI_API_KEY').waitFor()
  expect(await agents.getByText('SANDLOT_DEFAULT_MODE').count()).toBe(0)
  await page.getByRole('list', { name: 'Settings of the backups' }).getByText('24').waitFor()
  expect(await lookAt(page, `configuration-${name}`)).toEqual([])
  await page.getByLabel('Show defaults').check()
  await agents.getByText('SANDLOT_DEFAULT_MODE').waitFor()
  expect(wide || (await page.getByRole('link', { name: 'Settings' }).count()) === 1).toBe(true)
})

test('of five hundred sandboxes only those that one sees are measured', async () => {
  const many = Array.from({ length: 500 }, (_, at) => ({
    userId: `u_${at}`,
    name: `Person ${at}`,
    email: `p${at}@example.org`,
    state: 'ready' as const,
    since: 1,
  }))
  service.administration.sandboxes = { ...service.administration.sandboxes, sandboxes: many }
  const page = await signedIn()
  await page.goto(`${url()}/settings/sandboxes`)
  const list = page.getByRole('list', { name: 'Sandboxes' })
  await list.getByText('memory 412 MiB').first().waitFor()
  expect(service.administration.measured.map((asked) => asked.length)).toEqual([25])
  await page.getByRole('button', { name: 'Show more of 500' }).click()
  await until(() => expect(service.administration.measured.map((asked) => asked.length)).toEqual([25, 25]))
  await page.getByLabel('Find a sandbox by person').fill('person 499')
  await until(() => expect(service.administration.measured.at(-1)).toEqual(['u_499']))
  expect(await list.getByRole('listitem').count()).toBe(1)
})

test('a form keeps what was typed when the window becomes a phone’s, and back', async () => {
  const page = await signedIn()
  await page.goto(`${url()}/settings/policy`)
  const pattern = page.getByRole('form', { name: 'New rule' }).getByLabel('Pattern')
  await pattern.fill('git push *')
  for (const viewport of [PHONE, DESKTOP]) {
    await page.setViewportSize(viewport)
    await page.getByRole('complementary', { name: 'Settings' }).waitFor({
      state: viewport === PHONE ? 'detached' : 'visible',
    })
    expect(await pattern.inputValue()).toBe('git push *')
    expect(await pattern.evaluate((field) => field === document.activeElement)).toBe(true)
  }
})
