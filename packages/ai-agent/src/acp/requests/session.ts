/** The requests about sessions themselves: made, shown again, listed, set, closed, deleted. */
import { isAbsolute } from 'node:path/posix'
import {
  type AgentApp,
  type McpServer,
  methods,
  type NewSessionRequest,
  type LoadSessionRequest,
  type ResumeSessionRequest,
  type ListSessionsRequest,
  type CloseSessionRequest,
  type DeleteSessionRequest,
  type SetSessionModeRequest,
  type SetSessionConfigOptionRequest,
} from '@agentclientprotocol/sdk'
import { newSessionMeta } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { GUEST_ERRORS } from '@sandlot/shared/base/guest-errors'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { Project } from '@sandlot/shared/chat/chats'
import { newId } from '@sandlot/shared/base/ids'
import { type Mode, isWithin, lowerMode, mode as modeShape } from '@sandlot/shared/chat/mode'
import { WORKSPACE } from '../../loop/system-prompt.ts'
import type { Session } from '../../session/session.ts'
import { configOptionsOf, modesOf, setConfigOption } from '../config-options.ts'
import { actorOf } from '../actor.ts'
import { parseParams } from '../errors.ts'
import type { HandlerContext } from '../handler-context.ts'

export function addSessionRequests(app: AgentApp, context: HandlerContext): void {
  const { handled } = context
  app
    .onRequest(
      methods.agent.session.new,
      handled(({ params }) => createSession(context, params)),
    )
    .onRequest(
      methods.agent.session.load,
      handled(({ params }) => loadSession(context, params)),
    )
    .onRequest(
      methods.agent.session.resume,
      handled(({ params }) => resumeSession(context, params)),
    )
    .onRequest(
      methods.agent.session.list,
      handled(({ params }) => listSessions(context, params)),
    )
    .onRequest(
      methods.agent.session.close,
      handled(({ params }) => closeSession(context, params)),
    )
    .onRequest(
      methods.agent.session.delete,
      handled(({ params }) => deleteSession(context, params)),
    )
    .onRequest(
      methods.agent.session.setMode,
      handled(({ params }) => setMode(context, params)),
    )
    .onRequest(
      methods.agent.session.setConfigOption,
      handled(({ params }) => setOption(context, params)),
    )
}

function settingsOf(session: Session, { modeCeiling }: AgentUser) {
  return { modes: modesOf(session, modeCeiling), configOptions: configOptionsOf(session, modeCeiling) }
}

async function createSession(context: HandlerContext, params: NewSessionRequest) {
  const { connection, parts } = context
  const { manager } = parts
  const user = connection.user(params._meta)
  if (user.role === 'guest') throw new SandlotError('forbidden', GUEST_ERRORS.chats)
  const meta = connection.meta(newSessionMeta, params._meta)
  const project = meta?.project === undefined ? undefined : await manager.project(user.id, meta.project)
  const cwd = project === undefined ? checkedCwd(params.cwd) : folderOf(project)
  refuseDirectories(params.additionalDirectories)
  refuseSse(params.mcpServers)
  const fallback = project?.mode ?? meta?.defaultMode ?? parts.defaultMode
  const mode = modeOfNew(meta?.mode, fallback, user.modeCeiling)
  const { sessionId = newId('s'), thoughtLevel } = meta ?? {}
  const model = meta?.model ?? manager.allowedModel(user.id, project?.model)
  const chosen = { model, thoughtLevel, project: project?.id }
  const session = await connection.runInOrder(sessionId, async () => {
    const made = await manager.create({ userId: user.id, cwd, mode, sessionId, ...chosen })
    connection.follow(made, 0, user, 'owner')
    connection.begin(made, params.mcpServers)
    return made
  })
  connection.offerCommands(session)
  return { sessionId, ...settingsOf(session, user) }
}

async function loadSession(context: HandlerContext, params: LoadSessionRequest) {
  const { connection } = context
  const { manager } = context.parts
  const user = connection.user(params._meta)
  const after = connection.eventsBefore(params._meta)
  checkedCwd(params.cwd)
  refuseDirectories(params.additionalDirectories)
  refuseSse(params.mcpServers)
  const { session, pump } = await connection.runInOrder(params.sessionId, async () => {
    const { session: found, access } = await manager.open(user, params.sessionId, 'read')
    const pump = connection.follow(found, after, user, access)
    connection.begin(found, params.mcpServers)
    return { session: found, pump }
  })
  // At the client's pace; its requests to the session need not wait for that.
  const seq = await pump.ready
  connection.offerCommands(session)
  return { ...settingsOf(session, user), ...connection.loadedMeta(seq) }
}

async function resumeSession(context: HandlerContext, params: ResumeSessionRequest) {
  const { connection } = context
  const { manager } = context.parts
  const user = connection.user(params._meta)
  checkedCwd(params.cwd)
  refuseDirectories(params.additionalDirectories)
  refuseSse(params.mcpServers)
  const session = await connection.runInOrder(params.sessionId, async () => {
    const { session: found, access } = await manager.open(user, params.sessionId, 'read')
    connection.ensureFollowed(found, user, access)
    connection.begin(found, params.mcpServers)
    return found
  })
  connection.offerCommands(session)
  return settingsOf(session, user)
}

