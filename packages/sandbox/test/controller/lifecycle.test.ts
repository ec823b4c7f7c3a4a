/**
 * Pool, claims and reconciliation over an engine in memory: crashes at every step, and lost
 * ledgers.
 */
import { copyFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { campaign, extent } from '../../../../test/campaign.ts'
import type { SandboxBackend } from '../../src/backend.ts'
import type { FailPoint } from '../../src/backends/fake.ts'
import { collect } from '../../src/sbxd/collect.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { emptyWorkspace } from '../../src/controller/empty-workspace.ts'
import { SandboxError } from '../../src/errors.ts'
import {
  countAwake,
  ownerlessVolumes,
  pruneVolumes,
  purgeAll,
  type RemovalOptions,
} from '../../src/controller/workspaces.ts'
import {
  compiledSbxd,
  fakeFixture,
  removeSbxd,
  slotsOnEngine,
  visit,
  type FakeFixture,
} from '../support/fake-fixture.ts'

const POOL = { size: 2, everyMs: 1, delayMs: 0 } as const

beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)

let fixture: FakeFixture
beforeEach(async () => {
  fixture = await fakeFixture()
})
afterEach(() => fixture.dispose())

/** A controller that has looked at everything and filled its pool. */
async function settled(on = fixture): Promise<ReturnType<FakeFixture['start']>> {
  const started = on.start({ pool: POOL })
  await started.sandboxes.maintain()
  await started.sandboxes.poolFilled()
  return started
}

const warm = async (): Promise<string[]> =>
  (await fixture.ledger.list()).filter(({ state }) => state === 'warm').map(({ slot }) => slot)

describe('the pool', () => {
  test('is filled to its size; a user takes one, which is made up for', async () => {
    const { sandboxes } = await settled()
    const before = await warm()
    expect(before).toHaveLength(2)
    expect(await visit(sandboxes, 'ann')).toBe('new')
    const slot = (await fixture.ledger.find('ann'))?.slot
    expect(before).toContain(slot)
    expect(await slotsOnEngine(fixture, 'ann')).toEqual([slot])
    await sandboxes.poolFilled()
    expect(await warm()).toHaveLength(2)
    expect(await countAwake({ backend: fixture.engine.backend, ledger: fixture.ledger })).toBe(1)
    expect(await fixture.problems(2)).toEqual([])
  })

  test('serves many users at once, each with one of their own, and two controllers never share', async () => {
    const one = await settled()
    const two = await settled()
    const users = Array.from({ length: 12 }, (_, n) => `user-${n}`)
    await Promise.all(users.map((user, n) => visit((n % 2 ? one : two).sandboxes, user)))
    const slots = await Promise.all(users.map(async (user) => (await fixture.ledger.find(user))?.slot))
    expect(new Set(slots).size).toBe(users.length)
    await two.sandboxes.poolFilled()
    expect(await fixture.problems(2)).toEqual([])
  })

  test('is taken up by the next controller, and drained when it is made differently or is too large', async () => {
    const first = await settled()
    const before = await warm()
    await first.sandboxes.close()
    const again = await settled()
    expect((await warm()).toSorted()).toEqual(before.toSorted())
    await again.sandboxes.close()
    const smaller = fixture.start({ pool: { ...POOL, size: 1 } })
    await smaller.sandboxes.maintain()
    expect(await warm()).toHaveLength(1)
    expect(await fixture.problems(1)).toEqual([])
    await smaller.sandboxes.close()
    const none = fixture.start()
    await none.sandboxes.maintain()
    expect(await warm()).toEqual([])
    expect(await fixture.engine.backend.inventory.volumes.list()).toEqual([])
  })
})

