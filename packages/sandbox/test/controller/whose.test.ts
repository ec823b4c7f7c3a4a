/** Owner of a container when ledger and engine disagree, over an engine in memory. */
import { readFile, writeFile } from 'node:fs/promises'
import type { Duplex } from 'node:stream'

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import type { BackendSandbox } from '../../src/backend.ts'
import { claimedName, ownerTag } from '../../src/names.ts'
import {
  compiledSbxd,
  DEPLOYMENT,
  fakeFixture,
  removeSbxd,
  slotsOnEngine,
  visit,
  type FakeFixture,
} from '../support/fake-fixture.ts'

let fixture: FakeFixture
beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)
beforeEach(async () => {
  fixture = await fakeFixture()
})
afterEach(() => fixture.dispose())

const containers = (): Promise<BackendSandbox[]> => fixture.engine.backend.list({})

test('a ledger that mixes two people up gives neither the other’s files, and touches nothing', async () => {
  const before = fixture.start()
  for (const user of ['ann', 'ben']) expect(await visit(before.sandboxes, user)).toBe('new')
  await before.sandboxes.close()
  const names = (await containers()).map(({ name, state }) => `${name} ${state}`).toSorted()
  const text = await readFile(fixture.ledgerFile, 'utf8')
  await writeFile(
    fixture.ledgerFile,
    text.replaceAll('"ann"', '"nobody"').replaceAll('"ben"', '"ann"').replaceAll('"nobody"', '"ben"'),
  )

  const after = fixture.start()
  for (const user of ['ann', 'ben']) {
    await expect(after.sandboxes.acquire(user)).rejects.toMatchObject({
      code: 'ledger',
      message: expect.stringMatching(/is not theirs\. Nothing was touched/),
    })
    await expect(after.sandboxes.stop(user)).rejects.toMatchObject({ code: 'ledger' })
  }
  // Neither does the look that opens the streams to what runs.
  await after.sandboxes.maintain()
  expect((await containers()).map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual(names)

  await after.sandboxes.close()
  await writeFile(fixture.ledgerFile, text)
  const healed = fixture.start()
  for (const user of ['ann', 'ben']) expect(await visit(healed.sandboxes, user)).toBe('known')
})

test('a removed container used its name up', async () => {
  const { sandboxes } = fixture.start()
  await sandboxes.acquire('ann')
  const [slot = ''] = await slotsOnEngine(fixture, 'ann')
  const owner = ownerTag(fixture.deploymentKey, 'ann')
  for (const n of [1, 2, 3]) {
    const [container] = await containers()
    expect(container?.name).toBe(claimedName(DEPLOYMENT, slot, owner, n))
    await fixture.engine.backend.remove(container?.id ?? '')
    await expect.poll(() => sandboxes.status('ann')).toMatchObject({ connected: false })
    expect(await visit(sandboxes, 'ann')).toBe(n === 1 ? 'new' : 'known')
  }
})

test('a warm one whose stream broke is taken up again, so that it does not keep its place for nothing', async () => {
  const streams: Duplex[] = []
  const { backend } = fixture.engine
  const watched = {
    ...backend,
    async openStream(id: string, signal?: AbortSignal) {
      const stream = await backend.openStream(id, signal)
      streams.push(stream)
      return stream
    },
  }
  const { sandboxes } = fixture.start({
    backend: watched,
    pool: { size: 2, everyMs: 1, delayMs: 0 },
    lookEveryMs: 20,
  })
  await sandboxes.maintain()
  await sandboxes.poolFilled()
  const ids = (await containers()).map(({ id }) => id).toSorted()
  expect(streams).toHaveLength(2)
  for (const stream of streams.slice()) stream.destroy()
  await expect.poll(() => streams.length, { timeout: 20_000 }).toBe(4)
  expect((await containers()).map(({ id }) => id).toSorted()).toEqual(ids)
  expect(await visit(sandboxes, 'ann')).toBe('new')
})
