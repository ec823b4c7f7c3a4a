/** Records of the accounts store as its callers see them. */
import type { Account } from '@sandlot/shared/account/api'

export interface NewUser {
  name: string
  email: string
  password: string
  role: Account['role']
}

/** Where a sign-in came from; kept beside it. */
export interface Origin {
  ip?: string
  userAgent?: string
}

/** Who a cookie belongs to. */
export interface SignedIn {
  account: Account
  /** Of this sign-in; the same as long as it lasts. */
  signInId: string
  /**
   * `Set-Cookie` values to send with the answer; empty unless the sign-in was prolonged or begun.
   */
  setCookies: string[]
}

/** The password was right; a code finishes the sign-in, with these cookies. */
export class SecondFactorNeeded extends Error {
  override readonly name = 'SecondFactorNeeded'
  readonly setCookies: string[]

  constructor(setCookies: string[]) {
    super('a code is needed as well')
    this.setCookies = setCookies
  }
}
