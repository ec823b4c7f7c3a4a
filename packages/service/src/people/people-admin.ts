/**
 * `./sandlot people`: changes accounts as a process in place of the service, without a sign-in.
 * Prints one line of JSON. A removal ends the account; the rest follows at the next start of the
 * service.
 */
import { existsSync } from 'node:fs'
import { EXT, settingsAnswer } from '@sandlot/shared/acp/meta'
import { removedData } from '@sandlot/shared/account/api'
import type { Account, Removal, UserList } from '@sandlot/shared/account/api'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { type AuditKind, type NewAudit, OPERATOR } from '@sandlot/shared/admin/audit'
import type { EffectiveSettings } from '@sandlot/shared/account/agent-settings'
import { role } from '@sandlot/shared/account/role'
import { openAccounts, readAccounts } from '@sandlot/storage/accounts/accounts'
import { isPostgres } from '@sandlot/storage/database/dialect'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import { StorageError } from '@sandlot/storage/storage-error'
import { openSessionReader } from '@sandlot/storage/store/open'
import { type AgentConnection, type AgentPlace, connectAgent } from '../agent/agent-client.ts'
import { userOf } from '../auth/agent-user.ts'
import { type ServiceConfig, readServiceConfig } from '../config.ts'
import { notifyServices } from '../peers/peer-services.ts'
import type { EndedForSockets } from '../socket/sockets.ts'
import { AGENT_TOKEN, ensureSecret } from '@sandlot/shared/node/secret-file'

type Answer =
  | ({ did: 'list' } & UserList)
  | { did: 'password'; person: Account; password: string }
  | { did: 'remove'; removal: Removal }
  | { did: 'role'; person: Account }
  | { did: 'show'; person: Account; teams: string[]; effective: EffectiveSettings }
  | {
      did: 'nothing'
      reason: 'no_deployment' | 'running' | 'not_running' | 'no_such_person' | 'refused' | 'other_version'
      message: string
    }

/** Exit code where nothing was changed; the reason is in the answer. */
const NOTHING_CHANGED = 3

/**
 * `list`, `show <who>`, `password <who>`, `role <who> <role>` or `remove <who> keep|purge`; `who`
 * is an id or an e-mail address.
 */
async function main([act = '', who = '', data]: readonly string[]): Promise<Answer> {
  const config = readServiceConfig()
  const { dataFolder, keysFolder, accounts: where, publicUrl } = config
  // Before the first start, or with another SANDLOT_DATA than Sandlot's: nothing is made by asking.
  if (!isPostgres(where) && !existsSync(where))
    return { did: 'nothing', reason: 'no_deployment', message: dataFolder }
  if (act === 'list' || act === 'show') return reading(config, act === 'list' ? undefined : who)
  const secret = await ensureSecret(keysFolder, 'service-cookies')
  const accounts = await opened(where, { secret, publicUrl: publicUrl ?? 'http://127.0.0.1' })
  if (accounts === undefined) return { did: 'nothing', reason: 'running', message: dataFolder }
  try {
    const person = await find(accounts, who)
    if (person === undefined) return { did: 'nothing', reason: 'no_such_person', message: who }
    const line = (what: AuditKind): NewAudit => ({ who: OPERATOR, what })
    const tell = (ended: EndedForSockets): Promise<void> => notifyServices(accounts.services, ended)
    if (act === 'remove') {
      const removal = await accounts.users.remove(person.id, removedData.parse(data), line('person_removed'))
      await tell({ what: 'person_removed', userId: person.id })
      return { did: 'remove', removal }
    }
    if (act === 'role' && 'role' in person) {
      const change = { role: role.parse(data) }
      const changed = await accounts.users.change(person.id, change, line('person_changed'))
      await tell({ what: 'person_changed', userId: person.id })
      return { did: 'role', person: changed }
    }
    if (act !== 'password' || !('role' in person))
      return { did: 'nothing', reason: 'no_such_person', message: who }
    const password = await accounts.passwords.reset(person.id)
    await tell({ what: 'sign_ins_ended', userId: person.id })
    await accounts.audit.write({ ...line('password_reset'), whom: userOf(person) })
    return { did: 'password', person, password }
  } catch (error) {
    if (!(error instanceof SandlotError)) throw error
    return { did: 'nothing', reason: 'refused', message: error.message }
  } finally {
    await accounts.close()
  }
}

