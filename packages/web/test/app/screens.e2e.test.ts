/** Every screen, looked at: what is looked at is also kept as pictures in test-results/web. */
import { expect, test } from 'vitest'
import { sample } from '../../../../test/campaign.ts'
import { DESKTOP, PHONE, card, lookAt, usePages } from '../fixture/pages.ts'
import { pictureOf } from '../fixture/picture.ts'
import { PERSON, SETUP_TOKEN } from '../fixture/service.ts'

const { service, url, newPage, openChat } = usePages()

/** An ordinary run looks at one of them; a full run at all four. */
const LOOKS = sample(
  'looks',
  [
    ['desktop', 'light', DESKTOP],
    ['phone', 'dark', PHONE],
    ['desktop', 'dark', DESKTOP],
    ['phone', 'light', PHONE],
  ] as const,
  1,
)

test.each(LOOKS)(
  'axe finds nothing on any screen, %s %s',
  async (device, theme, viewport) => {
    const found: string[] = []
    const page = await newPage({ viewport, theme })
    const look = async (name: string) => {
      found.push(...(await lookAt(page, `${device}-${theme}-${name}`)))
    }
    service.demo = false
    await page.goto(`${url()}/setup?token=${SETUP_TOKEN}`)
    await page.getByLabel('Your name').waitFor()
    await look('setup')
    service.setupNeeded = false
    await page.goto(`${url()}/sign-in`)
    await page.getByLabel('E-mail').fill(PERSON.email)
    await look('sign-in')
    await page.getByLabel('Password', { exact: true }).fill(PERSON.password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: /What are we doing today/ }).waitFor()
    await look('empty')
    for (const story of [
      's_build',
      's_approve',
      's_three',
      's_receipts',
      's_ask',
      's_error',
      's_again',
      's_gave_up',
      's_starts',
      's_reads',
      's_writes',
      's_notes',
      's_images',
      's_fixed',
    ]) {
      await openChat(page, story)
      await look(story)
    }
    const long = card(page, 'c_long')
    await long.getByRole('button').first().click()
    await long.getByText('not shown').waitFor({ state: 'attached' })
    await card(page, 'c_edit').getByRole('button').first().click()
    await long.scrollIntoViewIfNeeded()
    await look('truncated')
    await card(page, 'c_edit').scrollIntoViewIfNeeded()
    await look('diff')
    await page.getByTestId('image-files').setInputFiles([
      { name: 'chart.png', mimeType: 'image/png', buffer: pictureOf(64, 40) },
      { name: 'notes.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF') },
    ])
    await page.getByRole('button', { name: 'Remove notes.pdf' }).waitFor()
    await look('attached')
    for (const name of ['chart.png', 'notes.pdf'])
      await page.getByRole('button', { name: `Remove ${name}` }).click()
    await page.getByTestId('mode').click()
    await page.getByRole('menu').waitFor()
    await look('mode')
    await page.keyboard.press('Escape')
    if (device === 'phone') {
      await page.getByRole('button', { name: 'Open chats' }).click()
      await page.getByTestId('session-item').first().waitFor()
      await look('drawer')
    }
    await page.getByRole('button', { name: /Settings$/ }).click()
    await page.getByRole('heading', { name: 'Settings' }).waitFor()
    await look('settings')
    const sections = page.getByRole('navigation', { name: 'Sections' }).getByRole('link')
    for (const name of await sections.allInnerTexts()) {
      await sections.getByText(name, { exact: true }).click()
      await page.getByRole('heading', { name, exact: true }).waitFor()
      if (name === 'Instructions') {
        await page.getByText('From your administrator').click()
        await page.getByText('From the configuration file').click()
        await page.getByText('Applied in everyone’s chats').scrollIntoViewIfNeeded()
      }
      await look(`settings-${name}`)
      if (device === 'phone') await page.getByRole('link', { name: 'Settings' }).click()
    }
    expect(found).toEqual([])
    // Twenty screens on a machine that may be busy with other tests.
  },
  300_000,
)