test('a sandbox whose controller was killed and that no other one reattaches ends with its lease; its files stay', async () => {
  const own = await fakeFixture(1)
  try {
    const { hands, sandboxes } = own.start()
    await visit(sandboxes, 'ann')
    const sandbox = await sandboxes.acquire('ann')
    await sandbox.run({ id: 'a'.repeat(32), command: 'sleep 300' })
    hands.crash()
    const state = async () => (await own.engine.backend.inventory.inspect(sandbox.id))?.state
    await expect.poll(state, { timeout: 30_000 }).toBe('stopped')
    expect(await visit(own.start().sandboxes, 'ann')).toBe('known')
  } finally {
    await own.dispose()
  }
}, 60_000)

/** Parameters of an operator's commands. */
function operator(): RemovalOptions & { warnings: unknown[] } {
  const warnings: unknown[] = []
  return {
    warnings,
    log: (message, details) => warnings.push({ message, ...details }),
    backend: fixture.engine.backend,
    ledger: fixture.ledger,
    deploymentId: 'test',
    deploymentKey: fixture.deploymentKey,
    image: 'none',
    limits: DEFAULT_LIMITS,
  }
}

function withRemove(
  { inventory }: SandboxBackend,
  remove: (name: string) => Promise<void>,
): SandboxBackend['inventory'] {
  return { ...inventory, volumes: { ...inventory.volumes, remove } }
}

/** Directories below those of the volumes when each of them is removed. */
function watched(backend: SandboxBackend): { backend: SandboxBackend; below: string[] } {
  const below: string[] = []
  return {
    below,
    backend: {
      ...backend,
      inventory: withRemove(backend, async (name) => {
        const found = await readdir(join(fixture.folder, 'volumes', name), { recursive: true })
        below.push(...found.filter((path) => path.includes('/')))
        await backend.inventory.volumes.remove(name)
      }),
    },
  }
}

describe('a workspace that is removed', () => {
  const DEEP = `mkdir -p 'a b/c' $'new\nline/x' closed/in && touch -- -rf && chmod 500 closed && chmod 000 closed/in`

  test('with its user has no tree in it when its volume goes: an engine takes a descriptor for each level', async () => {
    const { backend, below } = watched(fixture.engine.backend)
    const { sandboxes } = fixture.start({ backend })
    await collect(await sandboxes.acquire('ann'), { command: DEEP })
    await sandboxes.remove('ann', 'purge')
    expect(below).toEqual([])
    expect(await backend.inventory.volumes.list()).toEqual([])
    expect(await backend.list({})).toEqual([])
    expect(await fixture.ledger.list()).toEqual([])
  })

  test('with everything, on the word of an operator, has none either', async () => {
    const { backend, below } = watched(fixture.engine.backend)
    const { sandboxes } = fixture.start()
    await collect(await sandboxes.acquire('ann'), { command: DEEP })
    await sandboxes.close()
    const options = operator()
    expect(await purgeAll({ ...options, backend })).toEqual({ containers: 1, volumes: 1 })
    expect(below).toEqual([])
    expect(options.warnings).toEqual([])
    expect(await backend.list({})).toEqual([])
  })

  test('where no sandbox can be made goes as it is, with a warning', async () => {
    const gone = new SandboxError('engine_unavailable', 'The image is not there.')
    let images = true
    const backend: SandboxBackend = {
      ...fixture.engine.backend,
      create: async (spec, signal) => {
        if (!images) throw gone
        return fixture.engine.backend.create(spec, signal)
      },
    }
    const warnings: unknown[] = []
    const { sandboxes } = fixture.start({
      backend,
      log: (message, details) => warnings.push({ message, ...details }),
    })
    await collect(await sandboxes.acquire('ann'), { command: DEEP })
    await visit(sandboxes, 'bob')
    const slotOf = async (user: string) => (await fixture.ledger.find(user))?.slot
    const [ann, bob] = await Promise.all([slotOf('ann'), slotOf('bob')])
    images = false
    await sandboxes.remove('ann', 'purge')
    expect(warnings).toEqual([
      { message: expect.stringContaining('could not be emptied'), userId: 'ann', slot: ann, error: gone },
    ])
    expect((await backend.inventory.volumes.list()).length).toBe(1)
    expect(await slotOf('ann')).toBeUndefined()
    await sandboxes.close()
    const options = operator()
    expect(await purgeAll({ ...options, backend })).toEqual({ containers: 1, volumes: 1 })
    expect(options.warnings).toEqual([
      { message: expect.stringContaining('could not be emptied'), slot: bob, error: gone },
    ])
    expect(await backend.inventory.volumes.list()).toEqual([])
    expect(await fixture.ledger.list()).toEqual([])
  })

  test('that the engine refuses to remove keeps its row, so that it is removed again', async () => {
    const refused = new SandboxError('engine_unavailable', 'The volume is in use.')
    let refuses = true
    const backend: SandboxBackend = {
      ...fixture.engine.backend,
      inventory: withRemove(fixture.engine.backend, async (name) => {
        if (refuses) throw refused
        return fixture.engine.backend.inventory.volumes.remove(name)
      }),
    }
    const { sandboxes } = fixture.start({ backend })
    await visit(sandboxes, 'ann')
    await expect(sandboxes.remove('ann', 'purge')).rejects.toBe(refused)
    expect(await fixture.ledger.find('ann')).toBeDefined()
    refuses = false
    await sandboxes.remove('ann', 'purge')
    expect(await fixture.ledger.list()).toEqual([])
  })

  test('is not emptied for longer than its limit, and nothing is left of the sandbox for that', async () => {
    const { sandboxes } = fixture.start()
    await collect(await sandboxes.acquire('ann'), { command: DEEP })
    await sandboxes.remove('ann', 'keep')
    const slot = await fixture.ledger.find('ann')
    if (slot === undefined) throw new Error('no slot')
    await expect(emptyWorkspace(slot, operator(), AbortSignal.abort())).rejects.toMatchObject({
      code: 'timeout',
    })
    expect(await fixture.engine.backend.list({})).toEqual([])
    await emptyWorkspace(slot, operator())
    expect(await fixture.engine.backend.list({})).toEqual([])
  })
})

