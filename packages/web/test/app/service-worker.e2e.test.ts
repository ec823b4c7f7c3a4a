/** The service worker in a real browser: pushes as from a push service, and a page without Sandlot. */
import { expect, test } from 'vitest'
import { until, usePages } from '../fixture/pages.ts'

const { complaints, url, signedIn } = usePages({ whole: true })

test('a push shows its notice, a newer one of the same chat in its place, and one that cannot be read says something', async () => {
  const page = await signedIn({})
  const context = page.context()
  await context.grantPermissions(['notifications'], { origin: url() })
  const browser = await context.newCDPSession(page)
  const registered = new Promise<string>((resolve) => {
    browser.on('ServiceWorker.workerVersionUpdated', ({ versions }) => {
      const active = versions.find(({ status }) => status === 'activated')
      if (active !== undefined) resolve(active.registrationId)
    })
  })
  await browser.send('ServiceWorker.enable')
  const registrationId = await registered
  const push = (data: string) =>
    browser.send('ServiceWorker.deliverPushMessage', { origin: url(), registrationId, data })
  const shown = () =>
    page.evaluate(`navigator.serviceWorker.ready
      .then((registration) => registration.getNotifications())
      .then((all) => all.map(({ title, body, tag, data }) => ({ title, body, tag, url: data.url })))`)
  const notice = { title: 'A chat needs you', body: 'x', tag: 's_1', url: '/s/s_1' }
  await push(JSON.stringify({ ...notice, title: 'An older one' }))
  await push(JSON.stringify(notice))
  await until(async () => expect(await shown()).toEqual([notice]))
  await push('not JSON')
  const unreadable = { title: 'Sandlot has something for you', body: '', tag: 'sandlot', url: '/' }
  await until(async () => expect(await shown()).toEqual(expect.arrayContaining([notice, unreadable])))
})

test('where Sandlot cannot be reached a page says so, and goes on when it can', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.evaluate('navigator.serviceWorker.ready')
  await page.context().setOffline(true)
  await page.reload()
  await page.getByRole('heading', { name: 'Can’t reach Sandlot' }).waitFor()
  await page.context().setOffline(false)
  await page.getByRole('link', { name: 'Try again' }).click()
  await page.getByTestId('composer').waitFor()
  expect(new URL(page.url()).pathname).toBe('/s/s_fixed')
  complaints.length = 0
})
