import { errorBody } from '@sandlot/shared/errors'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULT_RATES } from '../src/limits.ts'
import { ANN, Tab, browser, cookieOf, makeKey, setUp, startHarness, waitFor } from './helpers/harness.ts'
import type { Browser, Harness } from './helpers/harness.ts'

let harness: Harness
let url: string
let ann: Browser

beforeEach(async () => {
  harness = await startHarness()
  url = harness.service.url
  ann = await setUp(harness)
})

afterEach(async () => {
  await harness.close()
})

const codeOf = async (response: Response) => errorBody.parse(await response.json()).code
const signIn = async (password: string): Promise<Browser> => {
  const { email } = ANN
  return browser(url, cookieOf(await browser(url, '').post('/api/sign-in', { email, password })))
}

describe('another password', () => {
  const change = { current: ANN.password, password: 'battery staple' }

  test('ends every other sign-in with its sockets; the page that asked goes on, and its end is still its end', async () => {
    const elsewhere = await signIn(ANN.password)
    const byKey = await Tab.open(url, { authorization: `Bearer ${await makeKey(ann)}` })
    const [here, there] = [await Tab.of(ann, url), await Tab.of(elsewhere, url)]
    const answer = await ann.put('/api/password', change)
    expect(answer.status).toBe(204)
    await waitFor(() => there.closed !== undefined)
    expect(there.closed?.code).toBe(4401)
    for (const old of [ann, elsewhere]) expect((await old.get('/api/me')).status).toBe(401)
    const again = browser(url, cookieOf(answer))
    expect((await again.get('/api/me')).status).toBe(200)
    for (const tab of [here, byKey]) {
      await tab.settle()
      expect(tab.closed).toBeUndefined()
    }
    await again.post('/api/sign-out')
    await waitFor(() => here.closed !== undefined)
    expect(here.closed?.code).toBe(4401)
    expect(harness.logLines.join('\n')).not.toContain(change.password)
    await byKey.close()
  })

  test('needs the current one, which cannot be guessed from a sign-in, and is nothing for a key', async () => {
    await harness.restart({ rates: { ...DEFAULT_RATES, signInPair: { points: 2, seconds: 600 } } })
    url = harness.service.url
    const page = await signIn(ANN.password)
    const key = { authorization: `Bearer ${await makeKey(page)}` }
    const byKey = await fetch(`${url}/api/password`, {
      method: 'PUT',
      headers: { ...key, 'content-type': 'application/json' },
      body: JSON.stringify(change),
    })
    expect(await codeOf(byKey)).toBe('forbidden')
    expect(await codeOf(await page.put('/api/password', { ...change, password: 'short' }))).toBe(
      'bad_request',
    )
    const guess = { ...change, current: 'a guess' }
    expect(await codeOf(await page.put('/api/password', guess))).toBe('forbidden')
    expect(await codeOf(await page.put('/api/password', guess))).toBe('forbidden')
    expect(await codeOf(await page.put('/api/password', change))).toBe('rate_limited')
    expect((await page.get('/api/me')).status).toBe(200)
  })
})