describe('a ledger that is not the last one', () => {
  test('lost: files are found again, and nothing of a user is removed', async () => {
    const before = await settled()
    await visit(before.sandboxes, 'ann')
    await before.sandboxes.close()
    await rm(fixture.ledgerFile)
    const { sandboxes } = await settled()
    expect(await visit(sandboxes, 'ann')).toBe('known')
    // Strays of the pool are gone by now, and their volumes are left for a person to decide.
    await sandboxes.close()
    await settled()
    expect((await fixture.problems(2)).filter((text) => !text.endsWith('nobody’s'))).toEqual([])
    const nobodys = await ownerlessVolumes({ backend: fixture.engine.backend, ledger: fixture.ledger })
    expect(nobodys.length).toBeGreaterThan(0)
    const all = nobodys.map(({ name }) => name)
    const theirs = (await fixture.ledger.find('ann'))?.volume ?? ''
    expect(await pruneVolumes([...all, theirs], operator())).toEqual(all)
    expect(await fixture.problems(2)).toEqual([])
  })

  test('older: a slot that it calls warm is the user’s whom the engine names', async () => {
    const before = await settled()
    const backup = join(fixture.folder, 'backup.json')
    await copyFile(fixture.ledgerFile, backup)
    await visit(before.sandboxes, 'ann')
    await before.sandboxes.close()
    await copyFile(backup, fixture.ledgerFile)
    const { sandboxes } = await settled()
    // Bob comes first, and must not get it.
    await visit(sandboxes, 'bob')
    await visit(sandboxes, 'cid')
    expect(await visit(sandboxes, 'ann')).toBe('known')
  })
})

