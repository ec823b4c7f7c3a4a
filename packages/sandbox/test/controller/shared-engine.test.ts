/** Several controllers on one engine and one ledger: real sbxd as child processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { SandboxesOptions } from '../../src/controller/sandboxes.ts'
import { sh } from '../contract/harness.ts'
import {
  compiledSbxd,
  type FakeFixture,
  fakeFixture,
  removeSbxd,
  type Started,
} from '../support/fake-fixture.ts'

const POOL = { size: 2, everyMs: 1, delayMs: 0 } as const
const COMMAND = 'c'.repeat(32)
const PATIENCE = { timeout: 30_000 }

let fixture: FakeFixture
/** Owner of each user; a missing one has none. */
let owners: Map<string, string>
let leader: string
/** Controllers that have asked others for room. */
let asked: string[]
/** Callback of each controller for a loss. */
let losses: Map<string, (userId: string) => void>

beforeAll(async () => {
  await compiledSbxd()
}, 120_000)
afterAll(removeSbxd)
beforeEach(async () => {
  fixture = await fakeFixture()
  owners = new Map()
  leader = 'a'
  losses = new Map()
  asked = []
})
afterEach(() => fixture.dispose())

function controller(name: string, change: Partial<SandboxesOptions> = {}): Started {
  return fixture.start({
    share: {
      owns: (userId) => owners.get(userId) === name,
      leads: () => leader === name,
      async claim(userId) {
        if (!owners.has(userId)) owners.set(userId, name)
        return owners.get(userId) === name
      },
      async takeOver(userIds) {
        if (leader === name) for (const id of userIds) if (!owners.has(id)) owners.set(id, name)
        return new Set(userIds.filter((id) => owners.get(id) === name))
      },
      isElsewhere: async (userId) => (userId === undefined ? leader : (owners.get(userId) ?? name)) !== name,
      askForRoom: async () => void asked.push(name),
      onLost: (lost) => void losses.set(name, lost),
    },
    ...change,
  })
}

const stateOf = async (id: string): Promise<string | undefined> =>
  (await fixture.engine.backend.inventory.inspect(id))?.state

const warm = async (): Promise<string[]> =>
  (await fixture.ledger.list()).filter(({ state }) => state === 'warm').map(({ slot }) => slot)

test('a user who moves to another controller keeps running commands: the next owner attaches to them, and the old one does not return', async () => {
  const often = { lookEveryMs: 20, idle: { pauseAfterMs: 0, stopAfterMs: 0 } }
  const [a, b] = [controller('a', often).sandboxes, controller('b', often).sandboxes]
  await Promise.all([a.maintain(), b.maintain()])
  owners.set('ann', 'a')
  await expect(b.acquire('ann')).rejects.toMatchObject({ code: 'fenced' })
  const before = await a.acquire('ann')
  const running = await before.run({
    id: COMMAND,
    command: 'while ! [ -e go ]; do sleep 0.05; done; echo done',
  })
  void Promise.allSettled([running.exit])
  // Some looks of the one that does not own it.
  await sleep(100)
  expect(await b.status('ann')).toMatchObject({ state: 'running', connected: false })
  expect(await a.status('ann')).toMatchObject({ connected: true })

  owners.set('ann', 'b')
  losses.get('a')?.('ann')
  await expect(before.stat()).rejects.toMatchObject({ code: 'fenced' })
  // Its look finds that it runs.
  await expect.poll(async () => (await b.status('ann')).connected, PATIENCE).toBe(true)
  const after = await b.acquire('ann')
  expect(after.id).toBe(before.id)
  await after.files.write('go', Buffer.from(''))
  const command = await after.attach(COMMAND)
  expect(await command?.exit).toMatchObject({ code: 0 })
  for (const act of [a.acquire('ann'), a.stop('ann'), a.reset('ann'), a.remove('ann', 'purge')])
    await expect(act).rejects.toMatchObject({ code: 'fenced' })
  expect(await stateOf(after.id)).toBe('running')
}, 60_000)

