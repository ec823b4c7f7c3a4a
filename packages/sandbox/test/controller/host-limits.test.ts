import { setTimeout as sleep } from 'node:timers/promises'
import { randomBytes } from 'node:crypto'

import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { createDiskBreaker, type FreeDisk } from '../../src/controller/disk-breaker.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import type { RunningCommand, Sandbox } from '../../src/sandbox.ts'
import { type FakeFixture, fakeFixture } from '../support/fake-fixture.ts'

const MiB = 1024 * 1024

describe('the disk breaker', () => {
  const floor = { bytes: 100, files: 10 }

  test('opens below the floor, closes clearly above it, and says so once', async () => {
    const looks = fc.array(fc.record({ bytes: fc.nat(200), files: fc.nat(20) }), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(looks, async (seen) => {
        let free: FreeDisk = { bytes: 0, files: 0 }
        const told: boolean[] = []
        const breaker = createDiskBreaker({
          floor,
          measure: async () => free,
          onChange: (open) => told.push(open),
        })
        let open = false
        const expected: boolean[] = []
        for (free of seen) {
          await breaker.measure()
          const low = free.bytes < floor.bytes || free.files < floor.files
          const plenty = free.bytes >= floor.bytes * 1.25 && free.files >= floor.files * 1.25
          const now: boolean = open ? !plenty : low
          if (now !== open) expected.push(now)
          open = now
          expect(breaker.state().open).toBe(open)
          if (open) expect(() => breaker.check()).toThrow(/short of disk/)
          else breaker.check()
        }
        expect(told).toEqual(expected)
      }),
    )
  })

  test('when the disk cannot be seen any more it does not stay open for ever', async () => {
    const answers: (FreeDisk | undefined)[] = [{ bytes: 0, files: 0 }, undefined, undefined]
    const changes: boolean[] = []
    const breaker = createDiskBreaker({
      floor,
      measure: async () => answers.shift(),
      onChange: (open) => changes.push(open),
      blindMs: 50,
    })
    await breaker.measure()
    await breaker.measure()
    expect(breaker.state().open).toBe(true)
    await sleep(60)
    await breaker.measure()
    expect(breaker.state().open).toBe(false)
    expect(changes).toEqual([true, false])
  })

  test('an unseen disk changes nothing, and file systems without inodes have no floor for them', async () => {
    const answers: (FreeDisk | undefined | Error)[] = [
      { bytes: 0, files: Number.POSITIVE_INFINITY },
      undefined,
      new Error('gone'),
      { bytes: 200, files: Number.POSITIVE_INFINITY },
    ]
    const states: boolean[] = []
    const breaker = createDiskBreaker({
      floor,
      measure: async () => {
        const answer = answers.shift()
        if (answer instanceof Error) throw answer
        return answer
      },
      onChange: () => {},
    })
    while (answers.length > 0) {
      await breaker.measure()
      states.push(breaker.state().open)
    }
    expect(states).toEqual([true, true, true, false])
  })
})

