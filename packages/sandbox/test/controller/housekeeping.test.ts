/** A controller's periodic work, when single sandboxes or calls fail. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import type { SandboxBackend } from '../../src/backend.ts'
import { SandboxError } from '../../src/errors.ts'
import { compiledSbxd, type FakeFixture, fakeFixture, removeSbxd } from '../support/fake-fixture.ts'

const broken = async (): Promise<never> => {
  throw new SandboxError('engine_unavailable', 'Broken on purpose.')
}

let fixture: FakeFixture
beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)
beforeEach(async () => {
  fixture = await fakeFixture()
}, 120_000)
afterEach(() => fixture.dispose(), 120_000)

test('one sandbox that cannot be resumed does not stop the maintenance of others', async () => {
  const backend: SandboxBackend = { ...fixture.engine.backend, resume: broken }
  const problems: string[] = []
  const { sandboxes } = fixture.start({
    backend,
    pool: { size: 1, everyMs: 1, delayMs: 0 },
    log: (message) => problems.push(message),
  })
  const { id } = await sandboxes.acquire('ann')
  await fixture.engine.backend.pause(id)
  await sandboxes.maintain()
  await expect
    .poll(async () => (await fixture.ledger.list()).filter(({ state }) => state === 'warm').length, {
      timeout: 60_000,
    })
    .toBe(1)
  expect(problems).toContain('a paused sandbox that is in use could not be resumed')
  await fixture.engine.backend.resume(id)
}, 120_000)

test('all are stopped although one of them cannot be, and that is said at the end', async () => {
  let stuck = ''
  const real = fixture.engine.backend
  const backend: SandboxBackend = {
    ...real,
    stop: (id) => (id === stuck ? broken() : real.stop(id)),
  }
  // One at a time, so that the others have not even begun when the first fails.
  const { sandboxes } = fixture.start({ backend, startsAtOnce: 1 })
  for (const user of ['ann', 'bob', 'eve']) await sandboxes.acquire(user)
  stuck = (await real.list({}))[0]?.id ?? ''
  await expect(sandboxes.stopAll()).rejects.toMatchObject({ code: 'engine_unavailable' })
  const running = (await real.list({})).filter(({ state }) => state === 'running')
  expect(running.map(({ id }) => id)).toEqual([stuck])
}, 120_000)
