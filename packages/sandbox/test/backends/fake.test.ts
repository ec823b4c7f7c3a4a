import { randomBytes } from 'node:crypto'

import { afterAll } from 'vitest'

import { testBackend } from '../support/contract.ts'
import { fakeFixture, removeSbxd } from '../support/fake-fixture.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'

afterAll(removeSbxd)

testBackend({
  name: 'fake',
  lifecycleOnly: true,
  async open() {
    const { engine, ledger, dispose } = await fakeFixture()
    return {
      backend: engine.controller(ledger).backend,
      spec(change = {}) {
        const slot = randomBytes(4).toString('hex')
        const name = `sbx-test-${slot}-owner-${randomBytes(2).toString('hex')}`
        const volume = `vol-${slot}`
        return {
          name,
          slot,
          uid: 30_000,
          volume,
          image: 'none',
          limits: DEFAULT_LIMITS,
          labels: {},
          ...change,
        }
      },
      dispose,
    }
  },
})
