/**
 * Campaigns: many cases of one kind (kills at every event, cuts at every byte, rows of a table). An ordinary run draws
 * some of them from the seed it printed; `./sandlot test --full` runs all.
 */
import { testConfig } from './config.ts'

const { seed, full } = testConfig()

export const campaign = { seed, full } as const

/** `few` in an ordinary run, `all` in a full one: counts, seconds, sizes. */
export function extent<T>(few: T, all: T): T {
  return full ? all : few
}

/**
 * All of `cases` in a full run, else `count` of them in their order, drawn by the seed and `name` (so that two campaigns
 * of one run do not draw alike).
 */
export function sample<T>(name: string, cases: readonly T[], count: number): T[] {
  if (full || cases.length <= count) return [...cases]
  const random = randomFrom(`${seed} ${name}`)
  const places = cases.map((_, place) => place)
  for (let last = places.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const kept = places[last] ?? 0
    places[last] = places[other] ?? 0
    places[other] = kept
  }
  const drawn = new Set(places.slice(0, count))
  return cases.filter((_, place) => drawn.has(place))
}

/**
 * Leaves a test out of two ordinary runs of three, by the seed and `name`: of those that take ten seconds and more of a
 * processor, and stand beside quick ones of the same thing.
 */
export function oneRunOfThree(name: string, skip: (leaveOut: boolean, reason: string) => void): void {
  skip(!full && randomFrom(`${seed} ${name}`)() * 3 >= 1, 'in one ordinary run of three, by its seed')
}

/** Skips a slow test in ordinary runs; quicker tests cover its parts. */
export function onlyInFullRun(skip: (leaveOut: boolean, reason: string) => void): void {
  skip(!full, 'only in a full run')
}

/** Numbers in [0, 1) that depend only on `text`: mulberry32 over its FNV-1a hash. */
export function randomFrom(text: string): () => number {
  let state = 0x811c9dc5
  for (const character of text) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x01000193)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
