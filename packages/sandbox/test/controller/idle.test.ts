/** A pause and a use that cross, over an engine in memory. */
import { setTimeout as sleep } from 'node:timers/promises'

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { campaign, extent } from '../../../../test/campaign.ts'
import type { SandboxBackend } from '../../src/backend.ts'
import { connectSandbox, type ConnectedSandbox } from '../../src/sbxd/client.ts'
import { SandboxError } from '../../src/errors.ts'
import { idleTimes, pause, sweepIdle } from '../../src/controller/idle.ts'
import { deriveSandboxKey } from '../../src/controller/key.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { compiledSbxd, fakeFixture, removeSbxd, type FakeFixture } from '../support/fake-fixture.ts'

let fixture: FakeFixture
beforeAll(async () => {
  await compiledSbxd()
  fixture = await fakeFixture()
}, 120_000)
afterAll(async () => {
  await fixture.dispose()
  await removeSbxd()
})

let made = 0

async function connected(heartbeatMs = 0): Promise<ConnectedSandbox> {
  const { backend } = fixture.engine
  made += 1
  const slot = `slot${String(made).padStart(4, '0')}`
  const name = `sbx-test-${slot}`
  const spec = { name, slot, uid: 30_000, volume: name, image: 'none', limits: DEFAULT_LIMITS, labels: {} }
  const created = await backend.create(spec)
  const { stream, keyId } = await backend.open(created)
  const key = deriveSandboxKey(fixture.deploymentKey, keyId)
  return connectSandbox({ id: created.id, stream, key, epoch: 1, heartbeatMs })
}

/** The same engine, slowed down on demand. */
function slow(pauseMs: number, resumeMs: number): SandboxBackend {
  const { backend } = fixture.engine
  return {
    ...backend,
    async pause(id) {
      await sleep(pauseMs)
      await backend.pause(id)
    },
    async resume(id) {
      await sleep(resumeMs)
      await backend.resume(id)
    },
  }
}

const stateOf = async (id: string): Promise<string | undefined> =>
  (await fixture.engine.backend.inventory.inspect(id))?.state

test('a time that is undefined is the default', () => {
  expect(idleTimes({ pauseAfterMs: undefined, stopAfterMs: 0 })).toEqual({
    pauseAfterMs: 60_000,
    stopAfterMs: 0,
  })
  expect(idleTimes()).toEqual({ pauseAfterMs: 60_000, stopAfterMs: 1_800_000 })
})

test('whenever it is used while it goes to sleep or wakes, the answer comes and it is awake', async () => {
  const sandbox = await connected()
  const ms = fc.integer({ min: 0, max: 8 })
  await fc.assert(
    fc.asyncProperty(
      ms,
      ms,
      fc.array(ms, { minLength: 1, maxLength: 4 }),
      async (pauseMs, resumeMs, uses) => {
        const paused = pause(sandbox, slow(pauseMs, resumeMs))
        for (const wait of uses) {
          if (wait > 0) await sleep(wait)
          expect((await sandbox.files.list('')).length).toBe(0)
        }
        await paused
        // An answer may have been on its way before the pause, so the waking may still be under
        // way.
        const wanted = sandbox.paused ? 'paused' : 'running'
        await expect.poll(() => stateOf(sandbox.id), { timeout: 10_000, interval: 5 }).toBe(wanted)
      },
    ),
    { numRuns: extent(40, 1_000), seed: campaign.seed },
  )
}, 120_000)

test('signs of life are not asked of it while it sleeps, and are when it is awake again', async () => {
  const sandbox = await connected(50)
  expect(await pause(sandbox, fixture.engine.backend)).toBe(true)
  // Many times as long as silence is borne.
  await sleep(1_000)
  expect(await stateOf(sandbox.id)).toBe('paused')
  expect(await sandbox.files.list('')).toEqual([])
  expect(await stateOf(sandbox.id)).toBe('running')
  await fixture.engine.backend.pause(sandbox.id)
  expect(await sandbox.closed).toMatchObject({ code: 'sandbox_lost' })
}, 60_000)

test('one that cannot be woken is given up with the engine’s reason', async () => {
  const sandbox = await connected()
  const gone = new SandboxError('sandbox_lost', 'It is gone.')
  await pause(sandbox, { ...fixture.engine.backend, resume: () => Promise.reject(gone) })
  await expect(sandbox.files.list('')).rejects.toBe(gone)
  expect(await sandbox.closed).toBe(gone)
})

test('while a command runs it does not sleep, and afterwards it does', async () => {
  const sandbox = await connected()
  const command = await sandbox.run({ id: 'a'.repeat(32), command: 'read line; echo $line', stdin: true })
  expect(await pause(sandbox, fixture.engine.backend)).toBe(false)
  expect(await stateOf(sandbox.id)).toBe('running')
  await command.writeStdin(Buffer.from('done\n'))
  for await (const { offset, data } of command.output) command.acknowledge({ stdout: offset + data.length })
  command.acknowledge((await command.exit).bytes)
  expect(await pause(sandbox, fixture.engine.backend)).toBe(true)
})

test('many that are due together are paused a few at a time', async () => {
  const sandboxes = await Promise.all(Array.from({ length: 20 }, () => connected()))
  await sleep(5)
  let atOnce = 0
  let most = 0
  const backend: SandboxBackend = {
    ...fixture.engine.backend,
    async pause(id) {
      most = Math.max(most, ++atOnce)
      await sleep(10)
      await fixture.engine.backend.pause(id)
      atOnce -= 1
    },
  }
  await sweepIdle({
    backend,
    pauseAfterMs: 1,
    stopAfterMs: 0,
    liveSandboxes: () => sandboxes.map((sandbox, n) => ({ userId: `user-${n}`, sandbox, usedAt: 0 })),
    stop: async () => false,
    log: () => {},
  })
  expect(sandboxes.every(({ paused }) => paused)).toBe(true)
  expect(most).toBeGreaterThan(1)
  expect(most).toBeLessThanOrEqual(8)
}, 60_000)