test('what runs of nobody is taken up by the one that it falls to; of one’s own it is found before anything is acquired', async () => {
  const a = controller('a', { lookEveryMs: 20, idle: { pauseAfterMs: 0, stopAfterMs: 0 } })
  const b = controller('b')
  owners.set('ann', 'b').set('bob', 'b')
  const [ann, bob] = [await b.sandboxes.acquire('ann'), await b.sandboxes.acquire('bob')]
  await a.sandboxes.maintain()
  await sleep(100)
  expect((await a.sandboxes.status('ann')).connected).toBe(false)
  b.hands.crash()
  owners.set('bob', 'c').delete('ann')
  const c = controller('c').sandboxes
  expect((await c.connected('bob'))?.id).toBe(bob.id)
  await expect.poll(async () => (await a.sandboxes.status('ann')).connected, PATIENCE).toBe(true)
  expect(owners).toEqual(
    new Map([
      ['bob', 'c'],
      ['ann', 'a'],
    ]),
  )
  expect((await a.sandboxes.acquire('ann')).id).toBe(ann.id)
  expect(await c.connected('ann')).toBeUndefined()
}, 60_000)

test('an acquire that is under way when its user is lost ends, and leaves no stream', async () => {
  owners.set('ann', 'a')
  const { sandboxes } = controller('a')
  const acquired = Promise.allSettled([sandboxes.acquire('ann')])
  losses.get('a')?.('ann')
  expect(await acquired).toMatchObject([{ reason: { code: 'fenced' } }])
  expect((await sandboxes.status('ann')).connected).toBe(false)
  // Still its own: the next one connects.
  expect((await sh(await sandboxes.acquire('ann'), 'echo here')).out).toBe('here\n')
}, 60_000)

test('the one that leads fills the pool, all take from it, and what it makes is the next leader’s', async () => {
  const often = { pool: POOL, lookEveryMs: 50 }
  const a = controller('a', often).sandboxes
  const b = controller('b', often).sandboxes
  await Promise.all([a.maintain(), b.maintain()])
  await Promise.all([a.poolFilled(), b.poolFilled()])
  const made = await warm()
  expect(made).toHaveLength(POOL.size)

  owners.set('ann', 'b')
  expect((await sh(await b.acquire('ann'), 'echo here')).out).toBe('here\n')
  const taken = (await fixture.ledger.find('ann'))?.slot ?? ''
  expect(made).toContain(taken)
  // The other one learns it from sbxd, and compensates.
  await expect.poll(async () => (await warm()).length, PATIENCE).toBe(POOL.size)

  leader = 'b'
  const held = await warm()
  owners.set('bob', 'b')
  expect((await sh(await b.acquire('bob'), 'echo here')).out).toBe('here\n')
  expect(held).toContain((await fixture.ledger.find('bob'))?.slot)
  await b.poolFilled()
  owners.set('cid', 'a')
  expect((await sh(await a.acquire('cid'), 'echo here')).out).toBe('here\n')
  await b.poolFilled()
  await expect.poll(async () => (await warm()).length, PATIENCE).toBe(POOL.size)
  expect(await fixture.problems(POOL.size)).toEqual([])
  expect((await a.status('cid')).connected).toBe(true)
}, 60_000)

test('one that closes wakes, and one that stops all stops, what is no other’s', async () => {
  const idle = { idle: { pauseAfterMs: 100, stopAfterMs: 0 } }
  const a = controller('a', idle).sandboxes
  const b = controller('b', idle).sandboxes
  owners.set('ann', 'a').set('bob', 'b')
  const ids = [(await a.acquire('ann')).id, (await b.acquire('bob')).id] as const
  await Promise.all([a.maintain(), b.maintain()])
  const states = () => Promise.all(ids.map(stateOf))
  await expect.poll(states, PATIENCE).toEqual(['paused', 'paused'])
  // Given up before it closes, as in a drain.
  owners.delete('ann')
  losses.get('a')?.('ann')
  await a.close()
  expect(await states()).toEqual(['running', 'paused'])
  owners.set('ann', 'c')
  await b.stopAll()
  expect(await states()).toEqual(['running', 'stopped'])
}, 60_000)

