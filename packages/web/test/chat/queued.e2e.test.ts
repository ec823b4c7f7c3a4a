/** Messages that wait behind a running prompt, and how they are taken back, in a real browser. */
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import { expect, test } from 'vitest'
import { sample } from '../../../../test/campaign.ts'
import { DESKTOP, type Look, PHONE, lookAt, until, usePages } from '../fixture/pages.ts'
import { pictureOf } from '../fixture/picture.ts'

const { service, signedIn, frames } = usePages()

const SESSION = 's_build'
const PICTURE = '/api/images/i_waiting'

function tell(event: SandlotEvent): void {
  const log = service.sessions.get(SESSION)?.log
  if (log === undefined) throw new Error('no story')
  service.emit(SESSION, [log.happened(event)])
}

const wait = (
  messageId: string,
  text: string,
  images: { mimeType: string; data: string; uri: string }[] = [],
) =>
  tell({ type: 'message_queued', messageId, text, as: 'steer', ...(images.length === 0 ? {} : { images }) })

test('a message that waits is taken back into the composer, and vanishes from every tab', async () => {
  service.demo = false
  const page = await signedIn({ sessionId: SESSION })
  const other = await page.context().newPage()
  await other.goto(page.url())
  service.uploads.set('i_waiting', pictureOf(60, 40))
  wait('m_1', 'In blue, please.', [{ mimeType: 'image/png', data: '', uri: PICTURE }])
  wait('m_2', 'And in green.')
  wait('m_3', 'And wide.')
  const buttons = page.getByTestId('queued').getByRole('button', { name: 'Withdraw' })
  await page.getByRole('button', { name: 'Withdraw: And wide.' }).waitFor()
  expect(await buttons.count()).toBe(3)
  await other.getByTestId('queued').getByText('And in green.').waitFor()
  // Nothing that would be lost.
  await page.getByTestId('composer').fill(' ')

  await buttons.first().focus()
  await page.keyboard.press('Enter')
  await until(() =>
    expect(frames('ai_chat_unqueue')).toEqual([
      { type: 'ai_chat_unqueue', sessionId: SESSION, messageId: 'm_1' },
    ]),
  )
  // It is there until the log says so, and nothing is in the composer twice.
  expect(await page.getByTestId('queued').getByRole('listitem').count()).toBe(3)
  expect(await page.getByTestId('composer').inputValue()).toBe(' ')
  tell({ type: 'message_unqueued', messageId: 'm_1', why: 'withdrawn' })
  await until(async () => expect(await page.getByTestId('composer').inputValue()).toBe('In blue, please.'))
  await page.getByTestId('attachments').locator('[data-state=there]').waitFor()
  expect(await page.evaluate('document.activeElement.id')).toBe('composer')
  await other.getByText('In blue, please.').waitFor({ state: 'detached' })
  expect(await other.getByTestId('composer').inputValue()).toBe('')

  // Typed text stays, and the returned message follows it.
  await buttons.first().click()
  await buttons.nth(1).click()
  await until(() => expect(frames('ai_chat_unqueue')).toHaveLength(3))
  tell({ type: 'message_unqueued', messageId: 'm_2', why: 'withdrawn' })
  tell({ type: 'message_unqueued', messageId: 'm_3', why: 'withdrawn' })
  await page.getByTestId('queued').waitFor({ state: 'detached' })
  const all = 'In blue, please.\n\nAnd in green.\n\nAnd wide.'
  await until(async () => expect(await page.getByTestId('composer').inputValue()).toBe(all))
  await page.reload()
  await until(async () => expect(await page.getByTestId('composer').inputValue()).toBe(all))
})

/** An ordinary run looks at one of them, a full run at all four. */
const LOOKS = sample<[string, Look]>(
  'looks of queued messages',
  [
    ['desktop-light', { viewport: DESKTOP, theme: 'light' }],
    ['desktop-dark', { viewport: DESKTOP, theme: 'dark' }],
    ['phone-light', { viewport: PHONE, theme: 'light' }],
    ['phone-dark', { viewport: PHONE, theme: 'dark' }],
  ],
  1,
)

test.each(LOOKS)(
  'one that was read already stays with the agent, and the page says so: %s',
  async (name, look) => {
    service.demo = false
    const page = await signedIn({ sessionId: SESSION, ...look })
    service.uploads.set('i_waiting', pictureOf(60, 40))
    wait(
      'm_1',
      'In blue, please, and with the words of the title a little larger than those of the text below it.',
    )
    wait('m_2', 'Like this', [{ mimeType: 'image/png', data: '', uri: PICTURE }])
    const buttons = page.getByTestId('queued').getByRole('button', { name: 'Withdraw' })
    await buttons.nth(1).waitFor()
    expect(await lookAt(page, `queued-${name}`)).toEqual([])
    const { width, height } = (await buttons.first().boundingBox()) ?? { width: 0, height: 0 }
    expect(Math.min(width, height)).toBeGreaterThanOrEqual(look.viewport === PHONE ? 36 : 24)
    await buttons.first().click()
    await until(() => expect(frames('ai_chat_unqueue')).toHaveLength(1))
    tell({ type: 'message_unqueued', messageId: 'm_1', why: 'sent' })
    const message = 'The agent had read this message before you took it back.'
    service.tell({ type: 'ai_chat_error', sessionId: SESSION, code: 'conflict', message })
    await page.getByRole('status').getByText(message).waitFor()
    expect(await page.getByTestId('queued').getByRole('listitem').count()).toBe(1)
    expect(await page.getByTestId('composer').inputValue()).toBe('')
    expect(await lookAt(page, `read-already-${name}`)).toEqual([])
  },
)
