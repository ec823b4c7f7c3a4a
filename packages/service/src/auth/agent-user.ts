/** A signed-in person as the agent gets to know them, and as others read them. */
import type { AgentUser } from '@sandlot/shared/acp-meta'
import type { Account } from '@sandlot/shared/api'
import type { Author } from '@sandlot/shared/team/shares'
import type { AccountsStore } from '@sandlot/storage/accounts/store'

export function agentUserOf(account: Account): AgentUser {
  const { id, name, role, teams } = account
  return { id, name, email: addressFor(account), role, teams }
}

/** What was set for an address is not for a person who alone says that it is theirs. */
export function addressFor({ email, unproven }: Account): string | undefined {
  return unproven === true ? undefined : email
}

/** By id, everybody as others read them. */
export async function authorsOf(accounts: Pick<AccountsStore, 'listUsers'>): Promise<Map<string, Author>> {
  const users = await accounts.listUsers()
  return new Map(users.map(({ id, name }) => [id, { id, name }]))
}
