import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Vault, createVault } from '../../src/people/vault.ts'

const key = (n: number): Uint8Array => new Uint8Array(32).fill(n)
const ann = { userId: 'ann', name: 'TOKEN' }
const seal = (vault: Vault, text: string, label = ann): [string, Uint8Array] => [
  vault.keyId,
  vault.seal(label, text),
]

describe('a sealed text', () => {
  test('opens to what it was, whatever it was, and shows nothing of it', () => {
    const vault = createVault([key(1)])
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', minLength: 12 }),
        fc.string(),
        fc.string(),
        (text, userId, name) => {
          const label = { userId, name }
          const sealed = vault.seal(label, text)
          expect(vault.open(label, vault.keyId, sealed)).toBe(Buffer.from(text).toString('utf8'))
          expect(Buffer.from(sealed).includes(Buffer.from(text))).toBe(false)
        },
      ),
    )
  })

  test('is another one each time', () => {
    const vault = createVault([key(1)])
    expect(vault.seal(ann, 'x')).not.toEqual(vault.seal(ann, 'x'))
  })

  test('is nobody else’s, and not another secret of the same person', () => {
    const vault = createVault([key(1)])
    const [keyId, sealed] = seal(vault, 'hidden')
    for (const label of [
      { ...ann, userId: 'bob' },
      { ...ann, name: 'OTHER' },
      { userId: 'an', name: 'nTOKEN' },
    ])
      expect(() => vault.open(label, keyId, sealed)).toThrow(/damaged/)
  })

  test('a changed byte is noticed, wherever it is', () => {
    const vault = createVault([key(1)])
    const [keyId, sealed] = seal(vault, 'hidden')
    for (let at = 0; at < sealed.length; at++) {
      const changed = Uint8Array.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => vault.open(ann, keyId, changed), `byte ${at}`).toThrow(/TOKEN is damaged/)
    }
    for (let length = 0; length < sealed.length; length++)
      expect(() => vault.open(ann, keyId, sealed.subarray(0, length))).toThrow(/damaged/)
  })

  test('an earlier key opens and no longer seals; an unknown one is named', () => {
    const old = createVault([key(1)])
    const both = createVault([key(2), key(1)])
    const [keyId, sealed] = seal(old, 'hidden')
    expect(both.open(ann, keyId, sealed)).toBe('hidden')
    expect(both.keyId).not.toBe(old.keyId)
    const [newId, newer] = seal(both, 'hidden')
    expect(() => old.open(ann, newId, newer)).toThrow(/another deployment key/)
    expect(Buffer.from(key(1)).toString('hex')).not.toContain(old.keyId)
  })
})
