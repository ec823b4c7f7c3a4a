/** Who has a stream, over real sbxd processes. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import { createGate, createKeyedLock, type KeyedLock } from '../src/keyed-lock.ts'
import { DEFAULT_LIMITS, diskBudget } from '../src/limits.ts'
import { createTenants, type Tenants } from '../src/tenants.ts'
import { compiledSbxd, DEPLOYMENT, type FakeFixture, fakeFixture, removeSbxd } from './fake-fixture.ts'

let fixture: FakeFixture
let lock: KeyedLock
let tenants: Tenants
const closing = new AbortController()

beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)

beforeEach(async () => {
  fixture = await fakeFixture()
  lock = createKeyedLock()
  tenants = createTenants({
    backend: fixture.engine.backend,
    ledger: fixture.ledger,
    deploymentId: DEPLOYMENT,
    deploymentKey: fixture.deploymentKey,
    image: 'none',
    limits: DEFAULT_LIMITS,
    lock,
    gate: createGate(8),
    pool: { take: async () => undefined },
    budget: () => diskBudget(DEFAULT_LIMITS),
    prove: async () => {},
    hasContainer: () => true,
    closing: closing.signal,
    log: () => {},
  })
}, 120_000)
afterEach(async () => {
  await tenants.letGoOfAll()
  await fixture.dispose()
}, 120_000)

test('making room never waits for somebody who may wait for room', async () => {
  await tenants.join('bob')
  const stop = async (): Promise<boolean> => {
    const [idler] = tenants.idlers()
    return idler !== undefined && tenants.stopIdle(idler)
  }
  let release = (): void => {}
  const held = lock.run('bob', () => new Promise<void>((resolve) => (release = resolve)))
  expect(await stop()).toBe(false)
  release()
  await held
  // Something may still be under way in one that is new.
  await expect.poll(stop, { timeout: 50_000 }).toBe(true)
}, 60_000)
