import { test } from 'vitest'
import { campaign } from '../../../../test/campaign.ts'
import { buildSbxd } from '../support/build-sbxd.ts'
import { testBackend } from '../support/contract.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

if (campaign.full) testBackend({ name: 'local-process', open: () => localProcessFixture(buildSbxd) })
// The fake engine, made of this backend, runs the same suite each time.
else test.skip('the contract of a backend on local-process (skipped: only in a full run)', () => undefined)
