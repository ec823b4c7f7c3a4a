import { afterAll, beforeAll, describe, test } from 'vitest'

import type { ConnectedSandbox } from '../src/client.ts'
import { backgroundTests } from './contract/background.ts'
import { commandTests } from './contract/commands.ts'
import { connectionTests } from './contract/connection.ts'
import { diskTests } from './contract/disk.ts'
import { endingTests } from './contract/endings.ts'
import { fileTests } from './contract/files.ts'
import { type BackendFixture, Bench, type SuiteOptions } from './contract/harness.ts'
import { lifecycleTests } from './contract/lifecycle.ts'
import { outputTests } from './contract/outputs.ts'
import { refusalTests } from './contract/refusals.ts'
import { sessionTests } from './contract/sessions.ts'
import { terminalTests } from './contract/terminal.ts'

/** Declares a test, or skips it with the reason that the backend gives. */
export type Declare = (title: string, body: () => Promise<void>) => void

/** What every group of tests gets. The sandbox is shared: a test leaves it usable, or takes one of its own. */
export interface Suite {
  it: Declare
  fixture: () => BackendFixture
  bench: () => Bench
  sandbox: () => ConnectedSandbox
  ownProcesses: boolean
}

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
    const suite: Suite = {
      it(title, body) {
        const reason = options.skips?.[title]
        if (reason === undefined) test(title, body)
        else test.skip(`${title} (${reason})`, body)
      },
      fixture: () => fixture,
      bench: () => shared.bench,
      sandbox: () => shared.sandbox,
      ownProcesses: options.ownProcesses ?? false,
    }
    const group = (title: string, declare: (suite: Suite) => void): void => {
      const reason = options.skipGroups?.[title]
      if (reason === undefined) describe(title, () => declare(suite))
      else test.skip(`${title} (${reason})`)
    }
    if (options.lifecycleOnly) return lifecycleTests(suite)
    group('refusals', refusalTests)
    group('outputs', outputTests)
    if (options.quick) return
    group('commands', commandTests)
    group('endings', endingTests)
    group('sessions', sessionTests)
    group('terminals', terminalTests)
    group('background jobs', backgroundTests)
    group('files', fileTests)
    group('connections', connectionTests)
    group('disk', diskTests)
    group('lifecycle', lifecycleTests)
  })
}
