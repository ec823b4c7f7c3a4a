/** The requests that only our own service sends; `acp/meta.ts` of shared defines them. */
import { EXT } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Author } from '@sandlot/shared/chat/shares'
import { type Access, type Right, authorOf, requireRight } from '../../session/access.ts'
import { documentOf, exportPrompt } from '../../loop/prompt-export.ts'
import type { Session } from '../../session/session.ts'
import { actorOf } from '../actor.ts'
import type { ClientConnection } from '../connection.ts'
import type { AdminParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

interface Acting {
  access: Access
  author: Author | undefined
  actor: Pick<NewAudit, 'who' | 'from'>
}

export function extensionRequests(parts: AdminParts & ProtocolParts) {
  return {
    ...callRequests(parts),
    ...chatRequests(parts),
    ...sharingRequests(parts),
    [EXT.metrics]: () => parts.metrics(),
    [EXT.status]: async () => parts.status(),
  } satisfies Partial<ExtensionHandlers>
}

/** In its turn among what is asked of the session. */
function inSession<T>(
  parts: ProtocolParts,
  connection: ClientConnection,
  user: AgentUser,
  sessionId: string,
  right: Right,
  work: (session: Session, by: Acting) => T | Promise<T>,
): Promise<T> {
  return connection.runInOrder(sessionId, async () => {
    const { session, access } = await parts.manager.open(user, sessionId, right)
    return work(session, { access, author: authorOf(user), actor: actorOf(user) })
  })
}

/** Calls and their approvals, and queued messages. */
function callRequests(parts: ProtocolParts) {
  return {
    [EXT.approve]: async ({ params: { user, sessionId, toolCallId, optionId, ...more }, connection }) => {
      return inSession(
        parts,
        connection,
        user,
        sessionId,
        'approve',
        (session, { access, author, actor }) => {
          // Rules are the owner's: another's answer makes none that outlive the chat.
          const mayMakeRules = more.mayMakeRules && access === 'owner'
          const takesPart = access === 'owner' || access.access === 'take_part'
          return session.answer(toolCallId, optionId, { ...more, mayMakeRules, takesPart, author, actor })
        },
      )
    },
    [EXT.approvals]: async ({ params: { user, sessionId }, connection }) => {
      return {
        approvals: await inSession(parts, connection, user, sessionId, 'read', (session) =>
          session.waitingApprovals(),
        ),
      }
    },
    [EXT.cancelCall]: async ({ params: { user, sessionId, toolCallId }, connection }) => {
      await inSession(parts, connection, user, sessionId, 'take_part', (session) =>
        session.cancelCall(toolCallId),
      )
      return {}
    },
    [EXT.unqueue]: async ({ params: { user, sessionId, messageId }, connection }) => {
      const why = await inSession(parts, connection, user, sessionId, 'take_part', (session, { access }) => {
        const isTheirs = session.queuedBy(messageId)?.id === user.id
        if (access !== 'owner' && !isTheirs) requireRight(access, 'own')
        return session.withdraw(messageId)
      })
      return { why }
    },
  } satisfies Partial<ExtensionHandlers>
}

function chatRequests(parts: ProtocolParts) {
  return {
    [EXT.rename]: async ({ params: { user, sessionId, title }, connection }) => {
      await inSession(parts, connection, user, sessionId, 'own', (session) => session.rename(title))
      return {}
    },
    [EXT.fork]: async ({ params: { user, sessionId, promptId, where }, connection }) => {
      const fork = await inSession(parts, connection, user, sessionId, 'own', ({ userId }) =>
        parts.manager.fork(userId, sessionId, { promptId, where }),
      )
      return { sessionId: fork.id }
    },
    [EXT.exportPrompt]: async ({ params: { user, sessionId, promptId }, connection }) => {
      // Its current length: it may grow while the record is made.
      const log = await inSession(parts, connection, user, sessionId, 'own', (session) => [...session.log])
      const record = await exportPrompt(log, promptId)
      if (record === undefined) throw new SandlotError('not_found', 'There is no such prompt in this chat.')
      for await (const text of documentOf(record)) await connection.sendPiece(text)
      return {}
    },
  } satisfies Partial<ExtensionHandlers>
}

function sharingRequests(parts: ProtocolParts) {
  return {
    [EXT.shares]: async ({ params: { user, sessionId, ask }, connection }) => {
      return inSession(parts, connection, user, sessionId, 'own', (session, { author, actor }) =>
        parts.manager.shares.answer(session, ask, author, actor),
      )
    },
    [EXT.snapshots]: async ({ params: { user, sessionId, ask }, connection }) => {
      return inSession(parts, connection, user, sessionId, 'own', (session, { actor }) =>
        parts.manager.shares.answerSnapshots(session, ask, actor),
      )
    },
    [EXT.comment]: async ({ params: { user, sessionId, ...comment }, connection }) => {
      await inSession(parts, connection, user, sessionId, 'take_part', async (session, { author }) => {
        await parts.manager.shares.requireSeen(session, comment.mentions)
        await session.comment(comment, author)
      })
      return {}
    },
  } satisfies Partial<ExtensionHandlers>
}
