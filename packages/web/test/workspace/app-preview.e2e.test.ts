/** The panel of what listens in the sandbox, in a real browser. */
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { DESKTOP, lookAt, PHONE, usePages, oneLook } from '../fixture/pages.ts'

const { service, signedIn } = usePages()

test.each(
  oneLook('app-preview', [
    { viewport: DESKTOP, theme: 'dark' as const },
    { viewport: PHONE, theme: 'light' as const },
  ]),
)('the panel has what listens, when it does, and how to open it, $theme', async (look) => {
  const page = await signedIn(look)
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  await page.getByRole('tab', { name: 'App' }).click()
  await page.getByText('Your sandbox is stopped.').waitFor()
  expect(await lookAt(page, `app-none-${look.theme}`)).toEqual([])
  service.ports = { awake: true, ports: [3000, 5173] }
  const link = page.getByRole('link', { name: 'Open port 5173 in a new tab' })
  await link.waitFor()
  expect(await link.getAttribute('href')).toBe('/api/ports/5173/open')
  expect(await link.getAttribute('rel')).toBe('noopener')
  await page.getByLabel('Another port').waitFor()
  expect(await lookAt(page, `app-ports-${look.theme}`)).toEqual([])
  service.ports = { awake: true, ports: [3000], off: 'Previews need a host name of their own.' }
  await page.getByText('Previews need a host name of their own.').waitFor()
  expect(await page.getByRole('link', { name: /Open/ }).count()).toBe(0)
})

test('an app that begins to listen is a card in its chat, which leads to the panel', async () => {
  service.ports = { awake: true, ports: [8000] }
  const page = await signedIn({ sessionId: 's_fixed' })
  const opens = (...ports: number[]) =>
    service.emit('s_fixed', [makeSandlotEvent({ type: 'ports_open', ports }, { live: true }, Date.now())])
  opens(8000)
  const card = page.getByText('An app is running in your sandbox on port 8000')
  await card.waitFor()
  expect(await lookAt(page, 'app-card-light')).toEqual([])
  await page.getByRole('button', { name: 'Show it' }).click()
  await page.getByRole('link', { name: 'Open port 8000 in a new tab' }).waitFor()
  await card.waitFor({ state: 'detached' })
  // Closed and opened again it is another one.
  opens()
  // A later change over the same connection has arrived, so the page has rendered it.
  service.change('s_fixed', { title: 'Closed again' })
  await page.getByRole('link', { name: /Closed again/ }).waitFor()
  opens(8000, 9000)
  await page.getByText('An app is running in your sandbox on ports 8000, 9000').waitFor()
  await page.getByRole('button', { name: 'Dismiss' }).click()
  await page.getByText(/An app is running/).waitFor({ state: 'detached' })
})
