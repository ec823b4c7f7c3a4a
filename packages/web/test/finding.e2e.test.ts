/** Finding chats and keeping them in order, on the page. */
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, until, usePages } from './fixture/pages.ts'
import { SessionLog } from './fixture/session-log.ts'

const { service, signedIn } = usePages()

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

test('words in a message are found, and lead to their place', async () => {
  addLongChat()
  for (const viewport of [DESKTOP, PHONE]) {
    const page = await signedIn({ viewport })
    if (viewport === PHONE) await page.getByRole('button', { name: 'Open chats' }).click()
    await page.getByRole('searchbox').fill('pelicans')
    const hit = page.getByTestId('search-hit')
    await hit.getByText('pelicans').waitFor()
    expect(await lookAt(page, `search-${viewport.width}`)).toEqual([])
    await hit.getByRole('link').click()
    const place = page.getByTestId('message-user').getByText(PLACE)
    await until(async () => {
      const { y = -1, height = 0 } = (await place.boundingBox()) ?? {}
      expect(y).toBeGreaterThan(0)
      expect(y + height).toBeLessThan(viewport.height)
    })
    expect(new URL(page.url()).hash).toMatch(/^#m/)
  }
})
