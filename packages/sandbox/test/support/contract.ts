import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest'

import { campaign, extent } from '../../../../test/campaign.ts'
import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import { backgroundTests } from '../contract/background.ts'
import { commandTests } from '../contract/commands.ts'
import { connectionTests } from '../contract/connection.ts'
import { copyTests } from '../contract/copies.ts'
import { diskTests } from '../contract/disk.ts'
import { endingTests } from '../contract/endings.ts'
import { fileTests } from '../contract/files.ts'
import { type BackendFixture, Bench, type SuiteOptions } from '../contract/harness.ts'
import { lifecycleTests } from '../contract/lifecycle.ts'
import { outputTests } from '../contract/outputs.ts'
import { portTests } from '../contract/ports.ts'
import { refusalTests } from '../contract/refusals.ts'
import { retryTests } from '../contract/retries.ts'
import { sessionTests } from '../contract/sessions.ts'
import { terminalTests } from '../contract/terminal.ts'

/** Declares a test, or skips it with the reason that the backend gives. */
export type Declare = (title: string, body: (context: TestContext) => Promise<void>) => void

/**
 * Given to every group of tests. The sandbox is shared: a test leaves it usable, or takes one of
 * its own.
 */
export interface Suite {
  it: Declare
  /**
   * For a test that makes its own sandbox: runs while others of its group do. No `expect.poll` in
   * it.
   */
  apart: Declare
  /** The same with a sandbox of its own, which is removed afterwards. */
  alone: (title: string, body: (own: Awaited<ReturnType<typeof Bench.start>>) => Promise<void>) => void
  fixture: () => BackendFixture
  bench: () => Bench
  sandbox: () => ConnectedSandbox
  ownProcesses: boolean
  /** See `SuiteOptions`. */
  slow: boolean
}

/** Groups that are about sbxd more than about the backend, the quickest first. */
const GROUPS: [title: string, declareTests: (suite: Suite) => void][] = [
  ['refusals', refusalTests],
  ['commands', commandTests],
  ['endings', endingTests],
  ['sessions', sessionTests],
  ['terminals', terminalTests],
  ['background jobs', backgroundTests],
  ['files', fileTests],
  ['ports', portTests],
  ['disk', diskTests],
  ['retries', retryTests],
]

/** The contract of a sandbox backend, sbxd and the client together. Call it once per backend. */
export function testBackend(options: SuiteOptions): void {
  describe(options.name, () => {
    let fixture: BackendFixture
    let shared: { bench: Bench; sandbox: ConnectedSandbox }
    beforeAll(async () => {
      fixture = await options.open()
      shared = await Bench.start(fixture)
    }, 120_000)
    afterAll(async () => {
      await fixture.dispose()
    }, 60_000)
    const declare =
      (how: typeof test | typeof test.concurrent): Declare =>
      (title, body) => {
        const reason = options.skips?.[title]
        if (reason === undefined) how(title, body, extent(120_000, 1_800_000))
        else test.skip(`${title} (${reason})`, body)
      }
    const apart = declare(test.concurrent)
    const suite: Suite = {
      it: declare(test),
      apart,
      alone(title, body) {
        apart(title, async () => {
          const own = await Bench.start(fixture)
          try {
            await body(own)
          } finally {
            await own.bench.remove()
          }
        })
      },
      fixture: () => fixture,
      bench: () => shared.bench,
      sandbox: () => shared.sandbox,
      ownProcesses: options.ownProcesses ?? false,
      slow: options.slow ?? false,
    }
    if (options.lifecycleOnly) return lifecycleTests(suite)
    describe('outputs', () => outputTests(suite))
    const { sbxdElsewhere, quick = false } = options
    if (sbxdElsewhere !== undefined && !campaign.full)
      test.skip(`${GROUPS.map(([title]) => title).join(', ')} (${sbxdElsewhere})`)
    else
      for (const [title, declareTests] of quick ? GROUPS.slice(0, 1) : GROUPS)
        describe(title, () => declareTests(suite))
    if (quick) return
    describe('connections', () => connectionTests(suite))
    describe('lifecycle', () => lifecycleTests(suite))
    describe('copies', () => copyTests(suite))
  })
}
