/** Many acquires at once: of several controllers, and in a long queue. */
import { setTimeout as sleep } from 'node:timers/promises'

import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { campaign, extent } from '../../../../test/campaign.ts'
import type { BackendSandbox, SandboxBackend } from '../../src/backend.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import {
  compiledSbxd,
  fakeFixture,
  type FakeFixture,
  removeSbxd,
  slotsOnEngine,
} from '../support/fake-fixture.ts'

beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)

let fixture: FakeFixture
beforeEach(async () => {
  fixture = await fakeFixture()
})
afterEach(() => fixture.dispose())

/** Every call of `target` waits for its turn before it is made. */
function inTurns<T extends object>(target: T, turn: (name: string) => Promise<unknown>): T {
  return new Proxy(target, {
    get(of, name) {
      const method: unknown = Reflect.get(of, name)
      if (typeof method !== 'function') return method
      return async (...args: unknown[]): Promise<unknown> => {
        await turn(String(name))
        return Reflect.apply(method, of, args)
      }
    },
  })
}

test('two controllers that make first sandboxes at once make one per user, in whatever order they go', async () => {
  const users = ['ann', 'bob', 'cid']
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      const own = await fakeFixture()
      let over = false
      try {
        const removed: string[] = []
        const backend: SandboxBackend = {
          ...own.engine.backend,
          remove: async (id) => void removed.push(id),
        }
        const controllers = ['one', 'two'].map((who) => {
          const turn = async (name: string): Promise<unknown> =>
            over ? undefined : scheduler.schedule(Promise.resolve(), `${who} ${name}`)
          const change = { backend: inTurns(backend, turn), ledger: inTurns(own.ledger, turn) }
          return own.start(change).sandboxes
        })
        const acquired = users.flatMap((user) =>
          controllers.map(async (sandboxes) => {
            try {
              return { user, id: (await sandboxes.acquire(user)).id }
            } catch (error) {
              // The other one was later, and has it.
              expect(error).toMatchObject({ code: 'fenced' })
              return { user, id: undefined }
            }
          }),
        )
        const got = await scheduler.waitFor(Promise.all(acquired))
        for (const user of users) {
          const ids = got.filter((one) => one.user === user && one.id !== undefined).map(({ id }) => id)
          expect(new Set(ids).size).toBe(1)
          expect(await slotsOnEngine(own, user)).toHaveLength(1)
        }
        expect(removed).toEqual([])
        expect(await own.engine.backend.list({})).toHaveLength(users.length)
        expect(await own.engine.backend.inventory.volumes.list()).toHaveLength(users.length)
        expect(await own.problems(0)).toEqual([])
      } finally {
        // A controller's remaining work continues by itself.
        over = true
        void scheduler.waitIdle()
        await own.dispose()
      }
    }),
    { numRuns: extent(15, 300), seed: campaign.seed },
  )
}, 600_000)

describe('a line of users', () => {
  /** The first create is held until it is let go. */
  function held(startsAtOnce: number, patience: { startMs?: number; lineMs?: number }) {
    const began = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const { backend } = fixture.engine
    let creates = 0
    const create = async (...args: Parameters<SandboxBackend['create']>): Promise<BackendSandbox> => {
      creates += 1
      if (creates === 1) {
        began.resolve()
        await release.promise
      }
      return backend.create(...args)
    }
    const { sandboxes } = fixture.start({
      backend: { ...backend, create },
      startsAtOnce,
      patience,
    })
    return { sandboxes, began: began.promise, release: () => release.resolve() }
  }

  const many = (sandboxes: Sandboxes, count: number) =>
    Array.from({ length: count }, (_, n) => sandboxes.acquire(`user-${n}`))

  test('the limit counts from its turn: a caller that waited longer than that gets one all the same', async () => {
    const startMs = 8_000
    const { sandboxes, began, release } = held(1, { startMs })
    const slow = sandboxes.acquire('slow')
    await began
    const others = many(sandboxes, extent(8, 200))
    // The time itself is what is tried here.
    await sleep(startMs + 500)
    release()
    await expect(slow).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('8 seconds'),
    })
    const got = await Promise.all(others)
    expect(new Set(got.map(({ id }) => id)).size).toBe(got.length)
    expect(await sandboxes.acquire('slow')).toMatchObject({ id: expect.any(String) })
    expect(await fixture.problems(0)).toEqual([])
  }, 300_000)

  test('the wait for a turn has a limit of its own, which says so; a caller that gave up takes no place', async () => {
    const { sandboxes, began, release } = held(1, { lineMs: 300 })
    const slow = sandboxes.acquire('slow')
    await began
    const told = await Promise.allSettled(many(sandboxes, 5))
    for (const one of told)
      expect(one).toMatchObject({
        status: 'rejected',
        reason: { code: 'timeout', message: expect.stringContaining('still queued after 0.3 seconds') },
      })
    release()
    await slow
    expect(await sandboxes.acquire('user-0')).toMatchObject({ id: expect.any(String) })
    expect(await fixture.engine.backend.list({})).toHaveLength(2)
  })

  test('a controller that closes rejects all waiting calls', async () => {
    const { sandboxes, began, release } = held(1, {})
    const slow = sandboxes.acquire('slow')
    await began
    const told = Promise.allSettled(many(sandboxes, 5))
    const ended = Promise.allSettled([slow])
    const closed = sandboxes.close()
    for (const one of await told) expect(one).toMatchObject({ reason: { code: 'cancelled' } })
    release()
    expect((await ended)[0]).toMatchObject({ reason: { code: 'cancelled' } })
    await closed
  })
})
