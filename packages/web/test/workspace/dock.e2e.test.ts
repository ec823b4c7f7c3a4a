/** The dock at the side of the chat, in a real browser. */
import { expect, test } from 'vitest'
import { lookAt, usePages } from '../fixture/pages.ts'

const { service, signedIn } = usePages()

test('the workspace is docked at the side, is made wider by keyboard, and is there after a reload', async () => {
  service.files.set('data.csv', Buffer.from('a,b'))
  const page = await signedIn()
  const opener = page.getByRole('button', { name: 'Workspace', exact: true })
  await opener.click()
  const dock = page.getByTestId('dock')
  await dock.getByRole('tab', { name: 'Files', selected: true }).waitFor()
  await dock.getByText('data.csv').waitFor()
  // The chat is beside it, and can be used.
  await page.getByRole('textbox', { name: /message/i }).fill('What is in data.csv?')
  const edge = dock.getByRole('separator')
  const before = Number(await edge.getAttribute('aria-valuenow'))
  await edge.press('ArrowLeft')
  await expect.poll(async () => Number(await edge.getAttribute('aria-valuenow'))).toBe(before + 32)
  expect(await lookAt(page, 'dock')).toEqual([])
  await page.reload()
  await dock.getByText('data.csv').waitFor()
  expect(Number(await edge.getAttribute('aria-valuenow'))).toBe(before + 32)
  await dock.getByRole('button', { name: 'Close the workspace' }).click()
  await dock.waitFor({ state: 'detached' })
})