describe('everybody’s sandboxes', () => {
  let fixture: FakeFixture
  beforeEach(async () => {
    fixture = await fakeFixture()
    // The first one compiles sbxd.
  }, 120_000)
  afterEach(() => fixture.dispose(), 60_000)

  const running = async (): Promise<number> =>
    (await fixture.engine.backend.list({})).filter(({ state }) => state === 'running').length
  const start = (sandbox: Sandbox, command: string): Promise<RunningCommand> =>
    sandbox.run({ id: randomBytes(16).toString('hex'), command, autoAcknowledge: true })

  test('an idle one makes room, a busy one never', async () => {
    const { sandboxes } = fixture.start({ host: { sandboxes: 2 } })
    const ann = await sandboxes.acquire('ann')
    const busy = await start(ann, 'sleep 1000')
    await sandboxes.acquire('bob')
    const eve = await sandboxes.acquire('eve')
    expect((await sandboxes.status('bob')).state).toBe('stopped')
    expect(await running()).toBe(2)
    const too = await start(eve, 'sleep 1000')
    await expect(sandboxes.acquire('bob')).rejects.toMatchObject({
      code: 'host_full',
      message: expect.stringContaining('SANDLOT_HOST_SANDBOXES'),
    })
    await too.cancel(0)
    await too.exit
    expect((await sandboxes.acquire('bob')).id).toBeDefined()
    expect((await sandboxes.status('eve')).state).toBe('stopped')
    await busy.cancel(0)
    expect((await busy.exit).cause).toBe('cancel')
  })

  test('many at once never pass the limit', async () => {
    const memoryBytes = DEFAULT_LIMITS.memoryBytes * 3
    const { sandboxes } = fixture.start({ host: { memoryBytes } })
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => sandboxes.acquire(`user-${n}`)),
    )
    expect(await running()).toBeLessThanOrEqual(3)
    expect(results.some(({ status }) => status === 'fulfilled')).toBe(true)
    for (const result of results)
      if (result.status === 'rejected')
        expect(result.reason).toMatchObject({
          code: 'host_full',
          message: expect.stringContaining('SANDLOT_HOST_MEMORY_MB'),
        })
  })

  test('a host that is short of disk: no new user, nothing grows, what is there can be deleted, then all is well', async () => {
    let free: FreeDisk = { bytes: 10_000 * MiB, files: 1e6 }
    const logged: string[] = []
    const { backend: whole } = fixture.engine
    const backend = { ...whole, inventory: { ...whole.inventory, hostDisk: async () => free } }
    const { sandboxes } = fixture.start({
      backend,
      host: { diskFloor: { bytes: 1000 * MiB, files: 1000 }, lookEveryMs: 10 },
      log: (message) => logged.push(message),
    })
    const ann = await sandboxes.acquire('ann')
    await ann.files.write('mine', new Uint8Array(10))
    const writer = await start(ann, 'while :; do head -c 100k /dev/zero >>big; done')
    free = { bytes: 500 * MiB, files: 1e6 }
    expect((await writer.exit).cause).toBe('disk_quota')
    expect(sandboxes.hostDisk()).toMatchObject({ open: true, message: expect.stringContaining('500 MiB') })
    await expect(sandboxes.acquire('bob')).rejects.toMatchObject({ code: 'host_disk_low' })
    expect((await sandboxes.acquire('ann')).disk).toMatchObject({ frozen: true })
    await expect(ann.files.write('more', new Uint8Array(10))).rejects.toMatchObject({ code: 'disk_quota' })
    await ann.files.remove('big')
    expect(Buffer.from(await ann.files.read('mine')).length).toBe(10)

    free = { bytes: 2000 * MiB, files: 1e6 }
    await expect.poll(() => sandboxes.hostDisk().open, { timeout: 15_000 }).toBe(false)
    await (await sandboxes.acquire('ann')).files.write('more', new Uint8Array(10))
    await sandboxes.acquire('bob')
    expect(logged.filter((line) => line.includes('disk'))).toEqual([
      'the host is short of disk: nothing may grow',
      'the host has disk space again',
    ])
  })

  test('a sandbox in use measures a host that is not visible', async () => {
    const { backend: whole } = fixture.engine
    const { hostDisk: _unseen, ...inventory } = whole.inventory
    const backend = { ...whole, inventory }
    const floor = { bytes: 2 ** 60, files: 0 }
    const { sandboxes } = fixture.start({ backend, host: { diskFloor: floor, lookEveryMs: 10 } })
    await sandboxes.acquire('ann')
    await expect.poll(() => sandboxes.hostDisk().open, { timeout: 15_000 }).toBe(true)
    expect(sandboxes.hostDisk().free?.bytes).toBeGreaterThan(0)
  })

  test('the status shows the usage and the limits of a sandbox', async () => {
    const { sandboxes } = fixture.start()
    const ann = await sandboxes.acquire('ann')
    await ann.files.write('file', new Uint8Array(100_000))
    await expect
      .poll(async () => (await sandboxes.status('ann')).stat?.disk, { timeout: 15_000 })
      .toMatchObject({ entries: 1, over: false, budget: { bytes: DEFAULT_LIMITS.diskBytes } })
  })
})