describe('a crash', () => {
  /** A user comes while the pool is filled, another one afterwards; one leaves. */
  async function story(failPoint?: FailPoint): Promise<number> {
    const { sandboxes, hands } = fixture.start({ pool: POOL }, failPoint)
    try {
      await sandboxes.maintain()
      await sandboxes.poolFilled()
      await visit(sandboxes, 'ann')
      await sandboxes.poolFilled()
      await sandboxes.stop('ann')
      await visit(sandboxes, 'ann')
      await visit(sandboxes, 'bob')
      await sandboxes.poolFilled()
    } catch (error) {
      if (!hands.dead()) throw error
    }
    hands.crash()
    return hands.steps()
  }

  test('at any step loses nothing of a user and leaves nothing behind', async () => {
    const steps = await story()
    const all = Array.from({ length: steps }, (_, n) => n + 1).flatMap((count) =>
      (['before', 'after'] as const).map((when) => ({ count, when })),
    )
    const drawn = extent(
      all.filter((_, n) => n % 5 === campaign.seed % 5),
      all,
    )
    for (const { count, when } of drawn) {
      await fixture.dispose()
      fixture = await fakeFixture()
      await story((step) => (step.count === count ? when : undefined))
      const before = await Promise.all(['ann', 'bob'].map((user) => hasFiles(user)))
      await settled()
      const { sandboxes } = await settled()
      const now = await Promise.all(['ann', 'bob'].map((user) => visit(sandboxes, user)))
      for (const [n, had] of before.entries()) if (had) expect(now[n], `${when} ${count}`).toBe('known')
      await sandboxes.poolFilled()
      const left = await fixture.problems(2)
      // Between a volume and its container nothing shows whether it was used: a person decides.
      expect(
        left.filter((text) => !text.endsWith('nobody’s')),
        `${when} ${count}`,
      ).toEqual([])
      expect(left.length, `${when} ${count}`).toBeLessThanOrEqual(1)
    }
  }, 120_000)

  async function hasFiles(user: string): Promise<boolean> {
    return (await fixture.ledger.find(user)) !== undefined && (await wrote(user))
  }

  async function wrote(user: string): Promise<boolean> {
    const looker = fixture.start()
    const known = (await visit(looker.sandboxes, user)) === 'known'
    await looker.sandboxes.close()
    return known
  }
})

describe('somebody leaves', () => {
  const gone = async (user: string): Promise<boolean> =>
    (await fixture.ledger.find(user)) === undefined && (await slotsOnEngine(fixture, user)).length === 0

  test('without their container, but not without their files unless that is said', async () => {
    const { sandboxes } = await settled()
    await visit(sandboxes, 'ann')
    await visit(sandboxes, 'bob')
    await sandboxes.remove('ann', 'keep')
    expect(await sandboxes.status('ann')).toMatchObject({ state: 'absent', connected: false })
    expect(await visit(sandboxes, 'ann')).toBe('known')
    await sandboxes.remove('ann', 'purge')
    expect(await gone('ann')).toBe(true)
    expect(await fixture.problems(2)).toEqual([])
    expect(await visit(sandboxes, 'ann')).toBe('new')
    expect(await visit(sandboxes, 'bob')).toBe('known')
    await sandboxes.remove('nobody', 'purge')
  })

  test('whom the engine alone knew: what is kept is theirs in the ledger', async () => {
    const { sandboxes, hands } = fixture.start()
    await visit(sandboxes, 'ann')
    hands.crash()
    await rm(fixture.ledgerFile, { force: true })
    const { sandboxes: later } = fixture.start()
    await later.remove('ann', 'keep')
    expect(await slotsOnEngine(fixture, 'ann')).toEqual([])
    expect(await visit(later, 'ann')).toBe('known')
  })

  test('and what is cut off at any step is ended by doing it again', async () => {
    // backend.remove, volumes.remove, ledger.release
    for (const count of [1, 2, 3]) {
      for (const when of ['before', 'after'] as const) {
        await fixture.dispose()
        fixture = await fakeFixture()
        const first = fixture.start()
        await visit(first.sandboxes, 'ann')
        await first.sandboxes.close()
        const { sandboxes, hands } = fixture.start({}, (step) => (step.count === count ? when : undefined))
        await expect(sandboxes.remove('ann', 'purge')).rejects.toThrow()
        expect(hands.dead()).toBe(true)
        const { sandboxes: later } = fixture.start()
        await later.remove('ann', 'purge')
        expect(await gone('ann'), `${when} ${count}`).toBe(true)
        expect(await fixture.problems(0), `${when} ${count}`).toEqual([])
      }
    }
  })
})

