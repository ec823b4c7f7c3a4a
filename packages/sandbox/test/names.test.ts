import fc from 'fast-check'
import { expect, test } from 'vitest'

import {
  claimedName,
  freeUid,
  isDeploymentId,
  newSlotName,
  ownerTag,
  parseName,
  poolName,
  UID_RANGE,
} from '../src/names.ts'

const key = new Uint8Array(32).fill(7)
const deployments = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,39}$/)
const slots = fc.stringMatching(/^[a-z0-9]{8}$/)

test('a container name is read back as it was made', () => {
  fc.assert(
    fc.property(
      deployments,
      slots,
      fc.string({ minLength: 1 }),
      fc.integer({ min: 1, max: 1e9 }),
      (deployment, slot, user, n) => {
        const owner = ownerTag(key, user)
        expect(parseName(deployment, claimedName(deployment, slot, owner, n))).toEqual({
          kind: 'claimed',
          slot,
          owner,
          generation: n,
        })
        expect(parseName(deployment, poolName(deployment, slot))).toEqual({ kind: 'pool', slot })
      },
    ),
  )
})

test('a name of another deployment is not ours, even when one is the beginning of the other', () => {
  fc.assert(
    fc.property(deployments, deployments, slots, (mine, other, slot) => {
      fc.pre(mine !== other)
      const name = claimedName(other, slot, ownerTag(key, 'u'), 1)
      expect(parseName(mine, name)).toBeUndefined()
    }),
  )
})

test.each([
  'sbx-d-',
  'sbx-d-abcdefgh-',
  'sbx-d-abcdefgh-0123456789abcdef',
  'sbx-d-abcdefgh-0123456789abcdef-0',
  'sbx-d-ABCDEFGH',
  'other',
  '',
])('%j is no sandbox name', (name) => {
  expect(parseName('d', name)).toBeUndefined()
})

test('an owner tag distinguishes users and depends on the key', () => {
  expect(ownerTag(key, 'ann')).toMatch(/^[0-9a-f]{16}$/)
  expect(ownerTag(key, 'ann')).not.toBe(ownerTag(key, 'bob'))
  expect(ownerTag(key, 'ann')).not.toBe(ownerTag(new Uint8Array(32), 'ann'))
})

test('a slot name is eight letters and digits', () => {
  expect(newSlotName()).toMatch(/^[a-z0-9]{8}$/)
  expect(newSlotName()).not.toBe(newSlotName())
})

test('a free uid is in the range and not taken; none is left when all are', () => {
  const all = new Set(
    Array.from({ length: UID_RANGE.last - UID_RANGE.first + 1 }, (_, i) => UID_RANGE.first + i),
  )
  expect(freeUid(all)).toBeUndefined()
  all.delete(41_234)
  expect(freeUid(all)).toBe(41_234)
})

test.each([
  ['abc', true],
  ['a-1', true],
  ['', false],
  ['-a', false],
  ['A', false],
  ['a_b', false],
  ['x'.repeat(41), false],
])('deployment id %j: %s', (id, good) => {
  expect(isDeploymentId(id)).toBe(good)
})
