/** Finding chats and keeping them in order, on the page. */
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { frames, service, signedIn } = usePages()

const PLACE = 'Where do pelicans sleep?'

/** A chat that is longer than the screen, with that message far from its end. */
function addLongChat(): void {
  const log = new SessionLog()
  for (let index = 0; index < 60; index++) {
    log.prompt(index === 10 ? PLACE : `Question ${index}`)
    log.text('agent_message_chunk', `Answer ${index}. `.repeat(20))
    log.end('completed')
  }
  service.add('s_long', 'A long one', log, { updatedAt: Date.now() - 5_000 })
}

test.each(oneLook('finding', [DESKTOP, PHONE]))(
  'words in a message are found, and lead to their place, $width',
  async (viewport) => {
    addLongChat()
    const page = await signedIn({ viewport })
    if (viewport === PHONE) await page.getByRole('button', { name: 'Open chats' }).click()
    await page.getByRole('searchbox').fill('pelicans')
    const hit = page.getByTestId('search-hit')
    await hit.getByText('pelicans').waitFor()
    await page.getByRole('button', { name: 'More filters' }).click()
    await page.getByRole('combobox', { name: 'When' }).selectOption('Between…')
    await page.getByLabel('Until').fill('2020-01-31')
    await page.getByText('No results.').waitFor()
    await page.getByRole('combobox', { name: 'When' }).selectOption('Any time')
    await page.getByRole('combobox', { name: 'Who' }).selectOption('By the agent')
    await hit.waitFor({ state: 'detached' })
    expect(await lookAt(page, `search-filters-${viewport.width}`)).toEqual([])
    await page.getByRole('combobox', { name: 'Who' }).selectOption('By me')
    await hit.getByText('pelicans').waitFor()
    await page.getByRole('combobox', { name: 'Archive' }).selectOption('Not archived')
    await until(() => expect(service.searched.at(-1)).toMatchObject({ who: 'u_ada', archived: 'false' }))
    expect(await lookAt(page, `search-${viewport.width}`)).toEqual([])
    await hit.getByRole('link').click()
    const place = page.getByTestId('message-user').getByText(PLACE)
    await until(async () => {
      const { y = -1, height = 0 } = (await place.boundingBox()) ?? {}
      expect(y).toBeGreaterThan(0)
      expect(y + height).toBeLessThan(viewport.height)
    })
    expect(new URL(page.url()).hash).toMatch(/^#m/)
  },
)

test.each(
  oneLook('order of chats', [
    ['light', DESKTOP],
    ['dark', PHONE],
  ] as const),
)('chats are pinned, put into a project, archived and deleted from the list, %s', async (theme, viewport) => {
  service.change('s_error', { endedAt: 1, ended: 'failed' })
  service.change('s_gave_up', { endedAt: 1, ended: 'unfinished' })
  service.change('s_fixed', { endedAt: 1 })
  service.chats.marks.set('s_fixed', { unread: true })
  service.chats.marks.set('s_error', { unread: true })
  const page = await signedIn({ viewport, theme })
  if (viewport === PHONE) await page.getByRole('button', { name: 'Open chats' }).click()
  const item = (id: string) => page.locator(`[data-session-id=${id}]`)
  const from = async (id: string, ...names: string[]) => {
    await item(id).hover()
    await item(id)
      .getByRole('button', { name: /^Options for/ })
      .click()
    for (const name of names) await page.getByRole('menuitem', { name, exact: true }).click()
  }
  await item('s_fixed').getByText('new', { exact: true }).waitFor({ state: 'attached' })
  await item('s_error').getByText('failed, new').waitFor({ state: 'attached' })

  await from('s_build', 'Pin')
  await page.getByRole('region', { name: 'Pinned' }).locator('[data-session-id=s_build]').waitFor()

  await from('s_fixed', 'Project', 'New project…')
  const dialog = page.getByRole('dialog', { name: 'New project' })
  await dialog.getByLabel('Name').fill('Prime garden')
  await dialog.getByLabel('Folder in your workspace').fill('/workspace/primes/')
  expect(await lookAt(page, `project-dialog-${theme}`)).toEqual([])
  await dialog.getByRole('button', { name: 'Create' }).click()
  const project = page.getByRole('region', { name: 'Prime garden' })
  await project.locator('[data-session-id=s_fixed]').waitFor()
  expect(service.chats.projects).toMatchObject([{ name: 'Prime garden', folder: 'primes' }])

  await item('s_error').hover()
  await item('s_error')
    .getByRole('button', { name: /^Options for/ })
    .click()
  await page.getByRole('menuitem', { name: 'Archive', exact: true }).waitFor()
  expect(await lookAt(page, `list-menu-${theme}`)).toEqual([])
  await page.getByRole('menuitem', { name: 'Archive', exact: true }).click()
  await item('s_error').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Archive', exact: true }).click()
  await from('s_error', 'Unarchive')
  await item('s_error').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'All chats' }).click()
  await item('s_error').waitFor()

  await from('s_error', 'Select multiple…')
  await item('s_gave_up').getByRole('checkbox').check()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await item('s_gave_up').waitFor({ state: 'detached' })
  await page.getByText('2 chats deleted.').waitFor()
  await lookAt(page, `list-undo-${theme}`)
  await page.getByRole('button', { name: 'Undo' }).click()
  await item('s_gave_up').waitFor()
  expect(service.sessions.has('s_gave_up')).toBe(true)

  await project.getByRole('button', { name: 'New chat in Prime garden' }).click()
  await page.getByText('In the project Prime garden').waitFor()
  expect(await lookAt(page, `new-in-project-${theme}`)).toEqual([])
  await page.getByTestId('composer').fill('Hello')
  await page.keyboard.press('Enter')
  await until(() => expect(frames('ai_chat')).toMatchObject([{ text: 'Hello', project: 'pr_0' }]))
  // On a phone the list is closed now.
  if (theme === 'dark') return
  await project.getByRole('button', { name: 'Options for project Prime garden' }).click()
  await page.getByRole('menuitem', { name: 'Remove project…' }).click()
  const question = page.getByRole('alertdialog', { name: 'Remove this project?' })
  await question.getByRole('button', { name: 'Remove', exact: true }).click()
  await project.waitFor({ state: 'detached' })
  expect(service.chats.projects).toEqual([])
})

test('a chat that ends while it is open is seen; one that is deleted goes when the page is closed', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  service.chats.marks.set('s_fixed', { unread: true })
  service.change('s_fixed', { endedAt: 1 })
  await until(() => expect(service.chats.marks.get('s_fixed')?.unread).toBeUndefined())
  const item = page.locator('[data-session-id=s_fixed]')
  await item.hover()
  await item.getByRole('button', { name: /^Options for/ }).click()
  await page.getByRole('menuitem', { name: 'Delete chat' }).click()
  await item.waitFor({ state: 'detached' })
  expect(new URL(page.url()).pathname).toBe('/')
  expect(service.sessions.has('s_fixed')).toBe(true)
  await page.goto('about:blank')
  await until(() => expect(service.sessions.has('s_fixed')).toBe(false))
})
