/** The contract of sealed secrets in every store. Part of the sessions contract. */
import { expect, test } from 'vitest'
import type { SessionStore } from '../../src/sessions/store.ts'

type SealedSecret = Parameters<SessionStore['people']['secrets']['put']>[1]

const MAX_SECRETS = 200

const sealed = (name: string, more: Partial<SealedSecret> = {}): SealedSecret => ({
  name,
  keyId: 'k1',
  sealed: Uint8Array.of(0, 1, 255),
  updatedAt: 7,
  ...more,
})

export function testSecrets(store: () => SessionStore): void {
  test('a secret is kept byte for byte, for one person, until it is replaced or removed', async () => {
    const { secrets } = store().people
    await secrets.put('ann', sealed('token'))
    await secrets.put('bob', sealed('token', { sealed: Uint8Array.of(9) }))
    expect(await secrets.get('ann', 'token')).toEqual(sealed('token'))
    expect(await secrets.get('ann', 'other')).toBeUndefined()
    await secrets.put('ann', sealed('token', { sealed: Uint8Array.of(2), keyId: 'k2', updatedAt: 8 }))
    expect(await secrets.get('ann', 'token')).toMatchObject({ keyId: 'k2', updatedAt: 8 })
    expect(await secrets.remove('ann', 'token')).toBe(true)
    expect(await secrets.remove('ann', 'token')).toBe(false)
    expect(await secrets.get('bob', 'token')).toMatchObject({ sealed: Uint8Array.of(9) })
  })

  test('names are listed without what they hold', async () => {
    const { secrets } = store().people
    await secrets.put('ann', sealed('b'))
    await secrets.put('ann', sealed('a', { updatedAt: 9 }))
    expect(await secrets.names('ann')).toEqual([
      { name: 'a', updatedAt: 9 },
      { name: 'b', updatedAt: 7 },
    ])
    expect(await secrets.names('bob')).toEqual([])
  })

  test('what another key has sealed can be found', async () => {
    const { secrets } = store().people
    await secrets.put('ann', sealed('a'))
    await secrets.put('bob', sealed('b', { keyId: 'k2' }))
    expect(await secrets.sealedOtherwise('k2', 10)).toEqual([{ ...sealed('a'), userId: 'ann' }])
  })

  test('a person has so many, and may still replace one', async () => {
    const { secrets } = store().people
    for (let n = 0; n < MAX_SECRETS; n++) await secrets.put('ann', sealed(`s${n}`))
    await expect(secrets.put('ann', sealed('more'))).rejects.toMatchObject({ code: 'too_large' })
    await secrets.put('ann', sealed('s0', { updatedAt: 8 }))
    await secrets.put('bob', sealed('more'))
  })
}
