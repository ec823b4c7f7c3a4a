/** Settings, in a real browser. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { PHONE, lookAt, until, usePages } from '../fixture/pages.ts'
import { PERSON } from '../fixture/service.ts'

const { complaints, service, signedIn, url } = usePages()

async function settings(section: string): Promise<Page> {
  const page = await signedIn()
  await page.getByRole('button', { name: /Settings$/ }).click()
  await choose(page, section)
  return page
}

function choose(page: Page, section: string): Promise<void> {
  return page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: section }).click()
}

test('each section has an address: by the keyboard, back and a reload one finds it again, and the chat as it was', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  const path = () => new URL(page.url()).pathname
  await page.getByTestId('composer').fill('not sent yet')
  await page.keyboard.press('Control+.')
  await page.getByRole('heading', { name: 'Account' }).waitFor()
  expect(path()).toBe('/settings/account')
  expect(await page.title()).toContain('Settings · Sandlot')
  // The list has the focus.
  for (const _ of ['security', 'notifications', 'appearance', 'data', 'usage', 'instructions', 'rules'])
    await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: 'Approval rules' }).waitFor()
  expect(path()).toBe('/settings/rules')
  await page.reload()
  await page.getByRole('region', { name: 'Approval rules' }).waitFor()
  await page.goBack()
  await page.getByRole('region', { name: 'Account' }).waitFor()
  await page.goBack()
  await page.locator('[data-session-page=s_fixed]').waitFor()
  expect(await page.getByTestId('composer').inputValue()).toBe('not sent yet')

  await page.goto(`${url()}/settings/nothing`)
  await page.getByText('Page not found.').waitFor()
  await page.goto(`${url()}/s/s_fixed`)
  const transcript = page.getByRole('group', { name: 'Messages' })
  const scrolled = () => transcript.evaluate((element) => element.scrollTop)
  await transcript.hover()
  await page.mouse.wheel(0, -400)
  await page.getByRole('button', { name: 'Jump to latest' }).waitFor()
  const before = await scrolled()
  expect(before).toBeGreaterThan(0)
  await page.getByRole('button', { name: /Settings$/ }).click()
  await choose(page, 'Secrets')
  await page.getByLabel('Name of the secret').press('Escape')
  await page.getByLabel('Name of the secret').waitFor()
  await page.getByRole('link', { name: 'Secrets' }).press('Escape')
  await page.locator('[data-session-page=s_fixed]').waitFor()
  expect(path()).toBe('/s/s_fixed')
  expect(await scrolled()).toBe(before)
})

test('keys are made, shown once and revoked; then sign out', async () => {
  const page = await settings('API keys')
  await page.getByLabel('Name of the new key').fill('nightly')
  await page.getByRole('button', { name: 'Create key' }).click()
  expect(await page.getByTestId('new-key').textContent()).toMatch(/^sk_.{30}/)
  await page.getByRole('button', { name: 'Revoke nightly' }).click()
  await page.getByRole('button', { name: 'Revoke nightly' }).waitFor({ state: 'detached' })
  await choose(page, 'Appearance')
  await page.getByText('Dark', { exact: true }).click()
  expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
  await choose(page, 'Account')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
})

test('a key may do what is ticked, for as long as is chosen; one that has expired says so', async () => {
  const page = await settings('API keys')
  const form = page.getByRole('form', { name: 'New key' })
  await form.getByLabel('Name of the new key').fill('ci')
  await form.getByLabel('Expires').selectOption('For 30 days')
  for (const words of ['Send messages', 'Workspace files', 'Run commands'])
    await form.getByLabel(words).uncheck()
  await form.getByLabel('Administration').check()
  expect(await lookAt(page, 'settings-keys')).toEqual([])
  await form.getByRole('button', { name: 'Create key' }).click()
  await page.getByText(/never used · read, admin · until \d+ \w+ \d{4}/).waitFor()
  service.keys.push({
    id: 'old',
    name: 'old',
    prefix: 'sk_wxyz',
    createdAt: 1_790_000_000_000,
    lastUsedAt: null,
    scopes: ['read'],
    expiresAt: 1_790_000_000_001,
  })
  await page.reload()
  await page.getByText('expired 21 Sept 2026').waitFor()
  service.role = 'member'
  await page.reload()
  await form.waitFor()
  expect(await form.getByLabel('Administration').count()).toBe(0)
})

test('a password is changed with the current one, which a wrong guess does not hide', async () => {
  const page = await settings('Sign-in & security')
  const account = page.getByRole('region', { name: 'Password' })
  await account.getByRole('button', { name: 'Change password' }).click()
  const form = account.getByRole('form', { name: 'Change password' })
  await form.getByLabel('Current password', { exact: true }).fill('a guess')
  await form.getByLabel('New password', { exact: true }).fill('another good one')
  await form.getByRole('button', { name: 'Change password' }).click()
  expect(await form.getByRole('alert').textContent()).toBe('That is not your current password.')
  complaints.length = 0 // the 403
  await form.scrollIntoViewIfNeeded()
  expect(await lookAt(page, 'settings-password')).toEqual([])
  const current = form.getByLabel('Current password', { exact: true })
  await form.getByRole('button', { name: 'Show current password' }).click()
  expect(await current.getAttribute('type')).toBe('text')
  expect(await current.inputValue()).toBe('a guess')
  await form.getByRole('button', { name: 'Hide current password' }).click()
  expect(await current.getAttribute('type')).toBe('password')
  // For password managers: in front of the passwords, a text input that is laid out and that nobody else meets.
  const owner = form.locator('input').first()
  expect(await owner.inputValue()).toBe(PERSON.email)
  expect(await owner.getAttribute('autocomplete')).toBe('username')
  expect(await owner.getAttribute('type')).toBe('text')
  expect(await owner.isVisible()).toBe(true)
  await form.getByRole('button', { name: 'Cancel' }).focus()
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Shift+Tab')
  expect(await current.evaluate((one) => one === document.activeElement)).toBe(true)
  await page.keyboard.press('Shift+Tab')
  expect(await owner.evaluate((one) => one === document.activeElement)).toBe(false)
  await form.getByLabel('Current password', { exact: true }).fill(PERSON.password)
  await form.getByRole('button', { name: 'Change password' }).click()
  await account.getByText('Password changed.').waitFor()
  expect(await form.count()).toBe(0)
  expect(service.password).toBe('another good one')
})

test('rules: one’s own are listed and revoked, a new one is tried before it is made', async () => {
  const page = await settings('Approval rules')
  const rules = page.getByTestId('rules')
  const own = rules.getByRole('list', { name: 'Your rules' })
  await own.getByText('Allow commands that begin with npm test').waitFor()
  await rules.getByText('Deployment rules, for everyone (1)').click()
  await rules.getByText('Ask commands that begin with git push').waitFor()
  await rules.getByRole('button', { name: 'Revoke Never reading and writing secrets/**' }).click()
  await until(async () => expect(await own.getByRole('listitem').count()).toBe(1))
  const changed = {
    sessionId: 's',
    toolCallId: 'c',
    title: 'Push',
    at: 1,
    before: 'ask',
    after: 'deny',
  } as const
  service.preview = { looked: 40, changed: [changed], changedCount: 1 }
  await rules.getByLabel('What the rule does').selectOption('Never run')
  await rules.getByLabel('Pattern').fill('git push *')
  await rules.getByRole('button', { name: 'Preview' }).click()
  expect(await rules.getByRole('status').innerText()).toMatch(
    /changed 1 call of your last 40:\s*Push\s*asks → is denied/,
  )
  await rules.getByRole('button', { name: 'Add rule' }).click()
  await own.getByText('Never commands that begin with git push').waitFor()
  expect(await rules.getByLabel('Pattern').inputValue()).toBe('')
})

test('secrets: a value goes in and is never shown; a name that is none is said; removed again', async () => {
  const page = await settings('Secrets')
  const secrets = page.getByRole('region', { name: 'Secrets' })
  const [name, value] = [secrets.getByLabel('Name of the secret'), secrets.getByLabel('Its value')]
  const save = secrets.getByRole('button', { name: 'Save' })
  await value.fill('ya29.do-not-show')
  await name.fill('1 TOKEN')
  await secrets.getByText('Letters, digits, “_”').waitFor()
  expect(await save.isDisabled()).toBe(true)
  await name.fill('CALENDAR_TOKEN')
  await save.click()
  await secrets.getByRole('listitem').getByText('CALENDAR_TOKEN').waitFor()
  expect([...service.secretNames]).toEqual(['CALENDAR_TOKEN'])
  expect(await value.inputValue()).toBe('')
  expect(await value.getAttribute('type')).toBe('password')
  expect(await page.content()).not.toContain('do-not-show')
  await secrets.getByRole('button', { name: 'Remove CALENDAR_TOKEN' }).click()
  await secrets.getByRole('listitem').waitFor({ state: 'detached' })
  expect(service.secretNames.size).toBe(0)
})

test('instructions: one’s own and, for an administrator, the team’s; everybody reads what holds for them', async () => {
  const page = await settings('Instructions')
  const own = page.getByLabel('Your instructions')
  await until(async () => expect(await own.inputValue()).toContain('Answer in German'))
  await own.fill('é'.repeat(4097))
  await page.getByText('8 KiB of 8 KiB: too long to be saved.').waitFor()
  const section = page.getByRole('region', { name: 'Instructions', exact: true })
  expect(await section.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
  await own.fill('Keep it short.')
  await section.getByRole('button', { name: 'Save' }).click()
  await until(() => expect(service.instructions.own).toBe('Keep it short.'))
  await section.getByText('From your administrator').click()
  await section.getByText('Never print what is in the environment.').waitFor()
  const team = page.getByRole('region', { name: 'Team instructions' })
  await team.getByText('From the configuration file').click()
  await team.getByText('Write tests first.').waitFor()
  await team.getByLabel('Instructions for the team').fill('Never push to main.')
  await team.getByRole('button', { name: 'Save' }).click()
  await until(() => expect(service.instructions.team).toBe('Never push to main.'))

  service.role = 'member'
  await page.reload()
  await section.getByText('From your team').click()
  await section.getByText('Never push to main.').waitFor()
  expect(await team.count()).toBe(0)
})

test('people: one is added, one removed by name with an explicit choice, and their files deleted later', async () => {
  const page = await settings('People')
  const section = page.getByRole('region', { name: 'People' })
  const people = section.getByRole('table', { name: 'People', exact: true })
  const ada = people.getByRole('row', { name: /Ada Lovelace/ })
  await ada.getByText('ada@example.org').waitFor()
  await ada.getByRole('cell', { name: 'Administrator' }).waitFor()
  // Oneself not.
  await ada.getByRole('link').click()
  await section.getByText('ada@example.org · you').waitFor()
  expect(await section.getByRole('button', { name: 'Remove' }).count()).toBe(0)
  await page.goBack()
  await section.getByRole('button', { name: 'Add a person' }).click()
  const add = section.getByRole('form', { name: 'Add a person' })
  await add.getByLabel('Name').fill('Cid')
  await add.getByLabel('E-mail').fill('cid@example.org')
  await add.getByLabel('First password').fill('a first password')
  await add.getByRole('button', { name: 'Add' }).click()
  await people.getByText('cid@example.org').waitFor()

  await people.getByRole('link', { name: 'Bob' }).click()
  await section.getByRole('button', { name: 'Remove Bob' }).click()
  const form = section.getByRole('form', { name: 'Remove Bob' })
  const remove = form.getByRole('button', { name: 'Remove this person' })
  await form.getByLabel('Type “Bob” to confirm').fill('Bob')
  expect(await remove.isDisabled()).toBe(true)
  await form.getByLabel('Keep files and chats').check()
  await form.getByLabel('Chats they share').selectOption('Go to Ada Lovelace (ada@example.org)')
  await form.getByLabel('Type “Bob” to confirm').fill('Rob')
  expect(await remove.isDisabled()).toBe(true)
  await form.scrollIntoViewIfNeeded()
  expect(await lookAt(page, 'settings-remove-person')).toEqual([])
  await form.getByLabel('Type “Bob” to confirm').fill('Bob')
  await remove.click()
  const removed = section.getByRole('list', { name: 'Removed people' })
  await removed.getByText('stopping their work').waitFor()
  expect(await people.getByText('bob@example.org').count()).toBe(0)
  expect(service.handedOverTo).toBe('u_ada')
  service.removed = service.removed.map((one) => ({ ...one, done: true }))
  await removed.getByRole('button', { name: 'Delete files and chats of Bob' }).click()
  const purge = section.getByRole('form', { name: 'Delete files and chats of Bob' })
  await purge.getByText('Delete files and chats of Bob').waitFor()
  await purge.getByText('including their MCP server data').waitFor()
  await purge.getByLabel('Type “Bob” to confirm').fill('Bob')
  await purge.getByRole('button', { name: 'Delete files and chats' }).click()
  await until(() => expect(service.removed).toMatchObject([{ id: 'u_bob', data: 'purge' }]))
  service.removed = []
  await removed.waitFor({ state: 'detached' })
})

test('people: what keeps somebody from being removed is said, with what to do, and tried again when asked', async () => {
  const page = await settings('People')
  const section = page.getByRole('region', { name: 'People' })
  await section.getByRole('link', { name: 'Bob' }).click()
  await section.getByRole('button', { name: 'Remove Bob' }).click()
  const form = section.getByRole('form', { name: 'Remove Bob' })
  await form.getByLabel('Keep files and chats').check()
  await form.getByLabel('Type “Bob” to confirm').fill('Bob')
  await form.getByRole('button', { name: 'Remove this person' }).click()
  const removed = section.getByRole('list', { name: 'Removed people' })
  await removed.getByText('stopping their work').waitFor()
  expect(await removed.getByRole('alert').count()).toBe(0)
  const problem = 'Their sandbox could not be removed: the engine is away'
  service.removed = service.removed.map((one) => ({ ...one, problem }))
  await removed.getByText(`Pending: ${problem}`).waitFor()
  await removed.getByText('./sandlot doctor shows').waitFor()
  expect(await lookAt(page, 'settings-removal-problem')).toEqual([])
  await removed.getByRole('button', { name: 'Retry: Bob' }).click()
  await until(() => expect(service.removed).toMatchObject([{ id: 'u_bob', data: 'keep', problem: null }]))
  await removed.getByRole('alert').waitFor({ state: 'detached' })
})

test('people on a phone in the dark; and nothing of it for who is no administrator', async () => {
  const page = await signedIn({ viewport: PHONE, theme: 'dark' })
  const open = async () => {
    await page.getByRole('button', { name: 'Open chats' }).click()
    await page.getByRole('button', { name: /Settings$/ }).click()
  }
  await open()
  await choose(page, 'People')
  const section = page.getByRole('region', { name: 'People' })
  await section.getByRole('link', { name: 'Bob' }).click()
  await section.getByRole('button', { name: 'Remove Bob' }).click()
  await section.getByRole('form', { name: 'Remove Bob' }).getByLabel('Delete files and chats').check()
  await section.getByRole('button', { name: 'Remove this person' }).scrollIntoViewIfNeeded()
  expect(await lookAt(page, 'settings-remove-person-phone-dark')).toEqual([])
  service.role = 'member'
  await page.reload()
  await page.getByText('it’s for administrators only').waitFor()
  expect(await section.count()).toBe(0)
  await page.goto(`${url()}/settings`)
  await page.getByRole('link', { name: 'Account' }).waitFor()
  expect(await page.getByRole('link', { name: 'People' }).count()).toBe(0)
  await choose(page, 'Account')
  await page.getByRole('region', { name: 'Account' }).waitFor()
  expect(await section.count()).toBe(0)
})

test('one’s own name is changed', async () => {
  const page = await signedIn()
  await page.goto(`${url()}/settings/account`)
  const form = page.getByRole('form', { name: 'Your name' })
  await form.getByLabel('Name').fill('Ada King')
  expect(await lookAt(page, 'settings-name')).toEqual([])
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('region', { name: 'Account' }).getByRole('paragraph').getByText('Ada King').waitFor()
  await until(async () => expect(await form.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true))
})

test('keys are chosen, hold at once and after a reload, are not given twice, and are the usual ones again', async () => {
  const page = await settings('Appearance & keyboard')
  const key = (name: RegExp) => page.getByRole('button', { name })
  await key(/^Find a chat or an action: /).click()
  await page.keyboard.press('Control+Shift+O')
  await page.getByRole('status').getByText('is already used: New chat.').waitFor()
  expect(await lookAt(page, 'settings-keys')).toEqual([])
  await page.keyboard.press('Escape')
  await key(/^Find a chat or an action: Ctrl K$/).click()
  await page.keyboard.press('Control+J')
  await key(/^Find a chat or an action: Ctrl J$/).waitFor()
  await page.goto(url())
  await page.getByTestId('composer').waitFor()
  const palette = page.getByRole('dialog').getByRole('combobox')
  await page.keyboard.press('Control+K')
  await page.keyboard.press('Control+J')
  await palette.waitFor()
  await page.goto(`${url()}/settings/appearance`)
  await page.getByRole('button', { name: 'Reset: Find a chat or an action' }).click()
  await key(/^Find a chat or an action: Ctrl K$/).waitFor()
})
