/** The menu for the model, in a real browser. */
import { expect, test } from 'vitest'
import { lookAt, until, usePages } from '../fixture/pages.ts'
import { pictureOf } from '../fixture/picture.ts'

const { service, signedIn, frames } = usePages()

test('a new chat begins with the chosen model; in a chat it is the log that says, and the level goes with the model', async () => {
  service.demo = false
  const about = (name: string, thoughtLevels: string[] = [], images = true) => ({
    name,
    thoughtLevels,
    images,
  })
  service.models = [about('qwen3-vl'), about('thinker', ['low', 'high'], false)]
  const page = await signedIn()
  const menu = page.getByTestId('model')
  const choose = async (name: string): Promise<void> => {
    await menu.click()
    await page.getByRole('menuitemradio', { name, exact: true }).click()
  }
  expect(await menu.textContent()).toBe('qwen3-vl')
  await page.getByRole('button', { name: 'Attach files' }).waitFor()
  await page
    .getByTestId('image-files')
    .setInputFiles([{ name: 'one.png', mimeType: 'image/png', buffer: pictureOf(20, 20) }])
  await page.locator('[data-state=there]').waitFor()
  await choose('thinker')
  // It takes no images: the one that is there cannot be sent to it, and nothing is cleared.
  await page
    .getByRole('alert')
    .getByText('thinker can’t read images. Send your message without them.')
    .waitFor()
  await page.getByTestId('composer').press('Enter')
  expect(await page.getByTestId('send').isDisabled()).toBe(true)
  await page.getByRole('button', { name: 'Remove one.png' }).click()
  await menu.click()
  await page.getByRole('menuitemradio', { name: 'low' }).waitFor()
  expect(await lookAt(page, 'model-menu')).toEqual([])
  await page.getByRole('menuitemradio', { name: 'low' }).click()
  await page.getByTestId('composer').fill('hello')
  await page.getByTestId('send').click()
  await until(() => expect(frames('ai_chat')).toMatchObject([{ model: 'thinker', thoughtLevel: 'low' }]))

  await page.getByTestId('message-user').waitFor()
  await until(async () => expect(await menu.textContent()).toBe('thinker, low'))
  await choose('high')
  await until(async () => expect(await menu.textContent()).toBe('thinker, high'))
  // The other model has no levels.
  await choose('qwen3-vl')
  await until(async () => expect(await menu.textContent()).toBe('qwen3-vl'))
  expect(frames('ai_chat_model')).toMatchObject([
    { thoughtLevel: 'high' },
    { model: 'qwen3-vl', thoughtLevel: null },
  ])
  expect(frames('ai_chat_model')[0]).not.toHaveProperty('model')
})
