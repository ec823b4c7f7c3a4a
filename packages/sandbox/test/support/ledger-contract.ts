import { afterEach, describe, expect, test } from 'vitest'

import type { LedgerSlot, SandboxLedger } from '../../src/ledger.ts'

export interface LedgerUnderTest {
  ledger: SandboxLedger
  /** Another ledger over the same data, as after a restart or in a second controller. */
  reopen: () => Promise<SandboxLedger>
  dispose: () => Promise<void>
}

/** A slot that is not claimed. */
export function warmSlot(slot: string, uid: number): LedgerSlot {
  return { slot, state: 'warm', uid, volume: `sbx-test-${slot}`, generation: 0, createdAt: 1_000 }
}

/** A slot that is a user's from the start. */
export function claimedSlot(slot: string, uid: number, userId: string): LedgerSlot {
  return { ...warmSlot(slot, uid), state: 'claimed', userId, claimedAt: 2_000 }
}

/** Contract of every `SandboxLedger`. An implementation's own test is a call of this. */
export function testLedger(name: string, make: () => Promise<LedgerUnderTest>): void {
  describe(`${name}: ledger contract`, () => {
    const made: LedgerUnderTest[] = []
    const fresh = async (): Promise<LedgerUnderTest> => {
      const under = await make()
      made.push(under)
      return under
    }
    afterEach(async () => {
      for (const under of made.splice(0)) await under.dispose()
    })

    test('a new ledger is empty', async () => {
      const { ledger } = await fresh()
      expect(await ledger.list()).toEqual([])
      expect(await ledger.find('ann')).toBeUndefined()
    })

    test('a slot is kept exactly as it was added, over a restart too', async () => {
      const { ledger, reopen } = await fresh()
      await ledger.add(warmSlot('aaaaaaaa', 30_000))
      await ledger.add(claimedSlot('bbbbbbbb', 30_001, 'ann'))
      const again = await reopen()
      expect(await again.list()).toEqual(
        expect.arrayContaining([warmSlot('aaaaaaaa', 30_000), claimedSlot('bbbbbbbb', 30_001, 'ann')]),
      )
      expect(await again.list()).toHaveLength(2)
      expect(await again.find('ann')).toEqual(claimedSlot('bbbbbbbb', 30_001, 'ann'))
    })

    test('a slot name, a uid and a user are in it at most once', async () => {
      const { ledger } = await fresh()
      await ledger.add(claimedSlot('aaaaaaaa', 30_000, 'ann'))
      await expect(ledger.add(warmSlot('aaaaaaaa', 30_001))).rejects.toMatchObject({ code: 'exists' })
      await expect(ledger.add(warmSlot('bbbbbbbb', 30_000))).rejects.toMatchObject({ code: 'exists' })
      await expect(ledger.add(claimedSlot('cccccccc', 30_002, 'ann'))).rejects.toMatchObject({
        code: 'exists',
      })
      expect(await ledger.list()).toHaveLength(1)
    })

    test('a claim makes a warm slot the user’s, once', async () => {
      const { ledger } = await fresh()
      await ledger.add(warmSlot('aaaaaaaa', 30_000))
      const claimed = await ledger.claim('aaaaaaaa', 'ann')
      expect(claimed).toMatchObject({ slot: 'aaaaaaaa', state: 'claimed', userId: 'ann', generation: 1 })
      expect(claimed.claimedAt).toBeGreaterThan(0)
      expect(await ledger.find('ann')).toEqual(claimed)
      expect(await ledger.claim('aaaaaaaa', 'ann')).toEqual(claimed)
    })

    test('a user who has a slot gets that one, and the other stays free', async () => {
      const { ledger } = await fresh()
      await ledger.add(claimedSlot('aaaaaaaa', 30_000, 'ann'))
      await ledger.add(warmSlot('bbbbbbbb', 30_001))
      expect(await ledger.claim('bbbbbbbb', 'ann')).toMatchObject({ slot: 'aaaaaaaa' })
      expect(await ledger.claim('bbbbbbbb', 'bob')).toMatchObject({ slot: 'bbbbbbbb', userId: 'bob' })
    })

    test('a slot of one user cannot be claimed by another', async () => {
      const { ledger } = await fresh()
      await ledger.add(claimedSlot('aaaaaaaa', 30_000, 'ann'))
      await expect(ledger.claim('aaaaaaaa', 'bob')).rejects.toMatchObject({ code: 'exists' })
      expect(await ledger.find('bob')).toBeUndefined()
    })

    test('exactly one of many users who claim one slot at once gets it', async () => {
      const { ledger } = await fresh()
      await ledger.add(warmSlot('aaaaaaaa', 30_000))
      const claims = await Promise.allSettled(
        Array.from({ length: 20 }, (_, n) => ledger.claim('aaaaaaaa', `user-${n}`)),
      )
      expect(claims.filter((claim) => claim.status === 'fulfilled')).toHaveLength(1)
    })

    test('a condemned slot can never be claimed, and a claimed one cannot be condemned', async () => {
      const { ledger, reopen } = await fresh()
      await ledger.add(warmSlot('aaaaaaaa', 30_000))
      await ledger.add(claimedSlot('bbbbbbbb', 30_001, 'ann'))
      expect(await ledger.condemn('aaaaaaaa')).toBe(true)
      expect(await ledger.condemn('aaaaaaaa')).toBe(true)
      expect(await ledger.condemn('bbbbbbbb')).toBe(false)
      expect(await ledger.condemn('zzzzzzzz')).toBe(false)
      await expect((await reopen()).claim('aaaaaaaa', 'bob')).rejects.toMatchObject({ code: 'exists' })
      expect((await ledger.list()).map((slot) => slot.state).toSorted()).toEqual(['claimed', 'condemned'])
    })

    test('a claim and a condemnation at once: exactly one happens', async () => {
      const { ledger, reopen } = await fresh()
      const second = await reopen()
      for (let n = 0; n < 10; n += 1) {
        const slot = `aaaaaaa${n}`
        await ledger.add(warmSlot(slot, 30_000 + n))
        const [claimed, condemned] = await Promise.all([
          ledger.claim(slot, `user-${n}`).then(
            () => true,
            () => false,
          ),
          second.condemn(slot),
        ])
        expect(claimed).toBe(!condemned)
      }
    })

    test('there are never more warm slots than asked for, with any number of controllers', async () => {
      const { ledger, reopen } = await fresh()
      const second = await reopen()
      await ledger.add(claimedSlot('bbbbbbbb', 31_000, 'ann'), 0)
      const added = await Promise.allSettled(
        Array.from({ length: 8 }, (_, n) =>
          (n % 2 ? ledger : second).add(warmSlot(`aaaaaaa${n}`, 30_000 + n), 3),
        ),
      )
      expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
      for (const result of added)
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'limit_reached' })
    })

    test('a volume is in one slot only', async () => {
      const { ledger } = await fresh()
      const ann = warmSlot('aaaaaaaa', 30_000)
      await ledger.add(ann)
      await expect(ledger.add({ ...warmSlot('bbbbbbbb', 30_001), volume: ann.volume })).rejects.toMatchObject(
        {
          code: 'exists',
        },
      )
      expect(await ledger.list()).toHaveLength(1)
    })

    test('a slot that is not there: typed errors, and release is idempotent', async () => {
      const { ledger } = await fresh()
      await expect(ledger.claim('zzzzzzzz', 'ann')).rejects.toMatchObject({ code: 'not_found' })
      await expect(ledger.nextGeneration('zzzzzzzz', 0)).rejects.toMatchObject({ code: 'not_found' })
      await expect(ledger.release('zzzzzzzz')).resolves.toBeUndefined()
    })

    test('the generation after the same one is the same for every caller, per slot, and stays', async () => {
      const { ledger, reopen } = await fresh()
      const second = await reopen()
      await ledger.add(warmSlot('aaaaaaaa', 30_000))
      await ledger.add(warmSlot('bbbbbbbb', 30_001))
      for (const after of [0, 1, 2]) {
        const numbers = await Promise.all(
          Array.from({ length: 10 }, (_, n) => (n % 2 ? ledger : second).nextGeneration('aaaaaaaa', after)),
        )
        expect(new Set(numbers)).toEqual(new Set([after + 1]))
      }
      expect(await ledger.nextGeneration('bbbbbbbb', 0)).toBe(1)
      const again = await reopen()
      expect(await again.nextGeneration('aaaaaaaa', 0)).toBe(3)
      expect(await again.nextGeneration('aaaaaaaa', 41)).toBe(42)
      const kept = new Map((await again.list()).map(({ slot, generation }) => [slot, generation]))
      expect(kept).toEqual(
        new Map([
          ['aaaaaaaa', 42],
          ['bbbbbbbb', 1],
        ]),
      )
    })

    test('epochs grow and are never the same twice, in two controllers and over a restart', async () => {
      const { ledger, reopen } = await fresh()
      const second = await reopen()
      const epochs = await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 ? ledger : second).nextEpoch()),
      )
      expect(new Set(epochs).size).toBe(20)
      const again = await reopen()
      expect(await again.nextEpoch()).toBeGreaterThan(Math.max(...epochs))
    })

    test('an epoch is greater than the one that a sandbox has seen, and the next ones too', async () => {
      const { ledger } = await fresh()
      const seen = Date.now() + 600_000
      expect(await ledger.nextEpoch(seen)).toBe(seen + 1)
      expect(await ledger.nextEpoch()).toBe(seen + 2)
      expect(await ledger.nextEpoch(seen)).toBe(seen + 3)
    })

    test('a ledger that was lost begins with a later epoch than the one before', async () => {
      const { ledger } = await fresh()
      const last = await ledger.nextEpoch()
      await expect.poll(() => Date.now()).toBeGreaterThan(last)
      const other = await fresh()
      expect(await other.ledger.nextEpoch()).toBeGreaterThan(last)
    })

    test('a released slot is removed, its uid free again', async () => {
      const { ledger } = await fresh()
      await ledger.add(claimedSlot('aaaaaaaa', 30_000, 'ann'))
      await ledger.release('aaaaaaaa')
      expect(await ledger.find('ann')).toBeUndefined()
      await ledger.add(claimedSlot('bbbbbbbb', 30_000, 'ann'))
      expect(await ledger.find('ann')).toMatchObject({ slot: 'bbbbbbbb' })
    })

    test('user ids of any kind come back as they are', async () => {
      const { ledger, reopen } = await fresh()
      const odd = '😀 "quoted" \\ \n __proto__'
      await ledger.add(claimedSlot('aaaaaaaa', 30_000, odd))
      const again = await reopen()
      expect((await again.find(odd))?.userId).toBe(odd)
    })
  })
}
