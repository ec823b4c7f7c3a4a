import { expect, test } from 'vitest'
import { campaign, extent, randomFrom, sample } from './campaign.ts'

const cases = Array.from({ length: 100 }, (_, place) => place)

test('a sample is drawn once per seed and name, in the order of its cases', () => {
  const drawn = sample('a', cases, 7)
  expect(drawn).toEqual(sample('a', cases, 7))
  expect(drawn).toEqual(drawn.toSorted((one, other) => one - other))
  expect(new Set(drawn).size).toBe(campaign.full ? 100 : 7)
  if (!campaign.full) expect(sample('b', cases, 7)).not.toEqual(drawn)
})

test('a full run takes everything', () => {
  expect(sample('c', cases, 200)).toEqual(cases)
  expect(extent('few', 'all')).toBe(campaign.full ? 'all' : 'few')
})

test('every case is drawn as often as any other', () => {
  const random = randomFrom('how often')
  const tens = Array.from({ length: 10 }, () => 0)
  for (let draw = 0; draw < 10_000; draw++) {
    const ten = Math.floor(random() * 10)
    tens[ten] = (tens[ten] ?? 0) + 1
  }
  for (const count of tens) expect(Math.abs(count - 1_000)).toBeLessThan(150)
})
