/** Users' marks on chats: pinned, archived and seen, and their projects. */
import { SandlotError } from '@sandlot/shared/base/errors'
import { type ChatMarks, MAX_PROJECTS, type Project } from '@sandlot/shared/chat/chats'
import { MODES } from '@sandlot/shared/chat/mode'
import type { ExpressionBuilder, Kysely, Selectable, Transaction } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'

/** One user's marks on a chat. */
export interface ChatMark {
  pinned: boolean
  archived: boolean
  project: string | null
  /** Epoch milliseconds; 0: nothing seen. */
  seenAt: number
}

/** Filters; absent ones match everything. */
export interface MarksFilter {
  archived?: boolean | undefined
  pinned?: boolean | undefined
  project?: string | undefined
}

export interface ChatReads {
  /** Marks of this user on these chats. */
  marks(userId: string, sessionIds: readonly string[]): Promise<ReadonlyMap<string, ChatMark>>
  /** By their names. */
  projects(userId: string): Promise<Project[]>
  /** This user's project that contains a chat. */
  projectOf(userId: string, sessionId: string): Promise<Project | undefined>
}

export interface ChatRows extends ChatReads {
  /** Throws `not_found` for a project of another user. */
  mark(userId: string, marks: ChatMarks, at: number): Promise<void>
  /** Replaces one with the same id. Throws `conflict` (too many). */
  putProject(userId: string, project: Project): Promise<void>
  /** Its chats stay. False: this user has no such project. */
  removeProject(userId: string, id: string): Promise<boolean>
}

export function chatReads(db: Kysely<SessionsSchema>): ChatReads {
  return {
    async marks(userId, sessionIds) {
      if (sessionIds.length === 0) return new Map()
      const rows = await db
        .selectFrom('chat_marks')
        .selectAll()
        .where('user_id', '=', userId)
        .where('session_id', 'in', sessionIds)
        .execute()
      return new Map(
        rows.map((row) => [
          row.session_id,
          {
            pinned: row.pinned === 1,
            archived: row.archived === 1,
            project: row.project_id,
            seenAt: row.seen_at,
          },
        ]),
      )
    },
    async projects(userId) {
      const rows = await db.selectFrom('projects').selectAll().where('user_id', '=', userId).execute()
      return rows.map(toProject).toSorted((a, b) => a.name.localeCompare(b.name))
    },
    async projectOf(userId, sessionId) {
      const row = await db
        .selectFrom('projects')
        .innerJoin('chat_marks', 'chat_marks.project_id', 'projects.id')
        .selectAll('projects')
        .where('projects.user_id', '=', userId)
        .where('chat_marks.user_id', '=', userId)
        .where('chat_marks.session_id', '=', sessionId)
        .executeTakeFirst()
      return row === undefined ? undefined : toProject(row)
    },
  }
}

export function storedChats(db: Kysely<SessionsSchema>): ChatRows {
  const reads = chatReads(db)
  return {
    ...reads,
    mark: (userId, { sessionIds, pinned, archived, project, seen }, at) =>
      db.transaction().execute(async (trx) => {
        if (typeof project === 'string') {
          const theirs = await trx
            .selectFrom('projects')
            .select('id')
            .where('id', '=', project)
            .where('user_id', '=', userId)
            .executeTakeFirst()
          if (theirs === undefined) throw noProject()
        }
        const change = {
          pinned: pinned === undefined ? undefined : Number(pinned),
          archived: archived === undefined ? undefined : Number(archived),
          project_id: project,
          seen_at: seen === undefined ? undefined : seen ? at : 0,
        }
        const fresh = { pinned: 0, archived: 0, project_id: null, seen_at: 0 }
        for (const session_id of sessionIds)
          await trx
            .insertInto('chat_marks')
            .values({ user_id: userId, session_id, ...fresh, ...withoutAbsent(change) })
            .onConflict((conflict) => conflict.columns(['user_id', 'session_id']).doUpdateSet(change))
            .execute()
      }),
    putProject: (userId, project) =>
      db.transaction().execute(async (trx) => {
        const known = await chatReads(trx).projects(userId)
        if (known.length >= MAX_PROJECTS && !known.some(({ id }) => id === project.id))
          throw new SandlotError('conflict', `You have ${MAX_PROJECTS} projects. Remove one first.`)
        const { id, ...columns } = project
        await trx
          .insertInto('projects')
          .values({ id, user_id: userId, ...columns })
          .onConflict((conflict) =>
            conflict.column('id').doUpdateSet(columns).where('projects.user_id', '=', userId),
          )
          .execute()
      }),
    removeProject: (userId, id) =>
      db.transaction().execute(async (trx) => {
        const { numDeletedRows } = await trx
          .deleteFrom('projects')
          .where('id', '=', id)
          .where('user_id', '=', userId)
          .executeTakeFirstOrThrow()
        if (numDeletedRows === 0n) return false
        await trx.updateTable('chat_marks').set({ project_id: null }).where('project_id', '=', id).execute()
        return true
      }),
  }
}

