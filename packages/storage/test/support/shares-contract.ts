/** The contract of shares in every sessions store. */
import type { Share } from '@sandlot/shared/chat/shares'
import { describe, expect, test } from 'vitest'
import { type ReaderOf, accessBy } from '../../src/shares/shares.ts'
import type { OpenedStore } from './contract.ts'

const NEVER: Omit<Share, 'id' | 'targetId'> = {
  kind: 'person',
  access: 'watch',
  mode: 'manual',
  mayApprove: false,
  createdAt: 1,
  expiresAt: null,
}

/** The store has the session `s` of `ann`. */
export function testShares(opened: () => OpenedStore): void {
  describe('shares', () => {
    const listed = async (who: ReaderOf): Promise<string[]> =>
      (await opened().reader.sessions.list(who)).map(({ id }) => id)

    test('one of the same person replaces it, and one of another chat is none of this', async () => {
      const { store, reader } = opened()
      await store.shares.put('s', { ...NEVER, id: 'one', targetId: 'bob' }, 'ann')
      const more = {
        ...NEVER,
        id: 'two',
        targetId: 'bob',
        access: 'take_part',
        mode: 'yolo',
        createdAt: 9,
      } as const
      expect(await store.shares.put('s', more, 'ann')).toEqual({ ...more, id: 'one', createdAt: 1 })
      expect(await reader.shares.of('s')).toEqual([{ ...more, id: 'one', createdAt: 1 }])
      expect([...(await reader.shares.ofAll(['s', 'another'])).keys()]).toEqual(['s'])
      expect((await reader.shares.ofAll([])).size).toBe(0)
      expect(await store.shares.remove('another', 'one')).toBeUndefined()
      expect(await store.shares.remove('s', 'one')).toMatchObject({ id: 'one', targetId: 'bob' })
      expect(await reader.shares.of('s')).toEqual([])
    })

    test('a chat is in the lists of those it is shared with, as long as it is', async () => {
      const { store } = opened()
      const future = Date.now() + 60_000
      await store.shares.put('s', { ...NEVER, id: 'a', targetId: 'bob', expiresAt: future }, 'ann')
      await store.shares.put('s', { ...NEVER, id: 'b', kind: 'team', targetId: 't_data' }, 'ann')
      await store.shares.put('s', { ...NEVER, id: 'c', targetId: 'cas', expiresAt: 1 }, 'ann')
      expect(await listed({ id: 'bob' })).toEqual(['s'])
      expect(await listed({ id: 'dan', teams: ['t_data', 't_ops'] })).toEqual(['s'])
      expect(await listed({ id: 'dan', teams: ['t_ops'] })).toEqual([])
      // A team is no person, and an expired share none.
      expect(await listed({ id: 't_data' })).toEqual([])
      expect(await listed({ id: 'cas' })).toEqual([])
      expect((await store.sessions.list('bob')).map(({ id }) => id)).toEqual([])
    })

    test('goes with its chat, and to another person', async () => {
      const { store, reader } = opened()
      await store.shares.put('s', { ...NEVER, id: 'a', targetId: 'bob' }, 'ann')
      await store.shares.put('s', { ...NEVER, id: 'b', targetId: 'cas' }, 'ann')
      expect(await store.shares.sharedOf('ann')).toEqual(['s'])
      const { epoch } = await store.log.takeOver('s')
      await store.shares.handOver('s', 'bob')
      await expect(store.log.checkOwner('s', epoch)).rejects.toMatchObject({ code: 'not_owner' })
      expect((await reader.shares.of('s')).map(({ targetId }) => targetId)).toEqual(['cas'])
      expect(await listed({ id: 'ann' })).toEqual([])
      expect(await listed({ id: 'bob' })).toEqual(['s'])
      await store.sessions.remove('s')
      expect(await reader.shares.of('s')).toEqual([])
      expect(await listed({ id: 'cas' })).toEqual([])
    })

    test('a snapshot is found by its secret until it is removed', async () => {
      const { store, reader } = opened()
      const shot = {
        id: 'x'.repeat(40),
        sessionId: 's',
        upTo: 3,
        outputs: true,
        createdAt: 5,
        expiresAt: null,
      }
      await store.shares.addSnapshot(shot, 'ann')
      expect(await reader.shares.snapshot(shot.id)).toEqual({ ...shot, title: '' })
      expect(await store.shares.removeSnapshot('another', shot.id)).toBe(false)
      expect(await store.shares.removeSnapshot('s', shot.id)).toBe(true)
      expect(await reader.shares.snapshot(shot.id)).toBeUndefined()
    })

    test('no chat, no share', async () => {
      const share = { ...NEVER, id: 'a', targetId: 'bob' }
      await expect(opened().store.shares.put('nowhere', share, 'ann')).rejects.toMatchObject({
        code: 'not_found',
      })
    })
  })
}

describe('access by shares', () => {
  test('of several each thing is as the most generous says, of those that hold', () => {
    const shares: Share[] = [
      { ...NEVER, id: 'a', targetId: 'bob', access: 'take_part', mode: 'auto-edit', expiresAt: 100 },
      { ...NEVER, id: 'b', kind: 'team', targetId: 't', mode: 'yolo', mayApprove: true },
    ]
    expect(accessBy(shares, { id: 'bob' }, 99)).toMatchObject({ access: 'take_part', mode: 'auto-edit' })
    expect(accessBy(shares, { id: 'bob' }, 100)).toBeUndefined()
    // Access `watch` has no mode.
    expect(accessBy(shares, { id: 'dan', teams: ['t'] }, 99)).toMatchObject({
      access: 'watch',
      mode: 'manual',
    })
    expect(accessBy(shares, { id: 'bob', teams: ['t'] }, 99)).toEqual({
      access: 'take_part',
      mode: 'auto-edit',
      mayApprove: true,
      expiresAt: 100,
    })
  })
})
