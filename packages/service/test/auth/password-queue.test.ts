import { availableParallelism } from 'node:os'
import { errorBody } from '@sandlot/shared/account/api'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { expect, test } from 'vitest'
import { DEFAULT_RATES } from '../../src/auth/limits.ts'
import { ANN, browser, setUp, startHarness } from '../support/harness.ts'

/** More than run and wait at once. */
const MANY = 2 * (availableParallelism() + 40)
/** The limit equals the number sent: one more passes only where the refused ones do not count. */
const rates = { points: 2 * MANY, seconds: 600 }

test('sign-ins beyond the queue get 429 with Retry-After and count as no failures; nobody else waits for them', async () => {
  const harness = await startHarness(
    {},
    { rates: { ...DEFAULT_RATES, signInPair: rates, signInAddress: rates, signInAccount: rates } },
  )
  try {
    const { url } = harness.service
    const ann = await setUp(harness)
    const stranger = browser(url, '')
    const { email, password } = ANN
    const tries = Array.from({ length: MANY }, () =>
      stranger.post('/api/sign-in', { email, password: 'a guess' }),
    )
    const change = { current: password, password: 'battery staple' }
    const changes = Array.from({ length: MANY }, () => ann.put('/api/password', change))
    expect((await ann.get('/api/me')).status).toBe(200)
    for (const answer of await Promise.all([...tries, ...changes])) {
      if (answer.status !== 429) continue
      expect(errorBody.parse(await answer.json())).toMatchObject({
        code: 'rate_limited',
        message: expect.stringContaining('Try again in'),
      })
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    const statuses = (await Promise.all(tries)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([401, 429]))
    const answers = await Promise.all(
      [password, change.password].map((one) => stranger.post('/api/sign-in', { email, password: one })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 401]))
  } finally {
    await harness.close()
  }
})

test('a link for a new password that meets a full queue can be used again', async () => {
  const harness = await startHarness()
  await setUp(harness)
  await harness.service.close()
  const accounts = await openAccounts(harness.config.accounts, {
    secret: '0123456789abcdefghijklmnopqrstuvwxyzABCDEF',
    publicUrl: harness.service.url,
  })
  try {
    const stranger = { email: 'nobody@example.org', password: 'a guess' }
    const refused = { code: 'rate_limited' }
    let token: string
    let outcome: unknown
    do {
      token = (await accounts.passwords.beginReset(ANN.email))?.token ?? ''
      const tries = Array.from({ length: MANY }, () => accounts.signIns.signIn(stranger, {}))
      await expect(
        Promise.any(tries.map((one) => one.catch((error: unknown) => error))),
      ).resolves.toMatchObject(refused)
      outcome = await accounts.passwords.finishReset(token, 'battery staple').catch((error: unknown) => error)
      await Promise.allSettled(tries)
      // The queue had a place again before the link met it.
    } while (!(outcome instanceof Error))
    expect(outcome).toMatchObject(refused)
    await accounts.passwords.finishReset(token, 'battery staple')
    await expect(accounts.passwords.finishReset(token, 'battery staple')).rejects.toMatchObject({
      code: 'forbidden',
    })
  } finally {
    await accounts.close()
    await harness.close()
  }
})
