/**
 * The first administrator. While there is no account, a token is kept in `keys/setup-token` (0600),
 * and every start prints its URL. Creating the administrator there deletes the token. Services that
 * share a database make the same token of the key that they share.
 */
import { createHmac } from 'node:crypto'
import type { Account, SetupRequest } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import { deleteSecret, ensureSecret, secretsEqual } from '@sandlot/shared/node/secret-file'

const TOKEN_NAME = 'setup-token'

export interface Setup {
  /** Undefined once there is an account. */
  readonly token: string | undefined
  /** Throws `forbidden` (wrong or used token), `conflict`, `bad_request`. */
  run(request: SetupRequest): Promise<Account>
  /** Another service has done it. */
  isDone(): void
}

/** `sharedKey`: of all services on one database; undefined: there is one service. */
export async function prepareSetup(
  accounts: AccountsStore,
  keysFolder: string,
  sharedKey?: string,
): Promise<Setup> {
  const done = await accounts.users.hasAny()
  if (done) await deleteSecret(keysFolder, TOKEN_NAME)
  const made = sharedKey && createHmac('sha256', sharedKey).update('set-up').digest('hex')
  let token = done ? undefined : (made ?? (await ensureSecret(keysFolder, TOKEN_NAME)))

  return {
    get token() {
      return token
    },
    async run({ token: given, ...user }) {
      if (token === undefined || !secretsEqual(token, given)) {
        throw new SandlotError(
          'forbidden',
          'This set-up link is no longer valid. Sandlot prints the current one when it starts.',
        )
      }
      const administrator = await accounts.users.createFirstAdministrator(user)
      token = undefined
      await deleteSecret(keysFolder, TOKEN_NAME)
      return administrator
    },
    isDone() {
      token = undefined
    },
  }
}