describe('whatever happens in whatever order', () => {
  type Act =
    | { do: 'visit'; user: string }
    | { do: 'stop'; user: string }
    | { do: 'restart' }
    | { do: 'crash'; inSteps: number; when: 'before' | 'after' }
    | { do: 'remove'; user: string }
    | { do: 'leave'; user: string; files: 'keep' | 'purge' }
    | { do: 'lose the ledger' }

  const user = fc.constantFrom('ann', 'bob', 'cid')
  const act: fc.Arbitrary<Act> = fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constant('visit' as const), user }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('stop' as const), user }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('crash' as const),
        inSteps: fc.integer({ min: 1, max: 12 }),
        when: fc.constantFrom('before' as const, 'after' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), user }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('leave' as const),
        user,
        files: fc.constantFrom('keep' as const, 'purge' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('lose the ledger' as const) }) },
  )

  test('no user loses or shares files, and nothing leaks', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 3, maxLength: 12 }), async (acts) => {
        const own = await fakeFixture()
        try {
          await play(own, acts)
        } finally {
          await own.dispose()
        }
      }),
      { numRuns: extent(15, 400), seed: campaign.seed },
    )
  }, 600_000)

  async function play(own: FakeFixture, acts: Act[]): Promise<void> {
    let crashAt: { count: number; when: 'before' | 'after' } | undefined
    const next = (): ReturnType<FakeFixture['start']> => {
      crashAt = undefined
      return own.start({ pool: POOL }, ({ count }) => (count === crashAt?.count ? crashAt.when : undefined))
    }
    let now = next()
    await now.sandboxes.maintain()
    /** Users with files; a container removed while the ledger is lost takes the knowledge along. */
    const known = new Set<string>()
    const renew = async (): Promise<void> => {
      now = next()
      await now.sandboxes.maintain()
    }
    /** To be repeated when it is cut off. */
    let leaving: Extract<Act, { do: 'leave' }> | undefined
    const left = ({ user, files }: Extract<Act, { do: 'leave' }>): void => {
      leaving = undefined
      if (files === 'purge') known.delete(user)
    }
    for (const one of acts) {
      try {
        if (one.do === 'visit') {
          const was = await visit(now.sandboxes, one.user)
          if (known.has(one.user)) expect(was).toBe('known')
          known.add(one.user)
        }
        if (one.do === 'stop') await now.sandboxes.stop(one.user)
        if (one.do === 'restart') {
          await now.sandboxes.close()
          await renew()
        }
        if (one.do === 'crash') crashAt = { count: now.hands.steps() + one.inSteps, when: one.when }
        if (one.do === 'remove') {
          const { id } = await now.sandboxes.status(one.user)
          if (id !== undefined) await own.engine.backend.remove(id)
        }
        if (one.do === 'leave') {
          leaving = one
          await now.sandboxes.remove(one.user, one.files)
          left(one)
        }
        if (one.do === 'lose the ledger') {
          now.hands.crash()
          for (const user of known) if ((await slotsOnEngine(own, user)).length === 0) known.delete(user)
          await rm(own.ledgerFile, { force: true })
          await renew()
        }
      } catch (error) {
        if (!now.hands.dead()) throw error
        await renew()
        if (leaving === undefined) continue
        await now.sandboxes.remove(leaving.user, leaving.files)
        left(leaving)
      }
    }
    if (!now.hands.dead()) await now.sandboxes.close()
    for (let rounds = 0; rounds < 3; rounds += 1) {
      const last = own.start({ pool: POOL })
      await last.sandboxes.maintain()
      await last.sandboxes.poolFilled()
      for (const user of known) expect(await visit(last.sandboxes, user)).toBe('known')
      await last.sandboxes.poolFilled()
      await last.sandboxes.close()
    }
    const found = await own.problems(2)
    expect(found.filter((text) => !text.endsWith('nobody’s'))).toEqual([])
  }
})
