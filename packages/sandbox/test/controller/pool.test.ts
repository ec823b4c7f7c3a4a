import type { Duplex } from 'node:stream'

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import type { SandboxBackend } from '../../src/backend.ts'
import { SandboxError } from '../../src/errors.ts'
import { compiledSbxd, type FakeFixture, fakeFixture, removeSbxd } from '../support/fake-fixture.ts'

const EVERY_MS = 20

let fixture: FakeFixture
beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)
beforeEach(async () => {
  fixture = await fakeFixture()
}, 120_000)
afterEach(() => fixture.dispose(), 120_000)

test('a warm sandbox stays in the pool when the ledger fails at its claim', async () => {
  let fails = 1
  const opened: string[] = []
  const { sandboxes } = fixture.start({
    backend: {
      ...fixture.engine.backend,
      open(sandbox, signal) {
        opened.push(sandbox.id)
        return fixture.engine.backend.open(sandbox, signal)
      },
    },
    ledger: {
      ...fixture.ledger,
      async claim(slot, userId) {
        if (fails-- > 0) throw new SandboxError('ledger', 'The disk of the ledger is full.')
        return fixture.ledger.claim(slot, userId)
      },
    },
    pool: { size: 1, everyMs: EVERY_MS, delayMs: 0 },
  })
  await sandboxes.maintain()
  await sandboxes.poolFilled()
  await expect(sandboxes.acquire('ann')).rejects.toMatchObject({ code: 'ledger' })
  const { id } = await sandboxes.acquire('ann')
  // One that was lost sight of has to be connected to again.
  expect(opened.filter((one) => one === id)).toHaveLength(1)
}, 120_000)

test('a warm one that is given back while the controller closes is let go of with the others', async () => {
  const streams: Duplex[] = []
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<never>()
  const { sandboxes } = fixture.start({
    backend: {
      ...fixture.engine.backend,
      async open(sandbox, signal) {
        const opened = await fixture.engine.backend.open(sandbox, signal)
        streams.push(opened.stream)
        return opened
      },
    },
    ledger: {
      ...fixture.ledger,
      claim() {
        asked.resolve()
        return answer.promise
      },
    },
    pool: { size: 2, everyMs: EVERY_MS, delayMs: 0 },
  })
  await sandboxes.maintain()
  await sandboxes.poolFilled()
  const acquired = Promise.allSettled([sandboxes.acquire('ann')])
  await asked.promise
  const closed = sandboxes.close()
  // The pool has let go of the other one.
  await expect.poll(() => streams.map(({ destroyed }) => destroyed)).toContain(true)
  answer.reject(new SandboxError('ledger', 'The disk of the ledger is full.'))
  await closed
  expect(await acquired).toMatchObject([{ reason: { code: 'cancelled' } }])
  expect(streams.map(({ destroyed }) => destroyed)).toEqual([true, true])
}, 120_000)

test('one that another controller takes up while it is made is that one’s', async () => {
  const asked = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const said: string[] = []
  const pool = { size: 1, everyMs: EVERY_MS, delayMs: 0 }
  const { sandboxes } = fixture.start({
    backend: {
      ...fixture.engine.backend,
      inventory: {
        ...fixture.engine.backend.inventory,
        async capabilities() {
          asked.resolve()
          await go.promise
          return fixture.engine.backend.inventory.capabilities()
        },
      },
    },
    pool,
    log: (message, { error }) => said.push(`${message}: ${error instanceof SandboxError ? error.code : ''}`),
  })
  void sandboxes.poolFilled()
  await asked.promise
  const [made] = await fixture.ledger.list()
  const newer = fixture.start({ pool }).sandboxes
  await newer.maintain()
  go.resolve()
  await expect.poll(() => said).toEqual(['a warm sandbox could not be made: fenced'])
  await newer.acquire('ann')
  expect((await fixture.ledger.find('ann'))?.slot).toBe(made?.slot)
}, 120_000)

