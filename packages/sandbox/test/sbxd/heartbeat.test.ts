import { expect, onTestFinished, test } from 'vitest'

import { Heartbeat } from '../../src/sbxd/heartbeat.ts'

type HeartbeatOptions = ConstructorParameters<typeof Heartbeat>[0]

const EVERY_MS = 40

/** A heartbeat whose pings are answered or not. */
function beating(change: Partial<HeartbeatOptions> = {}) {
  const seen = { pings: [] as number[], lost: [] as number[], answers: true }
  const heartbeat: Heartbeat = new Heartbeat({
    everyMs: EVERY_MS,
    busy: () => true,
    paused: () => false,
    ping: () => {
      seen.pings.push(performance.now())
      if (seen.answers) setImmediate(() => heartbeat.received())
    },
    sentAt: () => performance.now(),
    lost: (ms) => seen.lost.push(ms),
    ...change,
  })
  onTestFinished(() => heartbeat.stop())
  return { heartbeat, seen }
}

const pings = (seen: { pings: number[] }) => expect.poll(() => seen.pings.length, { timeout: 15_000 })
const waited = (seen: { pings: number[] }): number[] =>
  seen.pings.map((at, place) => at - (seen.pings[place - 1] ?? at)).slice(1)

test('a connection that answers is kept, and asked again and again while something is under way', async () => {
  const { seen } = beating()
  await pings(seen).toBeGreaterThan(4)
  expect(seen.lost).toEqual([])
})

test('silence is given up once, after a little more than two waits', async () => {
  const { seen } = beating()
  seen.answers = false
  await expect.poll(() => seen.lost.length, { timeout: 15_000 }).toBe(1)
  expect(seen.lost[0]).toBeGreaterThanOrEqual(EVERY_MS * 2)
  expect(seen.pings.length).toBeGreaterThan(0)
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS * 4))
  expect(seen.lost).toHaveLength(1)
})

test('nothing is asked while bytes come by themselves', async () => {
  const { heartbeat, seen } = beating()
  const until = performance.now() + EVERY_MS * 8
  while (performance.now() < until) {
    heartbeat.received()
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(seen.pings).toEqual([])
})

test('a side that only receives sends a ping as often as one that is idle', async () => {
  let sentAt = performance.now()
  const { heartbeat, seen } = beating({
    sentAt: () => sentAt,
    ping: () => seen.pings.push((sentAt = performance.now())),
  })
  const from = performance.now()
  while (seen.pings.length < 2 && performance.now() < from + EVERY_MS * 60) {
    heartbeat.received()
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS / 10))
  }
  expect(seen.pings).toHaveLength(2)
  expect((seen.pings[0] ?? 0) - from).toBeGreaterThanOrEqual(EVERY_MS * 14)
  expect(waited(seen)[0]).toBeGreaterThanOrEqual(EVERY_MS * 14)
  expect(seen.lost).toEqual([])
})

test('an idle connection is asked more and more seldom, and at once often when a request waits', async () => {
  let busy = false
  const { heartbeat, seen } = beating({ busy: () => busy })
  await pings(seen).toBe(4)
  expect(waited(seen)[2]).toBeGreaterThanOrEqual(EVERY_MS * 6)
  busy = true
  heartbeat.hurry()
  const from = performance.now()
  await pings(seen).toBe(5)
  // The wait after the fourth would have been sixteen times the shortest.
  expect((seen.pings[4] ?? 0) - from).toBeLessThan(EVERY_MS * 12)
})

test('nothing is asked of the other side while it is paused, however long', async () => {
  let paused = true
  const { seen } = beating({ paused: () => paused })
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS * 6))
  expect(seen).toMatchObject({ pings: [], lost: [] })
  paused = false
  await pings(seen).toBeGreaterThan(0)
  expect(seen.lost).toEqual([])
})

test('this process standing still is not taken for the other side’s silence', async () => {
  const { heartbeat, seen } = beating({
    ping: () => {
      seen.pings.push(performance.now())
      // The answer to the first arrives while nobody looks, the others at once.
      setImmediate(() => {
        const until = performance.now() + EVERY_MS * 5
        while (seen.pings.length === 1 && performance.now() < until);
        setImmediate(() => setImmediate(() => heartbeat.received()))
      })
    },
  })
  await pings(seen).toBeGreaterThan(2)
  expect(seen.lost).toEqual([])
})