test('what a dead controller left paused is stopped by the one that it falls to, once it is nobody’s', async () => {
  const a = controller('a', { idle: { pauseAfterMs: 100, stopAfterMs: 0 } })
  leader = 'b'
  owners.set('ann', 'a')
  const { id } = await a.sandboxes.acquire('ann')
  await a.sandboxes.maintain()
  await expect.poll(() => stateOf(id), PATIENCE).toBe('paused')
  a.hands.crash()
  const b = controller('b', { lookEveryMs: 20, idle: { pauseAfterMs: 0, stopAfterMs: 200 } })
  await b.sandboxes.maintain()
  await sleep(300)
  expect(await stateOf(id)).toBe('paused')
  owners.delete('ann')
  await expect.poll(() => stateOf(id), PATIENCE).toBe('stopped')
  expect(owners.get('ann')).toBe('b')
}, 60_000)

test('the limit of the host is shared: a controller without an idle sandbox asks the others, and is admitted at the next try', async () => {
  const host = { host: { sandboxes: 2 } }
  const [a, b] = [controller('a', host).sandboxes, controller('b', host).sandboxes]
  owners.set('ann', 'a').set('bob', 'a').set('cid', 'b')
  await a.acquire('ann')
  await a.acquire('bob')
  await expect(b.acquire('cid')).rejects.toMatchObject({ code: 'host_full' })
  expect(asked).toEqual(['b'])
  expect(await a.stopLongestIdle()).toBe(true)
  await b.acquire('cid')
  expect((await a.status('ann')).state).toBe('stopped')
}, 60_000)

/**
 * A ledger whose epochs are so far ahead; of a clock that is, or before its last changes were lost.
 */
const ahead = (ms: number): SandboxesOptions['ledger'] => ({
  ...fixture.ledger,
  nextEpoch: async () => Date.now() + ms,
})

test('a sandbox that has seen a greater number than the ledger is its owner’s all the same, and no one else’s', async () => {
  const a = controller('a', { ledger: ahead(600_000) })
  owners.set('ann', 'a')
  await a.sandboxes.acquire('ann')
  losses.get('a')?.('ann')
  owners.set('ann', 'b')
  const b = controller('b')
  expect((await sh(await b.sandboxes.acquire('ann'), 'echo here')).out).toBe('here\n')
  expect(await fixture.ledger.nextEpoch()).toBeGreaterThan(Date.now() + 590_000)
  await b.sandboxes.close()
  // A program that shares nothing gives way, as does one whose sandbox says what cannot be.
  const c = fixture.start({ ledger: ahead(0) })
  await expect(c.sandboxes.acquire('ann')).rejects.toMatchObject({ code: 'fenced' })
  owners.set('bob', 'a')
  const d = controller('a', { ledger: ahead(7_200_000) })
  await d.sandboxes.acquire('bob')
  losses.get('a')?.('bob')
  await expect(controller('a').sandboxes.acquire('bob')).rejects.toMatchObject({ code: 'fenced' })
}, 60_000)

test('an old owner that comes late takes a sandbox over for a moment, and its owner has it back', async () => {
  const b = controller('b').sandboxes
  owners.set('ann', 'b')
  const sandbox = await b.acquire('ann')
  // It believes what was true a moment ago.
  const late = fixture.start({
    share: {
      owns: () => true,
      leads: () => false,
      claim: async () => false,
      takeOver: async (userIds) => new Set(userIds),
      isElsewhere: async () => true,
      askForRoom: async () => {},
      onLost: () => {},
    },
  })
  const taken = await late.sandboxes.acquire('ann')
  await expect(sandbox.stat()).rejects.toMatchObject({ code: 'fenced' })
  await expect.poll(async () => (await b.status('ann')).connected, PATIENCE).toBe(true)
  await expect(taken.stat()).rejects.toMatchObject({ code: 'fenced' })
  await sleep(400)
  expect((await late.sandboxes.status('ann')).connected).toBe(false)
  expect((await b.status('ann')).connected).toBe(true)
}, 60_000)