async function listSessions(context: HandlerContext, params: ListSessionsRequest) {
  const { connection } = context
  const { manager } = context.parts
  const user = connection.user(params._meta)
  const before = params.cursor == null ? undefined : checkedCursor(params.cursor)
  const rows = await manager.list(user.id, before, params.cwd ?? undefined)
  const last = rows.at(-1)
  return {
    sessions: rows.map((row) => ({
      sessionId: row.id,
      cwd: row.cwd,
      title: row.title,
      updatedAt: new Date(row.updatedAt).toISOString(),
    })),
    nextCursor: last === undefined || rows.length < manager.pageSize ? null : String(last.updatedAt),
  }
}

async function closeSession(context: HandlerContext, params: CloseSessionRequest) {
  const { connection, parts } = context
  const { manager } = parts
  const user = connection.user(params._meta)
  await connection.runInOrder(params.sessionId, async () => {
    await manager.open(user, params.sessionId, 'own')
    const session = await manager.close(user.id, params.sessionId)
    // The outcomes of the calls of a prompt that this has stopped.
    await connection.sentThrough(session.id, session.seq)
    connection.unfollow(session.id)
    await parts.clientServers.leave(user.id, session.id)
  })
  return {}
}

async function deleteSession(context: HandlerContext, params: DeleteSessionRequest) {
  const { connection, parts } = context
  const { manager } = parts
  const user = connection.user(params._meta)
  await connection.runInOrder(params.sessionId, async () => {
    await manager.removal.delete(user.id, params.sessionId, {
      ...actorOf(user),
      what: 'chat_deleted',
      whom: { id: params.sessionId },
    })
    connection.unfollow(params.sessionId)
    await parts.clientServers.leave(user.id, params.sessionId)
  })
  return {}
}

async function setMode(context: HandlerContext, params: SetSessionModeRequest) {
  const { connection } = context
  const { manager } = context.parts
  const user = connection.user(params._meta)
  const modeId = parseParams(modeShape, params.modeId, 'modeId')
  await connection.runInOrder(params.sessionId, async () => {
    const { session } = await manager.open(user, params.sessionId, 'own')
    await session.setMode(modeId, user.modeCeiling)
  })
  return {}
}

async function setOption(context: HandlerContext, params: SetSessionConfigOptionRequest) {
  const { connection } = context
  const { manager } = context.parts
  const user = connection.user(params._meta)
  const configOptions = await connection.runInOrder(params.sessionId, async () => {
    const { session } = await manager.open(user, params.sessionId, 'own')
    await setConfigOption(session, user.modeCeiling, params)
    return configOptionsOf(session, user.modeCeiling)
  })
  return { configOptions }
}

/**
 * The mode that was asked for, else the highest that the ceiling allows up to `fallback`. Throws
 * `forbidden` when what was asked for is above it.
 */
export function modeOfNew(asked: Mode | undefined, fallback: Mode, ceiling: Mode | undefined): Mode {
  if (asked !== undefined && !isWithin(ceiling, asked))
    throw new SandlotError('forbidden', `Your administrator allows no mode above “${ceiling}”.`)
  return lowerMode(asked ?? fallback, ceiling)
}

function folderOf({ folder }: Project): string {
  return folder === '' ? WORKSPACE : `${WORKSPACE}/${folder}`
}

function checkedCwd(cwd: string): string {
  if (!isAbsolute(cwd))
    throw new SandlotError('bad_request', `cwd must be an absolute path, not “${cwd}”; ours is ${WORKSPACE}.`)
  return cwd
}

/**
 * We do not say that we can, so a client that knows better says itself which folder is left out.
 * One that asks all the same must not believe that the session sees them, and shows this to its
 * user.
 */
function refuseDirectories(directories: readonly string[] | null | undefined): void {
  if (directories == null || directories.length === 0) return
  throw new SandlotError(
    'bad_request',
    `A session has no folder but ${WORKSPACE} of its sandbox; open a single one, or leave additionalDirectories out.`,
  )
}

/** Before the session is made: we do not say that we can, so the client has to know. */
function refuseSse(servers: readonly McpServer[] | null | undefined): void {
  const names = (servers ?? []).flatMap((server) =>
    'type' in server && server.type === 'sse' ? [server.name] : [],
  )
  if (names.length === 0) return
  throw new SandlotError(
    'bad_request',
    `The SSE transport of MCP is not supported (${names.join(', ')}); name servers over streamable HTTP, or leave these out.`,
  )
}

function checkedCursor(cursor: string): number {
  if (!/^\d{1,16}$/.test(cursor)) throw new SandlotError('bad_request', 'This cursor is not one of ours.')
  return Number(cursor)
}
