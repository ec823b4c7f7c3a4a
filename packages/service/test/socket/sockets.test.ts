/** Sockets of people whose sign-in or key has ended while they were being opened. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { expect, test } from 'vitest'
import { type Caller, isStillIn } from '../../src/auth/caller.ts'
import { CLOSE, Sockets } from '../../src/socket/sockets.ts'
import { ANN, waitFor } from '../support/harness.ts'

test('a socket that is added after the end of what it came by is closed, and no other one is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-sockets-'))
  const accounts = await openAccounts(join(folder, 'accounts.db'), {
    secret: 'x'.repeat(32),
    publicUrl: 'http://x',
  })
  const account = await accounts.users.create({ ...ANN, role: 'member' })
  const bySignIn = async (): Promise<Caller> => {
    const { signInId } = await accounts.signIns.signIn(ANN, {})
    return { account, from: {}, via: 'sign-in', signInId, setCookies: [] }
  }
  const byKey = async (): Promise<Caller> => {
    const { id, scopes } = await accounts.keys.create(account.id, 'a key')
    return { account, from: {}, via: 'key', keyId: id, scopes }
  }
  const [stays, ends, key, deleted] = [await bySignIn(), await bySignIn(), await byKey(), await byKey()]
  if (ends.via === 'sign-in') await accounts.signIns.end(account.id, ends.signInId)
  if (deleted.via === 'key') await accounts.keys.remove(account.id, deleted.keyId)
  const sockets = new Sockets(
    () => undefined,
    () => undefined,
    (caller) => isStillIn(accounts, caller),
  )
  const closed: [Caller, number][] = []
  for (const caller of [stays, ends, key, deleted])
    sockets.add({ caller, send: () => undefined, close: (code) => void closed.push([caller, code]) })
  await waitFor(() => closed.length >= 2)
  // Asked of the same database one after another: what comes later has come.
  await accounts.ping()
  expect(new Map(closed)).toEqual(
    new Map([
      [ends, CLOSE.signedOut],
      [deleted, CLOSE.signedOut],
    ]),
  )
  await accounts.close()
  await rm(folder, { recursive: true })
})
