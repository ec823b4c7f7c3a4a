import { expect, test } from 'vitest'
import { DEFAULT_RATES, makeLimits } from '../../src/auth/limits.ts'

const many = { points: 1_000, seconds: 600 }
const rates = (signInSlow: { everyMs: number; longestMs: number }) => ({
  ...DEFAULT_RATES,
  signInPair: many,
  signInAddress: many,
  signInAccount: { points: 2, seconds: 600 },
  signInSlow,
})

test('X-A5 beyond the limit of an account a sign-in is tried later, one after another, and not refused', async () => {
  const limits = makeLimits(rates({ everyMs: 30, longestMs: 60_000 }))
  for (const address of ['a', 'b']) await limits.beforeSignIn(address, 'Ann@example.org')
  const turns: string[] = []
  const waiting = ['c', 'd', 'e'].map(async (address) => {
    await limits.beforeSignIn(address, 'ann@example.org')
    turns.push(address)
  })
  await limits.beforeSignIn('x', 'bob@example.org')
  expect(turns).toEqual([])
  await Promise.all(waiting)
  expect(turns).toEqual(['c', 'd', 'e'])
})

test('an address from which the account has signed in does not wait; where many wait, a further one is refused', async () => {
  const limits = makeLimits(rates({ everyMs: 3_600_000, longestMs: 1_000 }))
  await limits.beforeSignIn('home', 'ann@example.org')
  await limits.signInSucceeded('home', 'Ann@example.org')
  for (const address of ['a', 'b']) await limits.beforeSignIn(address, 'ann@example.org')
  await expect(limits.beforeSignIn('c', 'ann@example.org')).rejects.toMatchObject({ code: 'rate_limited' })
  await limits.beforeSignIn('home', 'ann@example.org')
})