/** Adds a new chat to this user's project. */
export async function addToProject(
  trx: Transaction<SessionsSchema>,
  userId: string,
  sessionId: string,
  project: string,
): Promise<void> {
  await trx
    .insertInto('chat_marks')
    .values({
      user_id: userId,
      session_id: sessionId,
      pinned: 0,
      archived: 0,
      project_id: project,
      seen_at: 0,
    })
    .execute()
}

/** `undefined` in an update does not change a column; in an insert it would be null. */
function withoutAbsent<T extends object>(values: T): Partial<{ [K in keyof T]: NonNullable<T[K]> }> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<{
    [K in keyof T]: NonNullable<T[K]>
  }>
}

export function noProject(): SandlotError {
  return new SandlotError('not_found', 'You have no such project.')
}

/** A condition on sessions by this user's marks. */
export function matchesMarks(userId: string, { archived, pinned, project }: MarksFilter) {
  return (query: ExpressionBuilder<SessionsSchema, 'sessions'>) => {
    const marked = query.selectFrom('chat_marks').select('session_id').where('user_id', '=', userId)
    return query.and([
      ...(archived === undefined
        ? []
        : [query('id', archived ? 'in' : 'not in', marked.where('archived', '=', 1))]),
      ...(pinned === undefined
        ? []
        : [query('id', pinned ? 'in' : 'not in', marked.where('pinned', '=', 1))]),
      ...(project === undefined ? [] : [query('id', 'in', marked.where('project_id', '=', project))]),
    ])
  }
}

function toProject({
  id,
  name,
  folder,
  instructions,
  mode,
  model,
}: Selectable<SessionsSchema['projects']>): Project {
  return { id, name, folder, instructions, mode: MODES.find((known) => known === mode) ?? null, model }
}

export async function addChatMarks({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('chat_marks')
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('session_id', 'text', (column) =>
      column.notNull().references('sessions.id').onDelete('cascade'),
    )
    .addColumn('pinned', 'integer', (column) => column.notNull())
    .addColumn('archived', 'integer', (column) => column.notNull())
    .addColumn('project_id', 'text')
    .addColumn('seen_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('chat_marks_key', ['user_id', 'session_id'])
    .execute()
  await schema.createIndex('chat_marks_by_session').on('chat_marks').column('session_id').execute()
  await schema.createIndex('chat_marks_by_project').on('chat_marks').column('project_id').execute()
  await schema
    .createTable('projects')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('folder', 'text', (column) => column.notNull())
    .addColumn('instructions', 'text', (column) => column.notNull())
    .addColumn('mode', 'text')
    .addColumn('model', 'text')
    .execute()
  await schema.createIndex('projects_by_user').on('projects').column('user_id').execute()
}

/** The end of a chat's last prompt, null for earlier ones. */
export async function addEnds({ schema }: Kysely<unknown>): Promise<void> {
  await schema.alterTable('sessions').addColumn('ended_reason', 'text').execute()
  await schema.alterTable('sessions').addColumn('ended_at', 'bigint').execute()
}
