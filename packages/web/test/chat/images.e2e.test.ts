/** Images of a message, from the composer to the transcript, in a real browser. */
import { MAX_IMAGE_BYTES } from '@sandlot/shared/chat/images'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { lookAt, until, usePages } from '../fixture/pages.ts'
import { pictureOf } from '../fixture/picture.ts'

const { service, url, complaints, signedIn, openChat, frames } = usePages()

const PNG = pictureOf(60, 40)
const file = (name: string, buffer: Buffer = PNG) => ({ name, mimeType: 'image/png', buffer })

/** A browser does this: on the element, with files. */
async function give(page: Page, how: 'paste' | 'drop', name: string, text?: string): Promise<void> {
  await page.getByTestId('composer').evaluate(
    (field, given) => {
      const data = new DataTransfer()
      const bytes = Uint8Array.from(atob(given.base64), (letter) => letter.charCodeAt(0))
      data.items.add(new File([bytes], given.name, { type: 'image/png' }))
      if (given.text !== undefined) data.setData('text/plain', given.text)
      const more = { bubbles: true, cancelable: true }
      field.dispatchEvent(
        given.how === 'paste'
          ? new ClipboardEvent('paste', { clipboardData: data, ...more })
          : new DragEvent('drop', { dataTransfer: data, ...more }),
      )
    },
    { how, name, base64: PNG.toString('base64'), text },
  )
}

test('images are chosen, pasted and dropped, removed, kept over a reload, sent, and seen after it in every tab', async () => {
  service.demo = false
  const page = await signedIn({ sessionId: 's_error' })
  const attached = page.getByTestId('attachments').getByRole('listitem')
  await page.getByTestId('image-files').setInputFiles([file('one.png'), file('two.png')])
  await give(page, 'paste', 'three.png')
  await give(page, 'drop', 'four.png')
  // Words that were copied with a picture of them are meant as words.
  await give(page, 'paste', 'picture-of-words.png', 'words')
  await until(async () => expect(await attached.and(page.locator('[data-state=there]')).count()).toBe(4))
  const kept = service.uploads.size
  await page.getByRole('button', { name: 'Remove two.png' }).click()
  await until(() => expect(service.uploads.size).toBe(kept - 1))
  await page.reload()
  await attached.nth(2).waitFor()
  expect(
    await attached.getByRole('img').evaluateAll((all) => all.map((one) => one.getAttribute('alt'))),
  ).toEqual([
    expect.stringContaining('one.png'),
    expect.stringContaining('three.png'),
    expect.stringContaining('four.png'),
  ])
  await page.getByTestId('send').click()
  await until(() =>
    expect(frames('ai_chat')).toMatchObject([
      { text: '', images: [expect.any(String), expect.any(String), expect.any(String)] },
    ]),
  )
  expect(await attached.count()).toBe(0)

  const said = page.getByTestId('message-user').last()
  const loaded = (where: Page) =>
    where
      .getByTestId('message-user')
      .last()
      .getByRole('img')
      .evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth))
  await said.locator('xpath=self::*[not(@data-pending)]').waitFor()
  await until(async () => expect(await loaded(page)).toEqual([60, 60, 60]))
  const other = await page.context().newPage()
  await other.goto(page.url())
  await until(async () => expect(await loaded(other)).toEqual([60, 60, 60]))
  await said.getByRole('button', { name: 'Open Image 2 of 3, attached to your message' }).click()
  await page.getByTestId('large-image').getByRole('img').waitFor()
  expect(await lookAt(page, 'large-image')).toEqual([])
  await page.keyboard.press('Escape')
  await page.getByTestId('large-image').waitFor({ state: 'detached' })
})

