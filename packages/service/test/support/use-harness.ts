/** A service and its first administrator, new for each test of a file. */
import { afterEach, beforeEach } from 'vitest'
import { type Browser, type Harness, setUp, startHarness } from './harness.ts'

export function useHarness(): () => { harness: Harness; ann: Browser } {
  let now: { harness: Harness; ann: Browser } | undefined
  beforeEach(async () => {
    const harness = await startHarness()
    now = { harness, ann: await setUp(harness) }
  })
  afterEach(async () => {
    await now?.harness.close()
    now = undefined
  })
  return () => {
    if (now === undefined) throw new Error('there is a service only while a test runs')
    return now
  }
}
