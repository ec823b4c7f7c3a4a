/** The palette of chats and actions, in a real browser. */
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'

const { frames, service, signedIn } = usePages()

test.each(
  oneLook('palette', [
    ['palette-light', { viewport: DESKTOP, theme: 'light' as const }],
    ['palette-phone-dark', { viewport: PHONE, theme: 'dark' as const }],
  ]),
)('chats and actions are found by words and done by the keyboard alone, %s', async (name, look) => {
  service.files.set('data.csv', Buffer.from('a,b'))
  const page = await signedIn({ ...look, sessionId: 's_fixed' })
  const palette = page.getByRole('dialog', { name: 'Chats and actions' })
  const options = palette.getByRole('option')
  const ask = async (words: string) => {
    await page.keyboard.press('Control+k')
    await palette.waitFor()
    await page.keyboard.type(words)
  }
  await ask('')
  await options.first().waitFor()
  expect(await lookAt(page, name)).toEqual([])
  await page.keyboard.press('Escape')
  await palette.waitFor({ state: 'detached' })
  expect(frames('ai_chat_cancel')).toEqual([])

  await ask('dark theme')
  await until(async () => expect(await options.allInnerTexts()).toEqual(['Theme: dark']))
  await page.keyboard.press('Enter')
  await palette.waitFor({ state: 'detached' })
  await until(async () => expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark'))

  await ask('workspace files')
  await page.keyboard.press('Enter')
  await page.getByText('data.csv').waitFor()
  await page.getByRole('button', { name: 'Close the workspace' }).click()
  await page.getByRole('tab').first().waitFor({ state: 'detached' })

  await ask('rename')
  await page.keyboard.press('Enter')
  const rename = page.getByRole('dialog', { name: 'Rename this chat' })
  await rename.waitFor()
  await page.keyboard.press('Escape')
  await rename.waitFor({ state: 'detached' })

  await ask('what is in my work')
  await until(async () => expect(await options.allInnerTexts()).toEqual(['What is in my workspace?']))
  await page.keyboard.press('Enter')
  await page.getByTestId('session-title').getByText('What is in my workspace?').waitFor()

  await ask('approval rules')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Approval rules', exact: true }).waitFor()
})

test('the chat on the screen is deleted by key, and taken back', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.keyboard.press('Control+Shift+Backspace')
  const item = page.locator('[data-session-id=s_fixed]')
  await item.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await item.waitFor()
  expect(service.sessions.has('s_fixed')).toBe(true)
})

test('the last answer and its code are copied by key', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const clipboard = () => page.evaluate('navigator.clipboard.readText()')
  await page.keyboard.press('Control+Shift+C')
  await page.getByText('Last answer copied.').waitFor()
  expect(await clipboard()).toContain('The bug was in `is_prime`')
  await page.keyboard.press('Control+Shift+;')
  await page.getByText('Last code block copied.').waitFor()
  expect(await clipboard()).not.toContain('```')
  const shown = await page.getByRole('group', { name: 'Code', exact: true }).last().innerText()
  expect(String(await clipboard()).trim()).toBe(shown.trim())
})

test('what is typed before the palette is there stands in it', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  const held = Promise.withResolvers<void>()
  await page.route(/palette-[^/]*\.js$/, async (route) => {
    await held.promise
    await route.continue()
  })
  await page.keyboard.press('Control+k')
  await page.keyboard.type('dark th')
  held.resolve()
  const palette = page.getByRole('dialog', { name: 'Chats and actions' })
  await palette.waitFor()
  await page.keyboard.type('eme')
  await until(async () => expect(await palette.getByRole('option').allInnerTexts()).toEqual(['Theme: dark']))
})
