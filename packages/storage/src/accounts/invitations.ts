/** Invitations by link: each makes one account, until it expires or is revoked. */
import { createHash } from 'node:crypto'
import type { Account } from '@sandlot/shared/account/api'
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import { role } from '@sandlot/shared/account/role'
import type { Invitation } from '@sandlot/shared/account/sign-in-api'
import type { Kysely, Selectable } from 'kysely'
import type { AccountsSchema } from '../tables/accounts.ts'
import type { NewUser } from '../tables/account-records.ts'
import type { TeamsStore } from './teams.ts'

const TOKEN_CHARS = 40

type NewInvitation = Pick<Invitation, 'role' | 'teams' | 'email' | 'createdBy' | 'expiresAt'>

export interface TakenInvitation {
  /** The only permitted address; null: any. */
  email: string | null
  /** Applies the role and the teams of the invitation. */
  give(user: Account): Promise<void>
  release(): Promise<void>
}

export interface InvitationsStore {
  /** The only time that the token is visible. */
  create(invitation: NewInvitation): Promise<Invitation & { token: string }>
  /** Newest first. */
  list(): Promise<Invitation[]>
  /** False: there is none. */
  revoke(id: string): Promise<boolean>
  /** Throws `forbidden` for a used, expired or unknown one. */
  look(token: string): Promise<Invitation>
  /**
   * Reserves it for a sign-in by a provider. Throws like `look`. Call `give` with the new account,
   * or `release` to make it usable again.
   */
  take(token: string): Promise<TakenInvitation>
  /** Throws like `look` and like creating a user; then it is usable again. */
  accept(token: string, user: Omit<NewUser, 'role'>): Promise<Account>
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

export function makeInvitations(
  db: Kysely<AccountsSchema>,
  createUser: (user: NewUser) => Promise<Account>,
  teams: TeamsStore,
): InvitationsStore {
  const look = (token: string) => findUsable(db, token)
  const joinTeams = async (teamIds: readonly string[], userId: string): Promise<void> => {
    const there = new Set((await teams.list()).map((team) => team.id))
    for (const team of teamIds) if (there.has(team)) await teams.setMember(team, userId, true)
  }
  return {
    look,
    async create(given) {
      const token = randomText(TOKEN_CHARS)
      const made = { ...given, id: `i_${randomText(20)}`, createdAt: Date.now(), usedBy: null }
      const row = { ...made, teams: JSON.stringify(made.teams), hash: hashOf(token) }
      await db.insertInto('invitation').values(row).execute()
      return { ...made, token }
    },
    async list() {
      const rows = await db.selectFrom('invitation').selectAll().orderBy('createdAt', 'desc').execute()
      return rows.map(toInvitation)
    },
    async revoke(id) {
      const { numDeletedRows } = await db.deleteFrom('invitation').where('id', '=', id).executeTakeFirst()
      return numDeletedRows > 0n
    },
    async take(token) {
      const invitation = await look(token)
      await reserve(db, token, invitation.id, 'a sign-in by a provider')
      return {
        email: invitation.email?.toLowerCase() ?? null,
        async give({ id, name }) {
          await db.updateTable('auth_user').set({ role: invitation.role }).where('id', '=', id).execute()
          await joinTeams(invitation.teams, id)
          await setUsedBy(db, invitation.id, name)
        },
        release: () => setUsedBy(db, invitation.id, null),
      }
    },
    async accept(token, user) {
      const { id, role: given, teams: teamIds, email } = await look(token)
      if (email !== null && email.toLowerCase() !== user.email.toLowerCase())
        throw new SandlotError('forbidden', 'This invitation is for another e-mail address.')
      if (email === null) await refuseAwaited(db, user.email)
      await reserve(db, token, id, user.name)
      try {
        const made = await createUser({ ...user, role: given })
        if (email === null) await db.insertInto('unproven_address').values({ userId: made.id }).execute()
        await joinTeams(teamIds, made.id)
        return made
      } catch (error) {
        await setUsedBy(db, id, null)
        throw error
      }
    },
  }
}

async function findUsable(db: Kysely<AccountsSchema>, token: string): Promise<Invitation> {
  const row = await db
    .selectFrom('invitation')
    .selectAll()
    .where('hash', '=', hashOf(token))
    .executeTakeFirst()
  if (row === undefined)
    throw new SandlotError('forbidden', 'This invitation is not known. It may have been revoked.')
  if (row.usedBy !== null)
    throw new SandlotError('forbidden', 'This invitation has been used already. Ask for another one.')
  if (row.expiresAt <= Date.now())
    throw new SandlotError('forbidden', 'This invitation has expired. Ask for another one.')
  return toInvitation(row)
}

async function setUsedBy(db: Kysely<AccountsSchema>, id: string, usedBy: string | null): Promise<void> {
  await db.updateTable('invitation').set({ usedBy }).where('id', '=', id).execute()
}

/** One of two concurrent calls gets it. */
async function reserve(db: Kysely<AccountsSchema>, token: string, id: string, by: string): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('invitation')
    .set({ usedBy: by })
    .where('id', '=', id)
    .where('usedBy', 'is', null)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) await findUsable(db, token)
}

/** Settings for an address belong only to its owner. */
async function refuseAwaited(db: Kysely<AccountsSchema>, email: string): Promise<void> {
  const awaited = await db
    .selectFrom('team_seed_member')
    .select('key')
    .where('key', '=', email.toLowerCase())
    .executeTakeFirst()
  if (awaited !== undefined)
    throw new SandlotError(
      'forbidden',
      'This address is expected to be invited by itself. Ask for an invitation for it.',
    )
}

function toInvitation(row: Selectable<AccountsSchema['invitation']>): Invitation {
  const { id, email, createdAt, createdBy, expiresAt, usedBy } = row
  const teams = JSON.parse(row.teams) as string[]
  return { id, role: role.parse(row.role), teams, email, createdAt, createdBy, expiresAt, usedBy }
}
