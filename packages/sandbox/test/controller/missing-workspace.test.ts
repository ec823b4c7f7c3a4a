/** A home whose volume is missing is never replaced by an empty one. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'

import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'

import type { SandboxBackend } from '../../src/backend.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { SandboxError } from '../../src/errors.ts'
import { LABEL } from '../../src/names.ts'
import { shell } from '../support/docker-fixture.ts'
import { type FakeFixture, fakeFixture, removeSbxd } from '../support/fake-fixture.ts'

let fixture: FakeFixture
beforeEach(async () => {
  fixture = await fakeFixture()
}, 60_000)
afterEach(() => fixture.dispose())
afterAll(removeSbxd)

const volumes = async (): Promise<string[]> =>
  (await fixture.engine.backend.inventory.volumes.list()).map(({ name }) => name)

const say = async (sandboxes: Sandboxes, command: string): Promise<string> =>
  (await shell(await sandboxes.acquire('ann'), command)).output.trim()

/** Like an operator, by hand. */
async function lose(sandboxes: Sandboxes): Promise<string> {
  const { volume } = (await fixture.ledger.find('ann')) ?? expect.fail()
  await sandboxes.stop('ann')
  for (const { id } of await fixture.engine.backend.list({})) await fixture.engine.backend.remove(id)
  await fixture.engine.backend.inventory.volumes.remove(volume)
  return volume
}

const missing = (volume: string): object => ({
  name: 'SandboxError',
  code: 'workspace_missing',
  message: expect.stringContaining(volume) as string,
})

const origins = {
  'made for them': async () => fixture.start(),
  'taken from the pool': async () => {
    const started = fixture.start({ pool: { size: 1, everyMs: 1, delayMs: 0 } })
    await started.sandboxes.maintain()
    await started.sandboxes.poolFilled()
    return started
  },
}

test.each(Object.entries(origins))(
  'of a sandbox %s: every use says which volume is missing, nothing is made, and an administrator begins anew',
  async (_, begin) => {
    const { sandboxes } = await begin()
    await say(sandboxes, 'echo mine > file')
    const volume = await lose(sandboxes)
    const slot = (await fixture.ledger.find('ann'))?.slot ?? expect.fail()
    for (const use of [
      () => sandboxes.acquire('ann'),
      () => sandboxes.acquire('ann'),
      () => sandboxes.reset('ann'),
      () => fixture.start().sandboxes.acquire('ann'),
    ])
      await expect(use()).rejects.toMatchObject(missing(volume))
    expect(await volumes()).not.toContain(volume)
    expect(await fixture.engine.backend.list({ [LABEL.slot]: slot })).toEqual([])
    expect(await sandboxes.reset('ann', 'replace')).toBe(volume)
    expect(await say(sandboxes, 'ls')).toBe('')
    expect((await fixture.ledger.find('ann'))?.volume).not.toBe(volume)
    // Nothing is missing now, so a reset is what it was.
    await say(sandboxes, 'echo new > file')
    expect(await sandboxes.reset('ann', 'replace')).toBeUndefined()
    expect(await say(sandboxes, 'cat file')).toBe('new')
  },
)

/** The engine, as it would be if it had lost every volume of its stopped containers. */
function withoutVolumes(): SandboxBackend {
  const { backend } = fixture.engine
  const volumes = { ...backend.inventory.volumes, has: async () => false }
  return {
    ...backend,
    open: () => expect.fail('it was started'),
    inventory: { ...backend.inventory, volumes },
  }
}

test('a stopped container is not started without its volume, which would come back empty', async () => {
  const { sandboxes } = fixture.start()
  const { id } = await sandboxes.acquire('ann')
  await sandboxes.stop('ann')
  const { volume } = (await fixture.ledger.find('ann')) ?? expect.fail()
  const { sandboxes: other } = fixture.start({ backend: withoutVolumes() })
  await expect(other.acquire('ann')).rejects.toMatchObject(missing(volume))
  expect(await fixture.engine.backend.inventory.inspect(id)).toMatchObject({ state: 'stopped' })
})

test('one that is out of reach is said to be, and nothing takes its place, not even at a reset', async () => {
  const before = fixture.start()
  await say(before.sandboxes, 'echo kept > file')
  await before.sandboxes.stop('ann')
  const found = await fixture.engine.backend.list({})
  const unreachable = new SandboxError(
    'workspace_unreachable',
    'The files of this workspace are on node worker-2, which does not answer. Try again when it is back.',
  )
  const backend = { ...fixture.engine.backend, open: () => Promise.reject(unreachable) }
  const { sandboxes } = fixture.start({ backend })
  for (const use of [() => sandboxes.acquire('ann'), () => sandboxes.reset('ann', 'replace')])
    await expect(use()).rejects.toBe(unreachable)
  expect(await fixture.engine.backend.list({})).toEqual(found)
  expect(await say(fixture.start().sandboxes, 'cat file')).toBe('kept')
})

test.each(['takes none of it', 'fills its pool again'])(
  'of a stopped warm sandbox: nobody gets it, and a controller %s',
  async (what) => {
    const { sandboxes } = await origins['taken from the pool']()
    const [warm] = await fixture.ledger.list()
    await sandboxes.stopAll()
    await sandboxes.close()
    await rm(join(fixture.folder, 'volumes', warm?.volume ?? expect.fail()), { recursive: true })
    const next = fixture.start({ pool: { size: 1, everyMs: 1, delayMs: 0 } }).sandboxes
    if (what === 'fills its pool again') {
      await next.maintain()
      await next.poolFilled()
    }
    expect(await say(next, 'touch file; ls')).toBe('file')
    expect((await fixture.ledger.find('ann'))?.volume).not.toBe(warm?.volume)
    expect(await volumes()).not.toContain(warm?.volume)
  },
)

test('a restored volume is found again, and a lost ledger hides no missing one', async () => {
  const { sandboxes } = fixture.start()
  await sandboxes.acquire('ann')
  await sandboxes.stop('ann')
  const slot = (await fixture.ledger.find('ann')) ?? expect.fail()
  const empty = createFileLedger(`${fixture.ledgerFile}.other`)
  const lost = fixture.start({ backend: withoutVolumes(), ledger: empty })
  await expect(lost.sandboxes.acquire('ann')).rejects.toMatchObject(missing(slot.volume))
  const found = fixture.start({ ledger: empty })
  await found.sandboxes.acquire('ann')
  expect((await empty.find('ann'))?.volume).toBe(slot.volume)
})

describe('a controller that dies at any step of a first start', () => {
  test.each(['before', 'after'] as const)('%s it leaves a person who then gets a home', async (when) => {
    for (let step = 1, done = false; !done; step += 1) {
      const user = `user-${when}-${step}`
      const { hands, sandboxes } = fixture.start({}, ({ count }) => (count === step ? when : undefined))
      await sandboxes.acquire(user).catch(() => undefined)
      done = !hands.dead()
      const next = fixture.start().sandboxes
      await shell(await next.acquire(user), 'touch kept')
      expect(await next.status(user), `step ${step}`).toMatchObject({ state: 'running' })
      expect(step).toBeLessThan(20)
    }
  })
})
