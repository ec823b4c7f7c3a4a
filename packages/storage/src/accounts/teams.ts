/** Teams and their members. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import type { MemberSource, Team } from '@sandlot/shared/account/teams-api'
import type { Kysely } from 'kysely'
import type { AccountsSchema } from '../tables/accounts.ts'

const MAX_TEAMS = 1_000

export interface TeamsStore {
  /** By name, with their members. */
  list(): Promise<Team[]>
  /** Throws `conflict` for a name in use, in any case, and above `MAX_TEAMS`. */
  create(name: string): Promise<Team>
  /**
   * `was`: the name that the caller saw. Throws `not_found`, and `conflict` for a name in use or if
   * `was` has changed.
   */
  rename(id: string, name: string, was?: string): Promise<Team>
  /** With its memberships. Throws `not_found`. */
  remove(id: string): Promise<void>
  /**
   * By an administrator. Idempotent. Throws `not_found` for an unknown team or person, and
   * `conflict` for a member whom only sign-in groups can remove.
   */
  setMember(teamId: string, userId: string, on: boolean): Promise<Team>
  /**
   * By the groups of a sign-in: replaces those of earlier sign-ins. Unknown ids are ignored.
   * Returns true when their teams have changed.
   */
  setFromGroups(userId: string, teamIds: readonly string[]): Promise<boolean>
  /**
   * Adopts teams of the agent's configuration file with their ids, each only once; members are ids
   * and addresses, also of people without an account yet. Returns the members with one.
   */
  adopt(seeds: readonly TeamSeed[]): Promise<string[]>
}

interface TeamSeed {
  id: string
  name: string
  members: readonly string[]
}

export function makeTeams(db: Kysely<AccountsSchema>): TeamsStore {
  return {
    list: () => teamsWith(db),
    async create(name) {
      await refuseTaken(db, name)
      const id = `t_${randomText(20)}`
      const held = await db
        .selectFrom('team')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      if (held.count >= MAX_TEAMS)
        throw new SandlotError('conflict', `There are ${MAX_TEAMS} teams. Remove one that is not used.`)
      const made = await db
        .insertInto('team')
        .values({ id, name, nameKey: keyOf(name), createdAt: Date.now() })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst()
      // Another request may have taken the name since the check.
      if (made.numInsertedOrUpdatedRows === 0n) await refuseTaken(db, name)
      return { id, name, members: [] }
    },
    async rename(id, name, was) {
      const before = await findTeam(db, id)
      if (was !== undefined && before.name !== was)
        throw new SandlotError('conflict', `Another administrator has renamed this team to ${before.name}.`)
      await refuseTaken(db, name, id)
      await db
        .updateTable('team')
        .set({ name, nameKey: keyOf(name) })
        .where('id', '=', id)
        .where('name', '=', before.name)
        .execute()
      return findTeam(db, id)
    },
    async remove(id) {
      const { numDeletedRows } = await db.deleteFrom('team').where('id', '=', id).executeTakeFirst()
      if (numDeletedRows === 0n) throw noTeam()
    },
    setMember: (...args) => setMember(db, ...args),
    adopt: (seeds) =>
      db.transaction().execute(async (trx) => {
        const users = await trx.selectFrom('auth_user').select(['id', 'email']).execute()
        const ids = new Map(users.flatMap(({ id, email }) => [[id, id] as const, [email, id] as const]))
        for (const seed of seeds) await adoptOne(trx, seed, ids)
        const all = seeds.flatMap(({ members }) => members.flatMap((key) => ids.get(key) ?? []))
        return [...new Set(all)]
      }),
    setFromGroups: (...args) => setFromGroups(db, ...args),
  }
}

async function findTeam(db: Kysely<AccountsSchema>, id: string): Promise<Team> {
  const [found] = await teamsWith(db, id)
  if (found === undefined) throw noTeam()
  return found
}

async function refuseTaken(db: Kysely<AccountsSchema>, name: string, except?: string): Promise<void> {
  const taken = await db
    .selectFrom('team')
    .select(['id', 'name'])
    .where('nameKey', '=', keyOf(name))
    .executeTakeFirst()
  if (taken !== undefined && taken.id !== except)
    throw new SandlotError('conflict', `There is a team ${taken.name} already.`)
}

