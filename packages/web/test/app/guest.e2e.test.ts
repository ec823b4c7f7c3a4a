/** A guest's view, in a real browser. */
import { expect, test } from 'vitest'
import { PHONE, lookAt, usePages } from '../fixture/pages.ts'

const { service, newPage, openChat, signedIn, url } = usePages()

test('a guest reads what is shared, finds out what a guest is, and meets nothing that is not theirs', async () => {
  service.role = 'guest'
  const page = await signedIn({ sessionId: 's_fixed' })
  expect(await page.getByRole('button', { name: 'Workspace', exact: true }).count()).toBe(0)
  await page.goto(`${url()}/`)
  await page.getByRole('heading', { name: 'Welcome, Ada' }).waitFor()
  await page.getByText('Choose a chat from the list.').waitFor()
  // Back from a chat the page has no name of it any more.
  await openChat(page, 's_fixed')
  await page.evaluate('history.back()')
  await page.getByRole('heading', { name: 'Welcome, Ada' }).waitFor()
  expect(await page.getByTestId('session-title').innerText()).toBe('')
  expect(await page.getByTestId('composer').count()).toBe(0)
  expect(await page.getByRole('link', { name: 'New chat' }).count()).toBe(0)
  expect(await lookAt(page, 'guest')).toEqual([])
  await page.getByRole('button', { name: /Settings$/ }).click()
  const sections = page.getByRole('navigation', { name: 'Sections' }).getByRole('link')
  await sections.first().waitFor()
  expect(await sections.allInnerTexts()).toEqual([
    'Account',
    'Sign-in & security',
    'Notifications',
    'Appearance & keyboard',
    'Your data',
  ])
  await page.goto(`${url()}/settings/secrets`)
  await page.getByText('Page not found, or guests don’t have access.').waitFor()
})

test('a guest with whom nothing is shared yet is told so, also on a phone', async () => {
  service.role = 'guest'
  service.setupNeeded = false
  service.sessions.clear()
  const page = await newPage({ viewport: PHONE, theme: 'dark' })
  await page.context().addCookies([{ ...service.newSignIn(), url: url() }])
  await page.goto(`${url()}/`)
  await page.getByText('Nothing is shared with you yet.').waitFor()
  expect(await page.getByRole('button', { name: 'New chat' }).count()).toBe(0)
  expect(await lookAt(page, 'guest-phone-dark')).toEqual([])
  await page.getByRole('button', { name: 'Open chats' }).click()
  await page.getByText('Chats shared with you appear here.').waitFor()
})
