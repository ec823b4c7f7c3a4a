/** A signed-in person as the agent gets to know them, and as others read them. */
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { Account } from '@sandlot/shared/account/api'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Author } from '@sandlot/shared/chat/shares'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import type { SignedIn } from '@sandlot/storage/tables/account-records'
import type { Caller } from './caller.ts'

/** With a caller also the address, which the agent writes into its audit log. */
export function agentUserOf(who: Account | Caller): AgentUser {
  const { account, from } = 'account' in who ? who : { account: who, from: undefined }
  const { id, name, role, teams } = account
  return { id, name, email: addressFor(account), role, teams, from }
}

/** The actor and address, as a line of the audit log has them. */
export function actorOf({ account, from }: Caller): Pick<NewAudit, 'who' | 'from'> {
  const { id, name, email } = account
  return { who: { id, name, email }, from }
}

/** The same where a sign-in begins or ends. */
export function signedInFrom(
  { account: { id, name, email }, signInId }: SignedIn,
  address: string,
): Pick<NewAudit, 'who' | 'from'> {
  return { who: { id, name, email }, from: { address, signIn: signInId } }
}

/** A person as a line of the audit log names them. */
export function userOf({ id, name, email }: Account): { id: string; name: string } {
  return { id, name: `${name} <${email}>` }
}

/** Settings for an address do not apply to a person who alone claims that address. */
export function addressFor({ email, unproven }: Account): string | undefined {
  return unproven === true ? undefined : email
}

/** By id, everybody as others read them. */
export async function authorsOf(accounts: Pick<AccountsStore, 'users'>): Promise<Map<string, Author>> {
  const users = await accounts.users.list()
  return new Map(users.map(({ id, name }) => [id, { id, name }]))
}