/**
 * Read-only, so also beside a running service, which may be of another version than this program.
 */
async function reading(config: ServiceConfig, who: string | undefined): Promise<Answer> {
  try {
    const read = await readAccounts(config.accounts)
    return who === undefined ? { did: 'list', ...read } : await show(read, who, config)
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    if (error.code === 'newer_schema')
      return { did: 'nothing', reason: 'other_version', message: error.message }
    if (error.code !== 'not_migrated') throw error
    const message =
      'This Sandlot was upgraded and has not been started since. Start it once (where the older version still runs, end that first), then run this again.'
    return { did: 'nothing', reason: 'other_version', message }
  }
}

/** The effective settings of a person, from the running agent. */
async function show(
  { users, teams }: Awaited<ReturnType<typeof readAccounts>>,
  who: string,
  config: ServiceConfig,
): Promise<Answer> {
  const person = users.find(({ id, email }) => id === who || email === who.toLowerCase())
  if (person === undefined) return { did: 'nothing', reason: 'no_such_person', message: who }
  let agent: AgentConnection
  try {
    agent = await connectAgent(await agentPlace(config), () => undefined)
  } catch (error) {
    if (!(error instanceof SandlotError)) throw error
    return { did: 'nothing', reason: 'not_running', message: error.message }
  }
  try {
    const { id: userId, email } = person
    const answer = await agent.request(EXT.settings, {
      user: { id: 'operator', role: 'admin' },
      ask: { do: 'effective', userId, email, teams: person.teams },
    })
    const { effective } = settingsAnswer.parse(answer)
    if (effective === undefined) throw new Error('the agent has not said what holds')
    const names = teams.filter(({ id }) => person.teams.includes(id)).map(({ name }) => name)
    return { did: 'show', person, teams: names, effective }
  } finally {
    agent.close()
  }
}

/** The address of any agent that is alive. */
async function agentPlace({
  sessions,
  agentUrl,
  agentToken,
  keysFolder,
}: ServiceConfig): Promise<AgentPlace> {
  if (!isPostgres(sessions)) return { url: agentUrl }
  const reader = await openSessionReader(sessions)
  try {
    const living = (await reader.replicas.list()).find((replica) => replica.living)
    const token = agentToken ?? (await ensureSecret(keysFolder, AGENT_TOKEN))
    return living === undefined ? { url: agentUrl } : { ...living, token }
  } finally {
    await reader.close()
  }
}

/** Undefined while the service has them. */
async function opened(
  path: string,
  options: { secret: string; publicUrl: string },
): Promise<AccountsStore | undefined> {
  try {
    return await openAccounts(path, { ...options, waitMs: 0 })
  } catch (error) {
    if (error instanceof StorageError && error.code === 'locked') return undefined
    throw error
  }
}

/** By address only existing accounts: several removed ones may have had the same. */
async function find(accounts: AccountsStore, who: string): Promise<Account | Removal | undefined> {
  const users = await accounts.users.list()
  const removed = await accounts.removals.list()
  return (
    users.find(({ id, email }) => id === who || email === who.toLowerCase()) ??
    removed.find(({ id }) => id === who)
  )
}

if (import.meta.main) {
  try {
    const answer = await main(process.argv.slice(2))
    process.stdout.write(`${JSON.stringify(answer)}\n`)
    if (answer.did === 'nothing') process.exitCode = NOTHING_CHANGED
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
