/** Streams of users' sandboxes, over real sbxd processes. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { SandboxError } from '../../src/errors.ts'
import { createGate, createKeyedLock, type KeyedLock } from '../../../shared/src/async/keyed-lock.ts'
import { DEFAULT_LIMITS, diskBudget } from '../../src/limits.ts'
import type { Prove } from '../../src/controller/proof.ts'
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
let prove: Prove
let closing: AbortController
let logged: string[]

beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)

beforeEach(async () => {
  fixture = await fakeFixture()
  lock = createKeyedLock()
  prove = async () => {}
  closing = new AbortController()
  logged = []
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
    prove: (...of) => prove(...of),
    hasContainer: () => true,
    closing: closing.signal,
    owns: () => true,
    log: (message) => void logged.push(message),
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

const UNSAFE = new SandboxError('unsafe_host', 'Something answers.')

async function states(): Promise<string[]> {
  return (await fixture.engine.backend.list({})).map(({ state }) => state)
}

test('a sandbox that fails its repeated proof is stopped', async () => {
  await userSandboxes.join('bob')
  const asked: unknown[] = []
  prove = async (_sandbox, _profile, isAgain) => {
    asked.push(isAgain)
    throw UNSAFE
  }
  await expect(userSandboxes.join('bob')).rejects.toBe(UNSAFE)
  expect(asked).toEqual([true])
  expect(userSandboxes.isConnected('bob')).toBe(false)
  expect(await states()).not.toContain('running')
}, 60_000)

test('one whose repeated proof cannot be made runs on, and calls reach it', async () => {
  const sandbox = await userSandboxes.join('bob')
  for (const code of ['timeout', 'engine_unavailable', 'pids_exhausted'] as const) {
    prove = () => Promise.reject(new SandboxError(code, 'The proof did not finish.'))
    expect(await userSandboxes.join('bob')).toBe(sandbox)
  }
  expect(logged).toEqual(Array.from({ length: 3 }, () => 'a sandbox could not be proved again'))
  expect(await states()).toEqual(['running'])
}, 60_000)

describe('after another controller, where each sandbox has a proof of its own', () => {
  const reattach = async (): Promise<void> => {
    await userSandboxes.join('bob')
    await userSandboxes.release('bob')
    Object.assign(fixture.engine.backend.inventory, { unreachable: async () => [] })
    const slot = await fixture.ledger.find('bob')
    const [container] = await fixture.engine.backend.list({})
    if (slot === undefined || container === undefined) throw new Error('no sandbox')
    await userSandboxes.reattach(slot, container, await fixture.ledger.nextEpoch(), performance.now())
    expect(userSandboxes.isConnected('bob')).toBe(true)
  }
  const asked: unknown[] = []
  beforeEach(() => {
    asked.length = 0
    prove = async (_sandbox, _profile, isAgain) => void asked.push(isAgain ?? false)
  })

  test('it is proved whole before the next command, and from then on again', async () => {
    await reattach()
    asked.length = 0
    await userSandboxes.join('bob')
    expect(asked).toEqual([false])
    await userSandboxes.join('bob')
    expect(asked).toEqual([false, true])
  }, 60_000)

  test('one in which commands run is proved by the same round', async () => {
    await reattach()
    const { sandbox } = userSandboxes.liveSandboxes()[0] ?? {}
    await sandbox?.run({ id: 'c'.repeat(32), command: 'sleep 60' })
    asked.length = 0
    await userSandboxes.proveBusy()
    expect(asked).toEqual([false])
  }, 60_000)

  test('one that cannot be proved is let go, and no command runs in it', async () => {
    await reattach()
    const failure = new SandboxError('timeout', 'The proof did not finish.')
    prove = () => Promise.reject(failure)
    await expect(Promise.all([userSandboxes.join('bob'), userSandboxes.join('bob')])).rejects.toBe(failure)
    expect(userSandboxes.isConnected('bob')).toBe(false)
    expect(await states()).toEqual(['running'])
    await expect(userSandboxes.join('bob')).rejects.toBe(failure)
    prove = async () => {}
    await userSandboxes.join('bob')
    expect(userSandboxes.isConnected('bob')).toBe(true)
  }, 60_000)

  test('one that is unsafe is stopped', async () => {
    await reattach()
    prove = () => Promise.reject(UNSAFE)
    await expect(userSandboxes.join('bob')).rejects.toBe(UNSAFE)
    expect(await states()).not.toContain('running')
  }, 60_000)
})

test('a late failure of a proof does not stop the sandbox that has replaced that one', async () => {
  await userSandboxes.join('bob')
  const late = Promise.withResolvers<void>()
  prove = () => late.promise
  const failing = userSandboxes.join('bob')
  await userSandboxes.stop('bob')
  prove = async () => {}
  const next = await userSandboxes.join('bob')
  late.reject(UNSAFE)
  await expect(failing).rejects.toBe(UNSAFE)
  expect(await userSandboxes.join('bob')).toBe(next)
  expect(await states()).toEqual(['running'])
}, 60_000)
