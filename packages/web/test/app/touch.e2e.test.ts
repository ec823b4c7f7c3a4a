/** The page for a finger, on a phone. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { PHONE, card, usePages } from '../fixture/pages.ts'

const { service, signedIn, openChat } = usePages()

/**
 * Controls lower than a finger, or with letters into which a phone zooms. Links in a text are as
 * high as it is.
 */
function tooSmall(page: Page, where: string): Promise<string[]> {
  return page.evaluate(`
    [...document.querySelectorAll('a, button, input, select, textarea, summary, label:has(input)')].flatMap((element) => {
      const { width, height } = (element.type === 'radio' || element.type === 'checkbox' ? element.closest('label') ?? element : element).getBoundingClientRect()
      const style = getComputedStyle(element)
      const grown = parseFloat(getComputedStyle(element, '::after').height) || 0
      if (width === 0 || style.visibility === 'hidden' || element.closest('.prose') || element.closest('[aria-hidden]')) return []
      const name = element.getAttribute('aria-label') ?? element.textContent.trim().slice(0, 40)
      const at = ${JSON.stringify(where)} + ': ' + element.tagName.toLowerCase() + ' ' + name
      const letters = element.matches('input, select, textarea') && parseFloat(style.fontSize) < 16
      return [...(Math.max(height, grown) < 40 ? [at + ' ' + Math.round(height) + ' px high'] : []), ...(letters ? [at + ' letters'] : [])]
    })`)
}

test('nothing to press is lower than a finger, and no field has letters into which a phone zooms', async () => {
  const page = await signedIn({ viewport: PHONE, touch: true, sessionId: 's_fixed' })
  service.files.set('data.csv', Buffer.from('1'))
  const found: string[] = []
  const look = async (where: string) => void found.push(...(await tooSmall(page, where)))
  await card(page, 'c_long').getByRole('button').first().tap()
  await card(page, 'c_edit').getByRole('button').first().tap()
  await look('chat')
  for (const story of ['s_build', 's_approve', 's_ask', 's_error']) {
    await openChat(page, story)
    await look(story)
  }
  await page.getByTestId('mode').tap()
  await page.getByRole('menu').waitFor()
  await look('mode')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Workspace', exact: true }).tap()
  await page.getByRole('treeitem', { name: 'data.csv' }).waitFor()
  await look('files')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Open chats' }).tap()
  await page.getByTestId('session-item').first().waitFor()
  await look('chats')
  await page.getByRole('button', { name: /Settings$/ }).tap()
  const sections = page.getByRole('navigation', { name: 'Sections' }).getByRole('link')
  await sections.first().waitFor()
  await look('settings')
  for (const name of await sections.allInnerTexts()) {
    await sections.getByText(name, { exact: true }).tap()
    await page.getByRole('heading', { name, exact: true }).waitFor()
    if (name === 'People') await page.getByRole('button', { name: 'Add a person' }).tap()
    if (name === 'Sign-in & security') await page.getByRole('button', { name: 'Change password' }).tap()
    await look(name)
    const item = { People: 'Bob', Teams: 'data' }[name]
    if (item !== undefined) {
      await page.getByRole('link', { name: item }).tap()
      await page.getByRole('form', { name: 'What the agent may do' }).waitFor()
      await look(item)
      await page.getByRole('link', { name, exact: true }).tap()
    }
    await page.getByRole('link', { name: 'Settings' }).tap()
  }
  expect([...new Set(found)]).toEqual([])
})
