/** ACP v1 over one stream: requests in, sessions asked, errors with safe texts out. */
import { isAbsolute } from 'node:path/posix'
import {
  type AgentConnection,
  PROTOCOL_VERSION,
  type SessionModeState,
  type Stream,
  agent,
  methods,
} from '@agentclientprotocol/sdk'
import {
  type AgentStatus,
  EXT,
  approveParams,
  cancelCallParams,
  loadSessionMeta,
  newSessionMeta,
  promptMeta,
} from '@sandlot/shared/acp-meta'
import { SandlotError, messageOf } from '@sandlot/shared/errors'
import { MODES, type Mode, mode as modeShape } from '@sandlot/shared/events'
import { newId } from '@sandlot/shared/ids'
import type { SessionManager } from '../session-manager.ts'
import type { Session } from '../session.ts'
import type { ToolLog } from '../tools/tool.ts'
import { WORKSPACE } from '../prompt.ts'
import { ClientConnection } from './connection.ts'
import { parseParams, toRequestError } from './errors.ts'
import { promptText } from './prompt-text.ts'

export interface AcpParts {
  manager: SessionManager
  /** Of a new session that does not say. */
  defaultMode: Mode
  status(): Promise<AgentStatus>
  version: string
  log: ToolLog
}

const MODE_NAMES: Record<Mode, { name: string; description: string }> = {
  manual: { name: 'Ask', description: 'Reading runs; everything else asks first.' },
  'auto-edit': { name: 'Auto-edit', description: 'Reading and editing files run; commands ask first.' },
  yolo: { name: 'Yolo', description: 'Everything runs without asking.' },
}

