/** The requests that only our own service sends; `shared/acp-meta.ts` says what each means. */
import {
  type AgentUser,
  EXT,
  approvalsParams,
  approveParams,
  cancelCallParams,
  exportPromptParams,
  forkParams,
  renameParams,
  unqueueParams,
} from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import { pendingApprovals } from '@sandlot/shared/pending-approvals'
import { documentOf, exportPrompt, framesOf } from '../../replay/prompt-export.ts'
import type { RequestFrame } from '../../replay/mark.ts'
import type { Session } from '../../session/session.ts'
import { parseParams } from '../errors.ts'
import { GUEST_HAS_NO_CHATS } from './session.ts'
import type { ClientConnection } from '../connection.ts'
import type { AcpServerParts, ExtensionHandlers } from '../handler-context.ts'

export function extensionRequests(parts: AcpServerParts): ExtensionHandlers {
  /**
   * In its turn among what is asked of the session. A foreign client is the local user, whatever it
   * says.
   */
  const inSession = <T>(
    connection: ClientConnection,
    user: AgentUser,
    sessionId: string,
    work: (session: Session) => T | Promise<T>,
  ): Promise<T> => {
    const { id } = connection.ours ? user : connection.user({})
    return connection.runInOrder(sessionId, async () => work(await parts.manager.get(id, sessionId)))
  }
  return {
    [EXT.approve]: async ({ params, connection }) => {
      const { user, sessionId, toolCallId, optionId, ...more } = parseParams(
        approveParams,
        params,
        EXT.approve,
      )
      return inSession(connection, user, sessionId, (session) => session.answer(toolCallId, optionId, more))
    },
    [EXT.approvals]: async ({ params, connection }) => {
      const { user, sessionId } = parseParams(approvalsParams, params, EXT.approvals)
      return { approvals: await inSession(connection, user, sessionId, ({ log }) => pendingApprovals(log)) }
    },
    [EXT.cancelCall]: async ({ params, connection }) => {
      const { user, sessionId, toolCallId } = parseParams(cancelCallParams, params, EXT.cancelCall)
      await inSession(connection, user, sessionId, (session) => session.cancelCall(toolCallId))
      return {}
    },
    [EXT.unqueue]: async ({ params, connection }) => {
      const { user, sessionId, messageId } = parseParams(unqueueParams, params, EXT.unqueue)
      return { why: await inSession(connection, user, sessionId, (session) => session.withdraw(messageId)) }
    },
    [EXT.rename]: async ({ params, connection }) => {
      const { user, sessionId, title } = parseParams(renameParams, params, EXT.rename)
      await inSession(connection, user, sessionId, (session) => session.rename(title))
      return {}
    },
    [EXT.fork]: async ({ params, connection }) => {
      const { user, sessionId, promptId, where } = parseParams(forkParams, params, EXT.fork)
      if (connection.ours && user.role === 'guest') throw new SandlotError('forbidden', GUEST_HAS_NO_CHATS)
      const fork = await inSession(connection, user, sessionId, ({ userId }) =>
        parts.manager.fork(userId, sessionId, { promptId, where }),
      )
      return { sessionId: fork.id }
    },
    [EXT.exportPrompt]: async ({ params, connection }) => {
      const { user, sessionId, promptId } = parseParams(exportPromptParams, params, EXT.exportPrompt)
      // As it is now: it may grow while the record is made.
      const log = await inSession(connection, user, sessionId, (session) => [...session.log])
      const frames: [string, RequestFrame][] = []
      for (const hash of framesOf(log, promptId)) {
        const json = await parts.requestFrame?.(hash)
        if (json !== undefined) frames.push([hash, JSON.parse(json) as RequestFrame])
      }
      const record = await exportPrompt(log, promptId, new Map(frames))
      if (record === undefined) throw new SandlotError('not_found', 'There is no such prompt in this chat.')
      for await (const text of documentOf(record)) await connection.sendPiece(text)
      return {}
    },
    [EXT.metrics]: async () => {
      if (parts.metrics === undefined) throw new SandlotError('not_implemented', 'Nothing is counted here.')
      return parts.metrics()
    },
    [EXT.status]: async () => parts.status(),
  }
}