test('a look at the engine leaves a slot alone while its container is being made', async () => {
  const asked = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  let looks = 0
  const { backend } = fixture.engine
  const { sandboxes } = fixture.start({
    backend: {
      ...backend,
      async create(spec, signal) {
        asked.resolve()
        await go.promise
        return backend.create(spec, signal)
      },
      list(labels) {
        looks += 1
        return backend.list(labels)
      },
    },
    lookEveryMs: 10,
    pool: { size: 1, everyMs: EVERY_MS, delayMs: 0 },
  })
  await sandboxes.maintain()
  await asked.promise
  const [made] = await fixture.ledger.list()
  const before = looks
  await expect.poll(() => looks, { timeout: 20_000 }).toBeGreaterThan(before + 5)
  expect(await fixture.ledger.list()).toEqual([made])
  go.resolve()
  await sandboxes.poolFilled()
  await sandboxes.acquire('ann')
  expect((await fixture.ledger.find('ann'))?.slot).toBe(made?.slot)
}, 120_000)

test('one whose stream breaks while it is made, and that cannot be removed, is taken up again', async () => {
  const opened: string[] = []
  let breaks = true
  let looks = 0
  const { backend } = fixture.engine
  let stream: Duplex | undefined
  const { sandboxes } = fixture.start({
    backend: {
      ...backend,
      async open(sandbox, signal) {
        opened.push(sandbox.id)
        const one = await backend.open(sandbox, signal)
        stream = one.stream
        return one
      },
      list(labels) {
        looks += 1
        return backend.list(labels)
      },
      inventory: {
        ...backend.inventory,
        async capabilities() {
          if (breaks) stream?.destroy()
          return backend.inventory.capabilities()
        },
      },
    },
    ledger: {
      ...fixture.ledger,
      // Before it is condemned, which cannot be taken back.
      condemn(slot) {
        if (!breaks) return fixture.ledger.condemn(slot)
        breaks = false
        throw new SandboxError('ledger', 'The disk of the ledger is full.')
      },
    },
    lookEveryMs: 50,
    pool: { size: 1, everyMs: 600_000, delayMs: 0 },
  })
  await sandboxes.maintain()
  await expect.poll(() => opened, { timeout: 20_000 }).toHaveLength(2)
  expect(new Set(opened).size).toBe(1)
  // The next look begins when the one that opened the stream has connected.
  const before = looks
  await expect.poll(() => looks, { timeout: 20_000 }).toBeGreaterThan(before)
  const [warm] = await fixture.ledger.list()
  await sandboxes.acquire('ann')
  expect((await fixture.ledger.find('ann'))?.slot).toBe(warm?.slot)
}, 120_000)

test('without an image it waits twice as long after each try, leaves nothing, says so once, and fills up when there is one', async () => {
  let missing = true
  const tries: number[] = []
  const said: string[] = []
  const backend: SandboxBackend = {
    ...fixture.engine.backend,
    async create(spec, signal) {
      tries.push(performance.now())
      if (missing) throw new SandboxError('engine_unavailable', 'The image is not there.')
      return fixture.engine.backend.create(spec, signal)
    },
  }
  const { sandboxes } = fixture.start({
    backend,
    pool: { size: 1, everyMs: EVERY_MS, delayMs: 0 },
    log: (message) => said.push(message),
  })
  const warm = async (): Promise<number> => (await fixture.ledger.list()).length

  for (let failures = 1; failures <= 5; failures++) {
    await sandboxes.poolFilled()
    expect(tries).toHaveLength(failures)
    expect(await warm()).toBe(0)
  }
  const waits = tries.slice(1).map((at, place) => at - (tries[place] ?? 0))
  for (const [place, ms] of waits.entries()) expect(ms).toBeGreaterThanOrEqual(EVERY_MS * 2 ** (place + 1))
  expect(said).toEqual(['a warm sandbox could not be made'])

  missing = false
  await sandboxes.poolFilled()
  expect(await warm()).toBe(1)
  expect(await fixture.problems(1)).toEqual([])
}, 120_000)
