import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandlotError } from '@sandlot/shared/base/errors'
import { getMigrations } from 'better-auth/db/migration'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openAccounts } from '../../src/accounts/accounts.ts'
import { authOptions } from '../../src/accounts/auth-options.ts'
import { accountsMigrations } from '../../src/accounts/migrations.ts'
import type { AccountsSchema } from '../../src/tables/accounts.ts'
import { API_KEY_PREFIX } from '../../src/accounts/store.ts'
import type { AccountsStore } from '../../src/accounts/store.ts'
import type { SignedIn } from '../../src/tables/account-records.ts'
import { openStore, openStoreReader } from '../../src/database/open.ts'
import { onBoth } from '../support/databases.ts'

const options = { secret: '0123456789abcdefghijklmnopqrstuvwxyzABCDEF', publicUrl: 'http://127.0.0.1:8002' }
const ann = { name: 'Ann', email: 'ann@example.org', password: 'correct horse', role: 'member' as const }

const cookieOf = (signedIn: SignedIn): string =>
  signedIn.setCookies.map((cookie) => cookie.slice(0, cookie.indexOf(';'))).join('; ')

onBoth(({ name, fresh }) => {
  let where: string
  let accounts: AccountsStore

  beforeEach(async () => {
    where = await fresh()
    accounts = await openAccounts(where, options)
  })

  afterEach(() => accounts.close())

  // Both have the same tables, and better-auth takes what it is given for SQLite.
  test.runIf(name === 'SQLite')('the migrations give better-auth all that it wants', async () => {
    const { db, close } = await openStore<AccountsSchema>(await fresh(), 'accounts', accountsMigrations)
    const { toBeAdded, toBeCreated, toBeAddedIndexes } = await getMigrations(authOptions(db, options))
    await close()
    expect({ toBeAdded, toBeCreated, toBeAddedIndexes }).toEqual({
      toBeAdded: [],
      toBeCreated: [],
      toBeAddedIndexes: [],
    })
  })

  test('settings that sign-in cannot work with leave no lock behind', async () => {
    const path = await fresh()
    const broken = { ...options, publicUrl: undefined as unknown as string }
    await expect(openAccounts(path, broken)).rejects.toThrow(TypeError)
    const opened = await openAccounts(path, { ...options, waitMs: 0 })
    await opened.close()
  })

  describe('users', () => {
    test('the first administrator is made once, also when two try together', async () => {
      expect(await accounts.users.hasAny()).toBe(false)
      const tries = await Promise.allSettled([
        accounts.users.createFirstAdministrator(ann),
        accounts.users.createFirstAdministrator({ ...ann, email: 'bob@example.org' }),
      ])
      expect(tries.map((one) => one.status)).toEqual(['fulfilled', 'rejected'])
      expect(tries[0]).toMatchObject({ value: { role: 'admin', email: 'ann@example.org' } })
      expect(tries[1]).toMatchObject({ reason: { code: 'conflict' } })
      expect(await accounts.users.hasAny()).toBe(true)
    })

    // A file has one service.
    test.runIf(name === 'PostgreSQL')('… also when two services try together', async () => {
      const other = await openAccounts(where, options)
      try {
        const tries = await Promise.allSettled([
          accounts.users.createFirstAdministrator(ann),
          other.users.createFirstAdministrator({ ...ann, email: 'bob@example.org' }),
        ])
        expect(tries.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
        expect(await accounts.users.list()).toHaveLength(1)
      } finally {
        await other.close()
      }
    })

    test('a failed first try does not block the next', async () => {
      await expect(
        accounts.users.createFirstAdministrator({ ...ann, email: 'nonsense' }),
      ).rejects.toMatchObject({
        code: 'bad_request',
      })
      await expect(accounts.users.createFirstAdministrator(ann)).resolves.toMatchObject({ role: 'admin' })
    })

    test('one account for one address, in any case', async () => {
      await accounts.users.create(ann)
      await expect(accounts.users.create({ ...ann, email: 'ANN@example.org' })).rejects.toMatchObject({
        code: 'conflict',
      })
    })

    test('passwords are kept as argon2id', async () => {
      await accounts.users.create(ann)
      const { db, close } = await openStore<{ auth_account: { password: string } }>(
        where,
        'accounts',
        accountsMigrations,
      )
      const rows = await db.selectFrom('auth_account').select('password').execute()
      await close()
      expect(rows[0]?.password).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    })
  })

  describe('sign-ins', () => {
    test('signs in, is found by the cookie, and is gone after signing out', async () => {
      const made = await accounts.users.create(ann)
      const signedIn = await accounts.signIns.signIn(
        { email: 'Ann@Example.org', password: ann.password },
        { ip: '192.0.2.7', userAgent: 'test' },
      )
      expect(signedIn.account).toEqual(made)
      expect(signedIn.setCookies.join()).toMatch(/sandlot\.session_token=.*HttpOnly; SameSite=Lax/)
      const cookie = cookieOf(signedIn)
      expect(await accounts.signIns.find(cookie)).toMatchObject({
        account: made,
        signInId: signedIn.signInId,
      })

      const out = await accounts.signIns.signOut(cookie)
      expect(out.signInId).toBe(signedIn.signInId)
      expect(out.setCookies.join()).toContain('Max-Age=0')
      expect(await accounts.signIns.find(cookie)).toBeUndefined()
      expect(await accounts.signIns.signOut(cookie)).toMatchObject({ signInId: undefined })
    })

    test('an unknown address and a wrong password are refused alike', async () => {
      await accounts.users.create(ann)
      const wrong = accounts.signIns.signIn({ email: ann.email, password: 'wrong password' }, {})
      const unknown = accounts.signIns.signIn({ email: 'eve@example.org', password: 'wrong password' }, {})
      const [a, b] = await Promise.allSettled([wrong, unknown])
      expect(a).toMatchObject({ status: 'rejected', reason: { code: 'unauthenticated' } })
      expect(b).toEqual(a)
    })

    test.each([
      ['nothing', ''],
      ['another cookie', 'theme=dark'],
      ['a made-up token', 'sandlot.session_token=abc.def'],
      ['a token with a foreign signature', 'sandlot.session_token=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.AAAA'],
    ])('finds nobody by %s', async (_what, cookie) => {
      expect(await accounts.signIns.find(cookie)).toBeUndefined()
    })

    test('a cookie survives a restart, and not another secret', async () => {
      await accounts.users.create(ann)
      const cookie = cookieOf(await accounts.signIns.signIn(ann, {}))
      await accounts.close()
      accounts = await openAccounts(where, options)
      expect(await accounts.signIns.find(cookie)).toBeDefined()
      await accounts.close()
      accounts = await openAccounts(where, {
        ...options,
        secret: options.secret.toUpperCase(),
      })
      expect(await accounts.signIns.find(cookie)).toBeUndefined()
    })

    test('a new password ends every sign-in but a new one in place of the one that asked', async () => {
      await accounts.users.create(ann)
      const [here, there] = [await accounts.signIns.signIn(ann, {}), await accounts.signIns.signIn(ann, {})]
      const key = await accounts.keys.create(here.account.id, 'laptop')
      const change = { current: ann.password, password: 'battery staple' }
      const wrong = accounts.passwords.change(cookieOf(here), { ...change, current: 'wrong password' })
      await expect(wrong).rejects.toMatchObject({ code: 'forbidden' })
      const short = accounts.passwords.change(cookieOf(here), { ...change, password: 'short' })
      await expect(short).rejects.toMatchObject({ code: 'bad_request' })
      await expect(accounts.passwords.change('', change)).rejects.toMatchObject({ code: 'unauthenticated' })
      expect(await accounts.signIns.find(cookieOf(there))).toBeDefined()

      const after = await accounts.passwords.change(cookieOf(here), change)
      expect(after.account).toEqual(here.account)
      expect(after.signInId).not.toBe(here.signInId)
      expect(await accounts.signIns.find(cookieOf(after))).toMatchObject({ signInId: after.signInId })
      for (const old of [here, there]) expect(await accounts.signIns.find(cookieOf(old))).toBeUndefined()
      await expect(accounts.signIns.signIn(ann, {})).rejects.toMatchObject({ code: 'unauthenticated' })
      await expect(accounts.signIns.signIn({ ...ann, password: change.password }, {})).resolves.toBeDefined()
      expect(await accounts.keys.find(key.key)).toBeDefined()
    })

    test('a sign-in that was under way when the password changed has ended, or been refused', async () => {
      const { id } = await accounts.users.create(ann)
      const here = await accounts.signIns.signIn(ann, {})
      const begun: string[] = []
      /** Sign-ins with the initial password, from before `change` until after it. */
      const meanwhile = async <T>(credentials: typeof ann, change: () => Promise<T>): Promise<T> => {
        const over = new AbortController()
        const tries = Array.from({ length: 4 }, async () => {
          while (!over.signal.aborted)
            await accounts.signIns.signIn(credentials, {}).then(
              (signedIn) => begun.push(cookieOf(signedIn)),
              (error: unknown) => expect(error).toMatchObject({ code: 'unauthenticated' }),
            )
        })
        const changed = await change()
        over.abort()
        await Promise.all(tries)
        return changed
      }
      const password = 'battery staple'
      const change = { current: ann.password, password }
      const after = await meanwhile(ann, () => accounts.passwords.change(cookieOf(here), change))
      expect(await accounts.signIns.find(cookieOf(after))).toBeDefined()
      expect(begun).not.toEqual([])
      for (const cookie of begun) expect(await accounts.signIns.find(cookie)).toBeUndefined()
      await meanwhile({ ...ann, email: 'Ann@Example.org', password }, () => accounts.passwords.reset(id))
      for (const cookie of begun) expect(await accounts.signIns.find(cookie)).toBeUndefined()
    })

    test('of two changes of one password at once the second is refused', async () => {
      await accounts.users.create(ann)
      const [here, there] = [await accounts.signIns.signIn(ann, {}), await accounts.signIns.signIn(ann, {})]
      const change = (from: SignedIn, password: string): Promise<SignedIn> =>
        accounts.passwords.change(cookieOf(from), { current: ann.password, password })
      const tries = await Promise.allSettled([
        change(here, 'battery staple'),
        change(there, 'staple battery'),
      ])
      const refused = tries.filter((one) => one.status === 'rejected')
      expect(refused).toEqual([expect.objectContaining({ reason: expect.any(SandlotError) })])
      for (const one of tries)
        if (one.status === 'fulfilled') expect(await accounts.signIns.find(cookieOf(one.value))).toBeDefined()
    })

    test('cookies are Secure behind https', async () => {
      await accounts.close()
      accounts = await openAccounts(where, {
        ...options,
        publicUrl: 'https://chat.example.org',
      })
      await accounts.users.create(ann)
      const { setCookies } = await accounts.signIns.signIn(ann, {})
      expect(setCookies.join()).toMatch(/^__Secure-sandlot\.session_token=.*Secure/)
    })
  })

  test('a ticket is taken once and in its time, and one that nobody takes goes by itself', async () => {
    const { tickets } = accounts.services
    await tickets.put('one', 'what it is for', 60_000)
    const taken = await Promise.all([tickets.take('one'), tickets.take('one'), tickets.take('other')])
    expect(taken.filter((value) => value !== undefined)).toEqual(['what it is for'])
    await tickets.put('late', '', 0)
    await sleep(5)
    expect(await tickets.take('late')).toBeUndefined()
    await tickets.put('left', '', 0)
    await sleep(5)
    await tickets.put('new', '', 60_000)
    const { db, close } = await openStoreReader<AccountsSchema>(where, 'accounts', accountsMigrations)
    expect(await db.selectFrom('auth_verification').select('value').execute()).toHaveLength(1)
    await close()
  })

  describe('a person is removed', () => {
    const admin = { ...ann, role: 'admin' as const }

    test('with their sign-ins and keys, in one step; what is left to do is known until it is done', async () => {
      const [one, other] = [
        await accounts.users.create(ann),
        await accounts.users.create({ ...admin, email: 'bob@example.org' }),
      ]
      const cookie = cookieOf(await accounts.signIns.signIn(ann, {}))
      const { key } = await accounts.keys.create(one.id, 'laptop')
      const removal = await accounts.users.remove(one.id, 'keep')
      expect(removal).toMatchObject({ id: one.id, name: 'Ann', email: ann.email, data: 'keep', done: false })
      expect(await accounts.signIns.find(cookie)).toBeUndefined()
      expect(await accounts.keys.find(key)).toBeUndefined()
      await expect(accounts.signIns.signIn(ann, {})).rejects.toMatchObject({ code: 'unauthenticated' })
      expect(await accounts.users.list()).toEqual([other])
      await accounts.close()
      accounts = await openAccounts(where, options)
      expect(await accounts.removals.list()).toEqual([removal])
      await accounts.removals.done(removal)
      expect(await accounts.removals.list()).toEqual([{ ...removal, done: true }])
      const again = await accounts.users.create(ann)
      expect(again.id).not.toBe(one.id)
    })

    test('their files may be purged later; what is being purged is not kept any more', async () => {
      const { id } = await accounts.users.create(ann)
      await accounts.users.remove(id, 'keep')
      await accounts.removals.done({ id, data: 'keep' })
      expect(await accounts.users.remove(id, 'keep')).toMatchObject({ data: 'keep', done: true })
      expect(await accounts.users.remove(id, 'purge')).toMatchObject({ data: 'purge', done: false })
      await expect(accounts.users.remove(id, 'keep')).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('Ann are being deleted already'),
      })
      // Only the earlier request is done.
      await accounts.removals.done({ id, data: 'keep' })
      expect(await accounts.removals.list()).toMatchObject([{ data: 'purge', done: false }])
      await accounts.removals.done({ id, data: 'purge' })
      expect(await accounts.removals.list()).toEqual([])
      await expect(accounts.users.remove(id, 'purge')).rejects.toMatchObject({ code: 'not_found' })
    })

    test('what keeps it from being done is kept until it is, or something else is asked for', async () => {
      const { id } = await accounts.users.create(ann)
      expect(await accounts.users.remove(id, 'keep')).toMatchObject({ problem: null })
      await accounts.removals.failed({ id, data: 'keep' }, 'the engine is away')
      expect(await accounts.removals.list()).toMatchObject([{ done: false, problem: 'the engine is away' }])
      expect(await accounts.users.remove(id, 'keep')).toMatchObject({ problem: 'the engine is away' })
      await accounts.removals.done({ id, data: 'keep' })
      await accounts.removals.failed({ id, data: 'keep' }, 'too late')
      expect(await accounts.removals.list()).toMatchObject([{ done: true, problem: null }])
      expect(await accounts.users.remove(id, 'purge')).toMatchObject({ problem: null })
      await accounts.removals.failed({ id, data: 'keep' }, 'of what was asked for before')
      await accounts.removals.failed({ id, data: 'purge' }, 'x'.repeat(5_000))
      expect((await accounts.removals.list())[0]?.problem).toBe('x'.repeat(1_000))
    })

    test('but not the last administrator, also when two remove each other', async () => {
      const [one, other] = [
        await accounts.users.create(admin),
        await accounts.users.create({ ...admin, email: 'bob@example.org' }),
      ]
      const tries = await Promise.allSettled([one, other].map(({ id }) => accounts.users.remove(id, 'purge')))
      expect(tries.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      expect(tries).toContainEqual(
        expect.objectContaining({ reason: expect.objectContaining({ code: 'conflict' }) }),
      )
      expect(await accounts.users.list()).toHaveLength(1)
    })
  })

  test('a password that is reset is new, and ends the sign-ins', async () => {
    const { id } = await accounts.users.create(ann)
    const cookie = cookieOf(await accounts.signIns.signIn(ann, {}))
    const password = await accounts.passwords.reset(id)
    expect(await accounts.signIns.find(cookie)).toBeUndefined()
    await expect(accounts.signIns.signIn(ann, {})).rejects.toMatchObject({ code: 'unauthenticated' })
    await expect(accounts.signIns.signIn({ ...ann, password }, {})).resolves.toBeDefined()
    await expect(accounts.passwords.reset('nobody')).rejects.toMatchObject({ code: 'not_found' })
  })

  test.runIf(name === 'SQLite')('one process at a time has them open', async () => {
    await expect(openAccounts(where, { ...options, waitMs: 0 })).rejects.toMatchObject({ code: 'locked' })
    await accounts.close()
    accounts = await openAccounts(where, { ...options, waitMs: 0 })
  })

  describe('API keys', () => {
    test('is shown once, hashed at rest, found by its secret, and gone when deleted', async () => {
      const user = await accounts.users.create(ann)
      const key = await accounts.keys.create(user.id, 'laptop')
      expect(key.key).toMatch(/^sk-sandlot-[0-9a-z]{40}$/)
      expect(key.key.startsWith(key.prefix)).toBe(true)
      expect(await accounts.keys.find(key.key)).toEqual({
        account: user,
        keyId: key.id,
        keyName: 'laptop',
        scopes: ['chat', 'read', 'files', 'exec'],
      })
      const [listed] = await accounts.keys.list(user.id)
      expect(listed).toMatchObject({ id: key.id, name: 'laptop', prefix: key.prefix })
      expect(listed?.lastUsedAt).not.toBeNull()
      expect(JSON.stringify(listed)).not.toContain(key.key)
      const kept = name === 'SQLite' ? await readFile(`${where}-wal`, 'latin1') : ''
      expect(kept).not.toContain(key.key.slice(API_KEY_PREFIX.length + 4))

      expect(await accounts.keys.remove(user.id, key.id)).toBe(true)
      expect(await accounts.keys.remove(user.id, key.id)).toBe(false)
      expect(await accounts.keys.find(key.key)).toBeUndefined()
    })

    test('another user sees and deletes none of them', async () => {
      const user = await accounts.users.create(ann)
      const other = await accounts.users.create({ ...ann, email: 'bob@example.org' })
      const key = await accounts.keys.create(user.id, 'laptop')
      expect(await accounts.keys.list(other.id)).toEqual([])
      expect(await accounts.keys.remove(other.id, key.id)).toBe(false)
      expect(await accounts.keys.find(key.key)).toBeDefined()
    })

    test('an expired one finds no account, and says so', async () => {
      const user = await accounts.users.create(ann)
      const past = await accounts.keys.create(user.id, 'old', { scopes: ['read'], expiresAt: Date.now() - 1 })
      await expect(accounts.keys.find(past.key)).rejects.toMatchObject({ code: 'unauthenticated' })
      const next = await accounts.keys.create(user.id, 'new', { expiresAt: Date.now() + 60_000 })
      expect(await accounts.keys.find(next.key)).toBeDefined()
    })

    test('an unknown key finds no account', async () => {
      expect(await accounts.keys.find(`${API_KEY_PREFIX}${'a'.repeat(40)}`)).toBeUndefined()
      expect(await accounts.keys.find('')).toBeUndefined()
    })
  })
})
