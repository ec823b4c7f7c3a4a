/** A sign-in does not outlive its credential, at whichever service that was changed. */
import type { NewSecondFactor } from '@sandlot/shared/account/sign-in-api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openAccounts } from '../../src/accounts/accounts.ts'
import type { AccountsSchema } from '../../src/tables/accounts.ts'
import { accountsMigrations } from '../../src/accounts/migrations.ts'
import type { AccountsStore } from '../../src/accounts/store.ts'
import { SecondFactorNeeded, type SignedIn } from '../../src/tables/account-records.ts'
import { openStore } from '../../src/database/open.ts'
import { onBoth } from '../support/databases.ts'
import { codeOf, nextCode } from '../support/totp.ts'

const OPTIONS = { secret: '0123456789abcdefghijklmnopqrstuvwxyzABCDEF', publicUrl: 'http://127.0.0.1:8002' }
const ANN = { name: 'Ann', email: 'ann@example.org', password: 'correct horse', role: 'member' as const }
const NEW = 'battery staple'

const pairs = (setCookies: readonly string[]): string =>
  setCookies.map((cookie) => cookie.slice(0, cookie.indexOf(';'))).join('; ')
const cookieOf = ({ setCookies }: SignedIn): string => pairs(setCookies)

onBoth(({ name, fresh }) => {
  let where: string
  let here: AccountsStore
  /** A second service, if the database allows one. */
  let there: AccountsStore

  beforeEach(async () => {
    where = await fresh()
    here = await openAccounts(where, OPTIONS)
    there = name === 'SQLite' ? here : await openAccounts(where, OPTIONS)
  })
  afterEach(async () => {
    await here.close()
    if (there !== here) await there.close()
  })

  /** Cookies of sign-ins that ran there during `change`. */
  async function meanwhile(change: () => Promise<unknown>): Promise<string[]> {
    const begun: string[] = []
    const first = Promise.withResolvers<void>()
    const over = new AbortController()
    const tries = Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted)
        await there.signIns.signIn(ANN, {}).then(
          (signedIn) => {
            begun.push(cookieOf(signedIn))
            first.resolve()
          },
          (error: unknown) => {
            if (!(error instanceof SecondFactorNeeded))
              expect(error).toMatchObject({ code: 'unauthenticated' })
          },
        )
    })
    try {
      await first.promise
      await change()
    } finally {
      over.abort()
      await Promise.all(tries)
    }
    return begun
  }

  async function expectEnded(cookies: readonly string[]): Promise<void> {
    for (const cookie of cookies) expect(await here.signIns.find(cookie)).toBeUndefined()
  }

  test('a sign-in at another service while a person changes their password', async () => {
    await here.users.create(ANN)
    const asking = await here.signIns.signIn(ANN, {})
    let after: SignedIn | undefined
    const change = { current: ANN.password, password: NEW }
    await expectEnded(
      await meanwhile(async () => (after = await here.passwords.change(cookieOf(asking), change))),
    )
    expect(await there.signIns.find(cookieOf(after ?? asking))).toBeDefined()
    expect(await here.signIns.list(asking.account.id)).toHaveLength(1)
  })

  test('… while an administrator gives a new one', async () => {
    const { id } = await here.users.create(ANN)
    await expectEnded(await meanwhile(() => here.passwords.reset(id)))
    expect(await here.signIns.list(id)).toEqual([])
  })

  test('… while the person is removed', async () => {
    const { id } = await here.users.create(ANN)
    await expectEnded(await meanwhile(() => here.users.remove(id, 'keep')))
    expect(await here.signIns.list(id)).toEqual([])
  })

  async function startSecondFactor(): Promise<{ made: NewSecondFactor; asking: SignedIn }> {
    const asking = await here.signIns.signIn(ANN, {})
    return { made: await here.secondFactor.begin(cookieOf(asking), ANN.password), asking }
  }

  test('… while a second factor comes to be asked for', async () => {
    const { id } = await here.users.create(ANN)
    const { made, asking } = await startSecondFactor()
    let after: SignedIn | undefined
    await expectEnded(
      await meanwhile(async () => {
        after = await here.secondFactor.confirm(cookieOf(asking), codeOf(made.uri))
        await here.signIns.endOthers(id, after.signInId)
      }),
    )
    expect((await here.signIns.list(id)).map((one) => one.id)).toEqual([after?.signInId])
  })

  test('a code of an app counts once, at whichever service and however many ask at once', async () => {
    await here.users.create(ANN)
    const { made, asking } = await startSecondFactor()
    const used = codeOf(made.uri)
    const after = await here.secondFactor.confirm(cookieOf(asking), used)
    const half = async (service: AccountsStore): Promise<string> => {
      const needed: unknown = await service.signIns.signIn(ANN, {}).catch((error: unknown) => error)
      if (!(needed instanceof SecondFactorNeeded)) throw new Error('no code was asked for')
      return pairs(needed.setCookies)
    }
    const finish = async (service: AccountsStore, code: string) =>
      service.secondFactor.finish(await half(service), code, {})
    for (const service of [here, there])
      await expect(finish(service, used)).rejects.toMatchObject({ code: 'unauthenticated' })
    const next = nextCode(made.uri)
    const tries = await Promise.allSettled([here, there, here, there].map((one) => finish(one, next)))
    expect(tries.map(({ status }) => status).toSorted()).toEqual([
      'fulfilled',
      'rejected',
      'rejected',
      'rejected',
    ])
    await expect(there.secondFactor.disable(cookieOf(after), ANN.password, next)).rejects.toMatchObject({
      code: 'forbidden',
    })
  })

  test('a sign-in that waits for its code ends with the password that began it', async () => {
    const { id } = await here.users.create(ANN)
    const { made, asking } = await startSecondFactor()
    const after = await here.secondFactor.confirm(cookieOf(asking), codeOf(made.uri))
    const half = async (): Promise<string> => {
      const needed: unknown = await there.signIns.signIn(ANN, {}).catch((error: unknown) => error)
      if (!(needed instanceof SecondFactorNeeded)) throw new Error('no code was asked for')
      return pairs(needed.setCookies)
    }
    const [code = ''] = made.recoveryCodes
    const waiting = await half()
    await here.passwords.change(cookieOf(after), { current: ANN.password, password: NEW })
    await expect(there.secondFactor.finish(waiting, code, {})).rejects.toMatchObject({
      code: 'unauthenticated',
    })
    await here.passwords.reset(id)
    expect(await here.signIns.list(id)).toEqual([])
  })

  test('a person’s change of their password does not take back what an administrator gives meanwhile', async () => {
    const { id } = await here.users.create(ANN)
    const asking = await here.signIns.signIn(ANN, {})
    const [given, changed] = await Promise.allSettled([
      here.passwords.reset(id),
      there.passwords.change(cookieOf(asking), { current: ANN.password, password: NEW }),
    ])
    if (given.status === 'rejected') throw given.reason
    if (changed.status === 'rejected')
      expect(changed.reason).toMatchObject({ code: expect.stringMatching(/forbidden|unauthenticated/) })
    await expect(here.signIns.signIn({ ...ANN, password: given.value }, {})).resolves.toBeDefined()
  })

  test('a password by an administrator is one also where the person had none', async () => {
    const { id } = await here.users.create(ANN)
    const { db, close } = await openStore<AccountsSchema>(where, 'accounts', accountsMigrations)
    await db.updateTable('auth_account').set({ providerId: 'oidc' }).execute()
    await close()
    const password = await here.passwords.reset(id)
    await expect(here.signIns.signIn({ ...ANN, password }, {})).resolves.toMatchObject({ account: { id } })
    expect(await here.external.links(id)).toMatchObject([{ key: 'oidc' }])
  })
})
