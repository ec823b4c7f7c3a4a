/** `session/prompt`, pending until the prompt has ended, and `session/cancel`. */
import { type AgentApp, methods } from '@agentclientprotocol/sdk'
import { foreignPromptMeta, promptMeta } from '@sandlot/shared/acp-meta'
import { SandlotError, messageOf } from '@sandlot/shared/errors'
import { newId } from '@sandlot/shared/ids'
import { takesImages } from '../../model/model.ts'
import { promptContent } from '../prompt-content.ts'
import { parseParams } from '../errors.ts'
import type { Serving } from '../serving.ts'
import type { Session } from '../../session/session.ts'
import type { PromptOptions } from '../../session/prompts.ts'
import { beginSlashCommand } from '../slash-commands.ts'

export function addPromptRequests(app: AgentApp, serving: Serving): void {
  const { parts, handled } = serving
  const { manager, log } = parts
  app
    .onRequest(
      methods.agent.session.prompt,
      handled(async ({ params, signal }) => {
        const { connection } = serving
        const user = connection.user(params._meta)
        const meta = connection.meta(promptMeta, params._meta)
        const foreign = connection.ours
          ? undefined
          : parseParams(foreignPromptMeta, params._meta ?? {}, '_meta')
        const onError = meta?.onError ?? foreign?.sandlot?.onError
        const { text, images } = promptContent(params.prompt, parts.takesImages)
        const begun = await connection.admit(params.sessionId, async () => {
          const session = await manager.get(user.id, params.sessionId)
          if (images.length > 0) refuseImages(session, meta?.whenBusy)
          connection.following(session)
          await connection.sayNotes(session)
          const command = connection.ours ? undefined : await beginSlashCommand(session, text, parts)
          if (command !== undefined) return command
          const messageId = newId('m')
          connection.owns(session.id, messageId)
          const accepted = await manager.prompt(user.id, session.id, text, {
            messageId,
            images,
            requestId: meta?.requestId,
            whenBusy: meta?.whenBusy,
            unattended: meta?.unattended,
            onError,
            modeCeiling: user.modeCeiling,
          })
          return { session, accepted }
        })
        if ('said' in begun) {
          await connection.asides.say(params.sessionId, await begun.said)
          return { stopReason: 'end_turn' as const }
        }
        const { session, accepted } = begun
        await connection.accepted(accepted.sessionId, accepted.promptId, meta?.requestId)
        // `$/cancel_request` is a Stop of what this request began, and of nothing else; a connection that closes is none.
        const stop = (): void => {
          if (connection.closed.aborted) return
          session
            .cancelPrompt(accepted.promptId)
            .catch((error: unknown) => log.warn({ error: messageOf(error) }, 'a prompt could not be stopped'))
        }
        signal.addEventListener('abort', stop, { once: true })
        // A request that was cancelled while it was being stored has told nobody.
        if (signal.aborted) stop()
        try {
          const end = await accepted.done
          // The answer comes behind the last update of the prompt.
          await connection.sentThrough(accepted.sessionId, end.seq)
          const { stopReason, promptId, reason } = end
          // One that knows this word of ours hears the reason too; others get what is in the protocol.
          if (!connection.ours)
            return { stopReason, ...(onError === undefined ? {} : { _meta: { sandlot: { reason } } }) }
          const duplicate = accepted.duplicate ? { duplicate: true } : {}
          return { stopReason, _meta: { sandlot: { promptId, reason, ...duplicate } } }
        } finally {
          signal.removeEventListener('abort', stop)
        }
      }),
    )
    .onNotification(methods.agent.session.cancel, async ({ params }) => {
      const { connection } = serving
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
}

/** Throws `bad_request` when a model that the message goes to takes no images. */
function refuseImages({ models }: Session, whenBusy: PromptOptions['whenBusy']): void {
  const { all, chosen, running } = models
  const next = all.find(({ name }) => name === chosen.model)
  // One that joins the running prompt is read by its model; by the next one's where that prompt ends before.
  const reading = whenBusy === 'queue' ? [next] : [next, running]
  const blind = reading.find((model) => model?.wire !== undefined && !takesImages(model))
  if (blind === undefined) return
  const instead = blind === next ? '; choose another model' : ', and it is still answering; wait for its end'
  throw new SandlotError(
    'bad_request',
    `${blind.name} takes no images${instead}, or send the message without them.`,
  )
}