async function setMember(
  db: Kysely<AccountsSchema>,
  ...[teamId, userId, on]: Parameters<TeamsStore['setMember']>
): ReturnType<TeamsStore['setMember']> {
  const before = await findTeam(db, teamId)
  if (on) await addMember(db, teamId, userId)
  else {
    const sources = before.members.filter((member) => member.userId === userId)
    if (sources.length === 1 && sources[0]?.source === 'groups')
      throw new SandlotError(
        'conflict',
        `They are in ${before.name} by the groups of their sign-in, which alone can end it.`,
      )
    await db
      .deleteFrom('team_member')
      .where('teamId', '=', teamId)
      .where('userId', '=', userId)
      .where('source', '=', 'admin')
      .execute()
  }
  return findTeam(db, teamId)
}

function setFromGroups(
  db: Kysely<AccountsSchema>,
  ...[userId, teamIds]: Parameters<TeamsStore['setFromGroups']>
): ReturnType<TeamsStore['setFromGroups']> {
  return db.transaction().execute(async (trx) => {
    const before = await trx
      .selectFrom('team_member')
      .select(['teamId', 'source'])
      .where('userId', '=', userId)
      .execute()
    const known = await trx.selectFrom('team').select('id').execute()
    const said = new Set(teamIds)
    const now = known.flatMap(({ id }) => (said.has(id) ? [id] : []))
    await trx.deleteFrom('team_member').where('userId', '=', userId).where('source', '=', 'groups').execute()
    for (const teamId of now)
      await trx.insertInto('team_member').values({ teamId, userId, source: 'groups' }).execute()
    const byAdmin = before.flatMap(({ teamId, source }) => (source === 'admin' ? [teamId] : []))
    const teamsBefore = new Set(before.map(({ teamId }) => teamId))
    const teamsNow = new Set([...now, ...byAdmin])
    return teamsBefore.size !== teamsNow.size || [...teamsBefore].some((id) => !teamsNow.has(id))
  })
}

/** `ids`: people by id and address. */
async function adoptOne(
  trx: Kysely<AccountsSchema>,
  { id, name, members }: TeamSeed,
  ids: ReadonlyMap<string, string>,
): Promise<void> {
  const seeded = await trx
    .insertInto('team_seed')
    .values({ id })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  if (seeded.numInsertedOrUpdatedRows === 0n) return
  const taken = new Set((await trx.selectFrom('team').select('nameKey').execute()).map((row) => row.nameKey))
  let free = name
  for (let other = 2; taken.has(keyOf(free)); other++) free = `${name} (${other})`
  await trx
    .insertInto('team')
    .values({ id, name: free, nameKey: keyOf(free), createdAt: Date.now() })
    .execute()
  for (const key of new Set(members)) {
    const userId = ids.get(key)
    if (userId === undefined) await trx.insertInto('team_seed_member').values({ teamId: id, key }).execute()
    else await addMember(trx, id, userId)
  }
}

async function addMember(db: Kysely<AccountsSchema>, teamId: string, userId: string): Promise<void> {
  const person = await db.selectFrom('auth_user').select('id').where('id', '=', userId).executeTakeFirst()
  if (person === undefined) throw new SandlotError('not_found', 'There is no such person.')
  await db
    .insertInto('team_member')
    .values({ teamId, userId, source: 'admin' })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** By name. `only`: with this id. */
export async function teamsWith(db: Kysely<AccountsSchema>, only?: string): Promise<Team[]> {
  const rows = await db
    .selectFrom('team')
    .leftJoin('team_member', 'team_member.teamId', 'team.id')
    .select(['team.id', 'team.name', 'team_member.userId', 'team_member.source'])
    .$if(only !== undefined, (query) => query.where('team.id', '=', only ?? ''))
    .orderBy('team.nameKey')
    .orderBy('team.id')
    .orderBy('team_member.userId')
    .orderBy('team_member.source')
    .execute()
  return [...Map.groupBy(rows, ({ id }) => id)].map(([id, own]) => ({
    id,
    name: own[0]?.name ?? id,
    members: own.flatMap(({ userId, source }) => memberOf(userId, source)),
  }))
}

function memberOf(userId: string | null, source: MemberSource | null): Team['members'] {
  return userId === null || source === null ? [] : [{ userId, source }]
}

function noTeam(): SandlotError {
  return new SandlotError('not_found', 'There is no such team.')
}

function keyOf(name: string): string {
  return name.toLowerCase()
}
