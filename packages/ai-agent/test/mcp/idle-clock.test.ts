import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createIdleClock } from '../../src/mcp/connection.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('runs out without progress, not while it is paused, and restarts with each report', () => {
  const clock = createIdleClock(100)
  vi.advanceTimersByTime(90)
  clock.restart()
  vi.advanceTimersByTime(90)
  const resume = clock.pause()
  vi.advanceTimersByTime(1_000)
  resume()
  vi.advanceTimersByTime(99)
  expect(clock.signal.aborted).toBe(false)
  vi.advanceTimersByTime(1)
  expect(clock.signal.reason).toBe('timeout')
})

test('a stopped one leaves no timer, also when a pause ends later', () => {
  const clock = createIdleClock(100)
  const resume = clock.pause()
  clock.stop()
  resume()
  clock.restart()
  expect(vi.getTimerCount()).toBe(0)
})