/** Serve one client until its stream ends. A client that leaves ends nothing. */
export function serveAcp(stream: Stream, parts: AcpParts): AgentConnection {
  const { manager, log } = parts
  // Assigned as soon as the connection is made, before its first message is handled.
  let connection: ClientConnection

  /** Wraps a handler: whatever it throws goes out as one of our errors. */
  const handled =
    <C extends object, R>(handle: (context: C) => Promise<R>) =>
    async (context: C): Promise<R> => {
      try {
        return await handle(context)
      } catch (error) {
        throw toRequestError(error, (bug) =>
          log.warn({ error: messageOf(bug), stack: stackOf(bug) }, 'a request failed'),
        )
      }
    }

  const app = agent({ name: 'sandlot' })
    .onConnect((made) => {
      connection = new ClientConnection(made.client, manager, made.signal, log)
    })
    .onRequest(
      methods.agent.initialize,
      handled(async ({ params }) => {
        connection.initialize(params.clientCapabilities)
        return {
          protocolVersion: PROTOCOL_VERSION,
          agentCapabilities: {
            loadSession: true,
            promptCapabilities: { image: false, audio: false, embeddedContext: true },
            mcpCapabilities: { http: false, sse: false },
            sessionCapabilities: { list: {}, close: {}, delete: {} },
            _meta: { sandlot: { version: 1, extensions: [EXT.approve, EXT.cancelCall, EXT.status] } },
          },
          authMethods: [],
          agentInfo: { name: 'sandlot', title: 'Sandlot', version: parts.version },
        }
      }),
    )
    .onRequest(
      methods.agent.session.new,
      handled(async ({ params }) => {
        const user = connection.user(params._meta)
        const meta = connection.meta(newSessionMeta, params._meta)
        const cwd = checkedCwd(params.cwd)
        if (meta?.mode !== undefined && !allows(user.modeCeiling, meta.mode)) {
          throw new SandlotError(
            'forbidden',
            `Your administrator allows no mode above “${user.modeCeiling}”.`,
          )
        }
        const wanted = meta?.mode ?? parts.defaultMode
        const mode = allows(user.modeCeiling, wanted) ? wanted : (user.modeCeiling ?? wanted)
        const chosen = meta?.sessionId === undefined ? {} : { sessionId: meta.sessionId }
        const session = await manager.create({ userId: user.id, cwd, mode, ...chosen })
        connection.follow(session, 0)
        return { sessionId: session.id, modes: modesOf(session, user.modeCeiling) }
      }),
    )
    .onRequest(
      methods.agent.session.load,
      handled(async ({ params }) => {
        const user = connection.user(params._meta)
        const after = connection.meta(loadSessionMeta, params._meta)?.after ?? 0
        checkedCwd(params.cwd)
        const session = await manager.get(user.id, params.sessionId)
        const seq = await connection.follow(session, after).ready
        return { modes: modesOf(session, user.modeCeiling), _meta: { sandlot: { seq } } }
      }),
    )
    .onRequest(
      methods.agent.session.list,
      handled(async ({ params }) => {
        const user = connection.user(params._meta)
        const before = params.cursor == null ? undefined : checkedCursor(params.cursor)
        const rows = await manager.list(user.id, before)
        const last = rows.at(-1)
        return {
          sessions: rows
            .filter((row) => params.cwd == null || row.cwd === params.cwd)
            .map((row) => ({
              sessionId: row.id,
              cwd: row.cwd,
              title: row.title,
              updatedAt: new Date(row.updatedAt).toISOString(),
            })),
          nextCursor: last === undefined || rows.length < manager.pageSize ? null : String(last.updatedAt),
        }
      }),
    )
    .onRequest(
      methods.agent.session.close,
      handled(async ({ params }) => {
        const user = connection.user(params._meta)
        await connection.admit(params.sessionId, () => manager.close(user.id, params.sessionId))
        connection.unfollow(params.sessionId)
        return {}
      }),
    )
    .onRequest(
      methods.agent.session.delete,
      handled(async ({ params }) => {
        const user = connection.user(params._meta)
        await connection.admit(params.sessionId, () => manager.delete(user.id, params.sessionId))
        connection.unfollow(params.sessionId)
        return {}
      }),
    )
    .onRequest(
      methods.agent.session.setMode,
      handled(async ({ params }) => {
        const user = connection.user(params._meta)
        const modeId = parseParams(modeShape, params.modeId, 'modeId')
        await connection.admit(params.sessionId, async () => {
          const session = await manager.get(user.id, params.sessionId)
          await session.setMode(modeId, user.modeCeiling)
        })
        return {}
      }),
    )
    .onRequest(
      methods.agent.session.prompt,
      handled(async ({ params, signal }) => {
        const user = connection.user(params._meta)
        const meta = connection.meta(promptMeta, params._meta)
        const text = promptText(params.prompt)
        const { session, accepted } = await connection.admit(params.sessionId, async () => {
          const session = await manager.get(user.id, params.sessionId)
          connection.following(session)
          if (!connection.ours && session.seq === 0 && session.cwd !== WORKSPACE) {
            await connection.say(session.id, outsideText(session.cwd))
          }
          const messageId = newId('m')
          connection.owns(session.id, messageId)
          const accepted = await manager.prompt(user.id, session.id, text, {
            messageId,
            ...(meta?.requestId === undefined ? {} : { requestId: meta.requestId }),
            ...(meta?.whenBusy === undefined ? {} : { whenBusy: meta.whenBusy }),
            ...(meta?.unattended === undefined ? {} : { unattended: meta.unattended }),
            ...(user.modeCeiling === undefined ? {} : { modeCeiling: user.modeCeiling }),
          })
          return { session, accepted }
        })
        await connection.accepted(accepted.sessionId, accepted.promptId, meta?.requestId)
        // `$/cancel_request` is a Stop; a connection that closes is not.
        const stop = (): void => {
          if (connection.closed.aborted) return
          session
            .cancel()
            .catch((error: unknown) => log.warn({ error: messageOf(error) }, 'a prompt could not be stopped'))
        }
        signal.addEventListener('abort', stop, { once: true })
        try {
          const end = await accepted.done
          // The answer comes behind the last update of the prompt.
          if (accepted.sessionId === session.id) await connection.following(session).sentThrough(end.seq)
          const duplicate = accepted.duplicate ? { duplicate: true } : {}
          return {
            stopReason: end.stopReason,
            _meta: { sandlot: { promptId: end.promptId, reason: end.reason, ...duplicate } },
          }
        } finally {
          signal.removeEventListener('abort', stop)
        }
      }),
    )
    .onNotification(methods.agent.session.cancel, async ({ params }) => {
      try {
        const user = connection.user(params._meta)
        await connection.admit(params.sessionId, async () => {
          const session = await manager.get(user.id, params.sessionId)
          await session.cancel()
        })
      } catch (error) {
        log.warn({ sessionId: params.sessionId, error: messageOf(error) }, 'a cancel had no effect')
      }
    })
    .onRequest(
      EXT.approve,
      (params) => params,
      handled(async ({ params }) => {
        const { user, sessionId, toolCallId, optionId, reason } = parseParams(
          approveParams,
          params,
          EXT.approve,
        )
        const session = await manager.get(connection.ours ? user.id : connection.user({}).id, sessionId)
        return session.answer(toolCallId, optionId, reason)
      }),
    )
    .onRequest(
      EXT.cancelCall,
      (params) => params,
      handled(async ({ params }) => {
        const { user, sessionId, toolCallId } = parseParams(cancelCallParams, params, EXT.cancelCall)
        const session = await manager.get(connection.ours ? user.id : connection.user({}).id, sessionId)
        await session.cancelCall(toolCallId)
        return {}
      }),
    )
    .onRequest(
      EXT.status,
      (params) => params,
      handled(async () => parts.status()),
    )
  return app.connect(stream)
}

function checkedCwd(cwd: string): string {
  if (!isAbsolute(cwd))
    throw new SandlotError('bad_request', `cwd must be an absolute path, not “${cwd}”; ours is ${WORKSPACE}.`)
  return cwd
}

function checkedCursor(cursor: string): number {
  if (!/^\d{1,16}$/.test(cursor)) throw new SandlotError('bad_request', 'This cursor is not one of ours.')
  return Number(cursor)
}

function allows(ceiling: Mode | undefined, mode: Mode): boolean {
  return ceiling === undefined || MODES.indexOf(mode) <= MODES.indexOf(ceiling)
}

function modesOf(session: Session, ceiling: Mode | undefined): SessionModeState {
  return {
    currentModeId: session.mode,
    availableModes: MODES.filter((mode) => allows(ceiling, mode)).map((id) => ({ id, ...MODE_NAMES[id] })),
  }
}

function outsideText(cwd: string): string {
  return `(I work in a sandbox of my own, in ${WORKSPACE}; it does not see your folder ${cwd}.)\n\n`
}

function stackOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? thrown.stack : undefined
}
