/** Streams of users' sandboxes, over real sbxd processes. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import { SandboxError } from '../../src/errors.ts'
import { createGate, createKeyedLock, type KeyedLock } from '../../../shared/src/async/keyed-lock.ts'
import { DEFAULT_LIMITS, diskBudget } from '../../src/limits.ts'
import { UserSandboxes } from '../../src/controller/user-sandboxes.ts'
import {
  compiledSbxd,
  DEPLOYMENT,
  type FakeFixture,
  fakeFixture,
  removeSbxd,
} from '../support/fake-fixture.ts'

let fixture: FakeFixture
let lock: KeyedLock
let userSandboxes: UserSandboxes
let prove: () => Promise<void>
let closing: AbortController

beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)

beforeEach(async () => {
  fixture = await fakeFixture()
  lock = createKeyedLock()
  prove = async () => {}
  closing = new AbortController()
  userSandboxes = new UserSandboxes({
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
    prove: () => prove(),
    hasContainer: () => true,
    closing: closing.signal,
    owns: () => true,
    log: () => {},
  })
}, 120_000)
afterEach(async () => {
  await userSandboxes.disconnectAll()
  await fixture.dispose()
}, 120_000)

test('making room never waits for a user who may wait for room', async () => {
  await userSandboxes.join('bob')
  const stop = async (): Promise<boolean> => {
    const [candidate] = userSandboxes.liveSandboxes()
    return candidate !== undefined && userSandboxes.stopIdle(candidate)
  }
  let release = (): void => {}
  const held = lock.run('bob', () => new Promise<void>((resolve) => (release = resolve)))
  expect(await stop()).toBe(false)
  release()
  await held
  // Something may still be under way in one that is new.
  await expect.poll(stop, { timeout: 50_000 }).toBe(true)
}, 60_000)

test('a stream that was being opened again when the controller let go of all is not kept', async () => {
  const sandbox = await userSandboxes.join('bob')
  const began = Promise.withResolvers<void>()
  const proved = Promise.withResolvers<void>()
  prove = () => {
    began.resolve()
    return proved.promise
  }
  await sandbox.close(new SandboxError('sandbox_lost', 'The stream broke.'))
  await began.promise
  closing.abort()
  await userSandboxes.disconnectAll()
  proved.resolve()
  // After the reconnect, which holds the lock.
  await lock.run('bob', async () => {})
  expect(userSandboxes.isConnected('bob')).toBe(false)
}, 60_000)