test('what does not fit is said; what could not be sent is tried again; Send waits for both', async () => {
  service.demo = false
  const page = await signedIn({ sessionId: 's_error' })
  const files = page.getByTestId('image-files')
  await page.getByTestId('composer').fill('look')
  await files.setInputFiles([file('notes.txt', Buffer.from('words'))])
  await until(() => expect(service.files.get('uploads/notes.txt')?.toString()).toBe('words'))
  await page.getByRole('button', { name: 'Remove notes.txt' }).click()
  await files.setInputFiles([file('huge.png', Buffer.concat([PNG, Buffer.alloc(MAX_IMAGE_BYTES)]))])
  await page.getByRole('alert').getByText('“huge.png” is larger than 5 MiB.').waitFor()
  await files.setInputFiles(Array.from({ length: 11 }, (_, n) => file(`${n}.png`)))
  await page.getByRole('alert').getByText('A message can have up to 10 images.').waitFor()
  for (let n = 0; n < 10; n++) await page.getByRole('button', { name: `Remove ${n}.png` }).click()

  const [begun, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  service.beforeUpload = () => {
    begun.resolve()
    return answered.promise
  }
  await files.setInputFiles([file('slow.png')])
  await page.getByRole('progressbar', { name: 'Sending slow.png' }).waitFor()
  await begun.promise
  expect(await page.getByTestId('send').isDisabled()).toBe(true)
  // A reader who visits another chat in between finds it continued.
  await openChat(page, 's_fixed')
  await openChat(page, 's_error')
  await page.getByRole('progressbar', { name: 'Sending slow.png' }).waitFor()
  service.beforeUpload = () => Promise.reject(new Error('the disk is full'))
  answered.resolve()
  await page.locator('[data-state=there]').waitFor()
  await page.getByRole('button', { name: 'Remove slow.png' }).click()
  await files.setInputFiles([file('late.png')])
  const again = page.getByRole('button', { name: 'Retry late.png' })
  await again.waitFor()
  expect(await page.getByTestId('send').isDisabled()).toBe(true)
  service.beforeUpload = () => Promise.resolve()
  await again.click()
  await page.locator('[data-state=there]').waitFor()
  await page.getByTestId('send').click()
  await until(() => expect(frames('ai_chat')).toMatchObject([{ text: 'look', images: [expect.any(String)] }]))
  // The answer 500 that the browser reports.
  complaints.length = 0
})

test('while the agent works an image waits in line; “Try again” brings the images of the message; a blind model says so', async () => {
  service.demo = false
  const page = await signedIn({ sessionId: 's_build' })
  const log = service.sessions.get('s_build')?.log
  if (log === undefined) throw new Error('no story')
  service.uploads.set('i_waiting', PNG)
  const uri = '/api/images/i_waiting'
  const images = [{ mimeType: 'image/png', data: '', uri }]
  service.emit('s_build', [
    log.happened({ type: 'message_queued', messageId: 'm_q', text: 'like this', as: 'steer', images }),
  ])
  const waiting = page.getByTestId('queued').getByRole('img', { name: 'Image 1 of the queued message' })
  await until(async () =>
    expect(await waiting.evaluate((one) => (one as HTMLImageElement).naturalWidth)).toBe(60),
  )
  service.emit('s_build', [
    log.happened({ type: 'message_unqueued', messageId: 'm_q', why: 'sent' }),
    log.text('user_message_chunk', 'like this', 'm_q'),
    log.image(uri, 'm_q'),
    log.image('https://elsewhere.example/track.png', 'm_q'),
    log.end('error', 'The provider was overloaded.'),
  ])
  const [begun, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  service.beforeUpload = () => {
    begun.resolve()
    return answered.promise
  }
  const again = page.getByRole('button', { name: 'Try again' })
  await again.click()
  await begun.promise
  expect(await again.isDisabled()).toBe(true)
  answered.resolve()
  await until(() =>
    expect(frames('ai_chat')).toMatchObject([{ text: 'like this', images: [expect.any(String)] }]),
  )
  await page.getByText('Sent again without images that can’t be resent from here.').waitFor()

  service.demo = true
  await page.goto(`${url()}/s/s_error`)
  await page.getByTestId('message-user').first().waitFor()
  await page.getByRole('button', { name: 'Attach files' }).waitFor()
  await give(page, 'paste', 'one.png')
  await page
    .getByRole('alert')
    .getByText('Demo model can’t read images. Send your message without them.')
    .waitFor()
  await openChat(page, 's_images')
  await page.getByTestId('message-images').first().waitFor()
})
