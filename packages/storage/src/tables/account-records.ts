/** Records of the accounts store for its callers. */
import type { Account } from '@sandlot/shared/account/api'

export interface NewUser {
  name: string
  email: string
  password: string
  role: Account['role']
}

/** The origin of a sign-in, stored with it. */
export interface Origin {
  ip?: string
  userAgent?: string
}

/** The user of a cookie. */
export interface SignedIn {
  account: Account
  /** Id of this sign-in; constant as long as it lasts. */
  signInId: string
  /**
   * `Set-Cookie` values to send with the response; empty unless the sign-in was created or
   * extended.
   */
  setCookies: string[]
}

/** The password was right; a code completes the sign-in, with these cookies. */
export class SecondFactorNeeded extends Error {
  override readonly name = 'SecondFactorNeeded'
  readonly setCookies: string[]

  constructor(setCookies: string[]) {
    super('a code is needed as well')
    this.setCookies = setCookies
  }
}
