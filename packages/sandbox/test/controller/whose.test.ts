/** Owner of a container when ledger and engine disagree, over an engine in memory. */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { Duplex } from 'node:stream'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import type { BackendSandbox, SeenSandbox } from '../../src/backend.ts'
import type { SandboxesOptions } from '../../src/controller/sandboxes.ts'
import { claimedName, LABEL, ownerTag } from '../../src/names.ts'
import { connectSandbox, type ConnectedSandbox } from '../../src/sbxd/client.ts'
import { newId } from '../contract/harness.ts'
import {
  compiledSbxd,
  DEPLOYMENT,
  fakeFixture,
  removeSbxd,
  slotsOnEngine,
  visit,
  type FakeFixture,
  type Started,
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

describe('a sandbox whose sbxd got its key from someone else', () => {
  /** Ends what runs there and starts it again, with another key and a command. */
  async function takeAway({ id }: BackendSandbox): Promise<ConnectedSandbox> {
    const { backend } = fixture.engine
    await backend.stop(id)
    const { stream } = await backend.open({ id, state: 'stopped' })
    const thief = await connectSandbox({ id, stream, key: randomBytes(32), epoch: 1 })
    await thief.run({ id: newId(), command: 'sleep 1000' })
    return thief
  }

  /** A controller, what it logs, and the only container so far, which is someone else's now. */
  async function taken(): Promise<
    Started & { logged: unknown[]; own: BackendSandbox; thief: ConnectedSandbox }
  > {
    const [own] = await containers()
    if (own === undefined) throw new Error('there is no sandbox')
    const logged: unknown[] = []
    const thief = await takeAway(own)
    const log: SandboxesOptions['log'] = (message, { slot }) => logged.push({ message, slot })
    const started = fixture.start({ log, pool: { size: 1, everyMs: 1, delayMs: 0 } })
    return { ...started, logged, own, thief }
  }

  const alert = ({ labels }: BackendSandbox): unknown => ({
    message: expect.stringMatching(/a key of someone else/) as string,
    slot: labels[LABEL.slot],
  })

  test('is removed before a command of its user, who finds their files', async () => {
    const before = fixture.start()
    await visit(before.sandboxes, 'ann')
    await before.sandboxes.close()
    const { sandboxes, logged, own, thief } = await taken()
    expect(await visit(sandboxes, 'ann')).toBe('known')
    expect(logged).toEqual([alert(own)])
    expect((await thief.closed)?.code).toBe('sandbox_lost')
    expect((await containers()).map(({ id }) => id)).not.toContain(own.id)
  })

  test('is not connected to when a controller starts', async () => {
    const before = fixture.start()
    await visit(before.sandboxes, 'ann')
    await before.sandboxes.close()
    const { sandboxes, logged, own } = await taken()
    await sandboxes.maintain()
    expect(logged).toContainEqual(alert(own))
    expect(await sandboxes.connected('ann')).toBeUndefined()
    expect(await visit(sandboxes, 'ann')).toBe('known')
  })

  test('is given to nobody from the pool', async () => {
    const before = fixture.start({ pool: { size: 1, everyMs: 1, delayMs: 0 } })
    await before.sandboxes.maintain()
    await before.sandboxes.poolFilled()
    await before.sandboxes.close()
    const { sandboxes, logged, own } = await taken()
    await sandboxes.maintain()
    expect(logged).toContainEqual(alert(own))
    expect((await sandboxes.acquire('ann')).id).not.toBe(own.id)
    expect((await containers()).map(({ id }) => id)).not.toContain(own.id)
  })
})

test('a warm one whose stream broke is taken up again, so that it does not keep its place for nothing', async () => {
  const streams: Duplex[] = []
  const { backend } = fixture.engine
  const watched = {
    ...backend,
    async open(sandbox: SeenSandbox, signal?: AbortSignal) {
      const opened = await backend.open(sandbox, signal)
      streams.push(opened.stream)
      return opened
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
