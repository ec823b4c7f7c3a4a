import { expect, test } from 'vitest'
import { DEFAULT_RATES, type Limits, makeLimits } from '../../src/auth/limits.ts'

const many = { points: 1_000, seconds: 600 }
const rates = (signInSlow: { everyMs: number; longestMs: number }) => ({
  ...DEFAULT_RATES,
  signInPair: many,
  signInAddress: many,
  signInAccount: { points: 2, seconds: 600 },
  signInSlow,
})

/** Resolves when a password was checked, and was wrong. */
async function fail(limits: Limits, address: string, email = 'ann@example.org'): Promise<void> {
  const wrong = new Error('wrong')
  const tried = limits.signIn({ address, email }, () => Promise.reject(wrong))
  await tried.catch((error: unknown) => {
    if (error !== wrong) throw error
  })
}

test('X-A5 beyond the limit of an account a sign-in is tried later, one after another, and not refused', async () => {
  const limits = makeLimits(rates({ everyMs: 30, longestMs: 60_000 }))
  for (const address of ['a', 'b']) await fail(limits, address, 'Ann@example.org')
  const turns: string[] = []
  const waiting = ['c', 'd', 'e'].map(async (address) => {
    await fail(limits, address)
    turns.push(address)
  })
  await fail(limits, 'x', 'bob@example.org')
  expect(turns).toEqual([])
  await Promise.all(waiting)
  expect(turns).toEqual(['c', 'd', 'e'])
})

test('an address from which the account has signed in does not wait; where many wait, a further one is refused', async () => {
  const limits = makeLimits(rates({ everyMs: 3_600_000, longestMs: 1_000 }))
  await limits.signIn({ address: 'home', email: 'Ann@example.org' }, async () => 'in')
  for (const address of ['a', 'b']) await fail(limits, address)
  await expect(fail(limits, 'c')).rejects.toMatchObject({ code: 'rate_limited' })
  await fail(limits, 'home')
})

test('a try whose password was not checked does not count', async () => {
  const limits = makeLimits({
    ...rates({ everyMs: 3_600_000, longestMs: 1_000 }),
    signInPair: { points: 1, seconds: 600 },
  })
  for (const address of ['a', 'b']) await fail(limits, address)
  for (let tries = 0; tries < 3; tries++)
    await expect(fail(limits, 'c')).rejects.toThrow('Too many sign-ins of this account wait already')
})
