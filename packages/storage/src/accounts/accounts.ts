/** accounts.db: opens it for its one writing process and answers `AccountsStore`. */
import { SandlotError } from '@sandlot/shared/errors'
import { openWriter } from '../database.ts'
import { makeAuth } from './auth.ts'
import type { AuthOptions } from './auth.ts'
import { createKey, deleteKey, findByKey, listKeys } from './keys.ts'
import { accountsMigrations } from './schema.ts'
import type { AccountsSchema } from './schema.ts'
import type { AccountsStore } from './store.ts'

/** Throws `StorageError` as `openWriter` does. */
export async function openAccounts(path: string, options: AuthOptions): Promise<AccountsStore> {
  const { db, close } = await openWriter<AccountsSchema>(path, accountsMigrations)
  const auth = makeAuth(db, options)
  const hasUsers = async (): Promise<boolean> =>
    (await db.selectFrom('auth_user').select('id').limit(1).executeTakeFirst()) !== undefined
  /** Set-ups wait for each other: hashing a password takes longer than the race between two of them. */
  let settingUp: Promise<unknown> = Promise.resolve()

  return {
    hasUsers,
    createUser: (user) => auth.createUser(user),
    async createFirstAdministrator(user) {
      const mine = settingUp.then(async () => {
        if (await hasUsers()) throw new SandlotError('conflict', 'This Sandlot has an administrator already.')
        return auth.createUser({ ...user, role: 'admin' })
      })
      settingUp = mine.then(
        () => undefined,
        () => undefined,
      )
      return mine
    },
    signIn: (credentials, from) => auth.signIn(credentials, from),
    async signOut(cookie) {
      const signedIn = await auth.find(cookie)
      return { signInId: signedIn?.signInId, setCookies: await auth.signOut(cookie) }
    },
    changePassword: (cookie, change) => auth.changePassword(cookie, change),
    findBySession: (cookie) => auth.find(cookie),
    findByKey: (secret) => findByKey(db, secret),
    createKey: (userId, name) => createKey(db, userId, name),
    listKeys: (userId) => listKeys(db, userId),
    deleteKey: (userId, id) => deleteKey(db, userId, id),
    async ping() {
      await db.selectFrom('auth_user').select('id').limit(1).execute()
    },
    close,
  }
}
