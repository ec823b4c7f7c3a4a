/** `session/prompt`, pending until the prompt has ended, and `session/cancel`. */
import { type AgentApp, methods, type PromptRequest, type PromptResponse } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { GUEST_ERRORS } from '@sandlot/shared/base/guest-errors'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { newId } from '@sandlot/shared/base/ids'
import { promptContent } from '../prompt-content.ts'
import type { AskedPrompt } from '../connection.ts'
import type { HandlerContext } from '../handler-context.ts'
import { authorOf } from '../../session/access.ts'
import type { Session } from '../../session/session.ts'
import type { PromptOptions } from '../../session/intake.ts'

export function addPromptRequests(app: AgentApp, context: HandlerContext): void {
  const { parts, handled } = context
  const { manager, log } = parts
  app
    .onRequest(
      methods.agent.session.prompt,
      handled(({ params, signal }) => answerPrompt(context, params, signal)),
    )
    .onNotification(methods.agent.session.cancel, async ({ params }) => {
      const { connection } = context
      try {
        const user = connection.user(params._meta)
        await connection.runInOrder(params.sessionId, async () => {
          const { session } = await manager.open(user, params.sessionId, 'take_part')
          await session.cancel('cancelled', authorOf(user))
        })
      } catch (error) {
        log.warn({ sessionId: params.sessionId, error: messageOf(error) }, 'a cancel had no effect')
      }
    })
    .onNotification('*', async ({ method, params }) => {
      if (method === EXT.typing) await context.connection.typing(params)
    })
}

/** Resolves when the prompt has ended. */
async function answerPrompt(
  context: HandlerContext,
  params: PromptRequest,
  signal: AbortSignal,
): Promise<PromptResponse> {
  const { connection, parts } = context
  const user = connection.user(params._meta)
  const asked = connection.promptMeta(params._meta)
  const begun = await beginPrompt(context, params, user, asked)
  if (typeof begun === 'function') {
    await begun()
    return { stopReason: 'end_turn' as const }
  }
  const { session, accepted } = begun
  await connection.accepted(accepted.sessionId, accepted.promptId, asked.requestId)
  // `$/cancel_request` stops this request's prompt and nothing else; a disconnect stops nothing.
  const stop = (): void => {
    if (connection.closed.aborted) return
    session
      .cancelPrompt(accepted.promptId)
      .catch((error: unknown) => parts.log.warn({ error: messageOf(error) }, 'a prompt could not be stopped'))
  }
  signal.addEventListener('abort', stop, { once: true })
  // A request that was cancelled while it was being stored fires no event.
  if (signal.aborted) stop()
  try {
    const end = await accepted.done
    // The answer comes after the last update of the prompt.
    await connection.sentThrough(accepted.sessionId, end.seq)
    return connection.promptResponse({ ...end, duplicate: accepted.duplicate }, asked)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Stores the prompt, or begins the slash command that it is. */
async function beginPrompt(
  { connection, parts }: HandlerContext,
  params: PromptRequest,
  user: AgentUser,
  asked: AskedPrompt,
) {
  const { manager } = parts
  const { text, images } = promptContent(params.prompt, parts.takesImages)
  return connection.runInOrder(params.sessionId, async () => {
    const { session, access } = await manager.open(user, params.sessionId, 'take_part')
    // One of before they were a guest.
    if (user.role === 'guest' && access === 'owner') throw new SandlotError('forbidden', GUEST_ERRORS.chats)
    if (images.length > 0) refuseImages(session, asked.whenBusy)
    connection.ensureFollowed(session, user, access)
    const showResult = await connection.beforePrompt(session, text)
    if (showResult !== undefined) return showResult
    const messageId = newId('m')
    connection.suppressEcho(session.id, messageId)
    const accepted = await manager.promptBy(user, session.id, text, {
      messageId,
      images,
      requestId: asked.requestId,
      whenBusy: asked.whenBusy,
      unattended: asked.unattended,
      onError: asked.onError,
      follows: asked.follows,
      modeCeiling: access === 'owner' ? user.modeCeiling : parts.modeCeilingOf(session.userId, undefined),
    })
    return { session, accepted }
  })
}

/** Throws `bad_request` when a model that the message goes to takes no images. */
function refuseImages({ models }: Session, whenBusy: PromptOptions['whenBusy']): void {
  const { all, chosen, running } = models
  const next = all.find(({ name }) => name === chosen.model)
  // A message that joins the running prompt goes to its model, or to the next if that prompt ends
  // first.
  const reading = whenBusy === 'queue' ? [next] : [next, running]
  const blind = reading.find((model) => model?.images === false)
  if (blind === undefined) return
  const instead = blind === next ? '; choose another model' : ', and it is still answering; wait for its end'
  throw new SandlotError(
    'bad_request',
    `${blind.name} takes no images${instead}, or send the message without them.`,
  )
}
