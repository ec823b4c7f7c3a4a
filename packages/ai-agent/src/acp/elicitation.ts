/** `elicitation/create`: how a foreign client that shows forms is asked a question. The others get a permission request, or none. */
import { type AgentContext, type ClientCapabilities, methods } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/errors'
import { ANSWER_OPTION, DECLINE_OPTION, questionContent } from '@sandlot/shared/question'
import { z } from 'zod'
import type { PendingApproval } from '../session/approvals.ts'
import type { Session } from '../session/session.ts'
import { askPermission } from './permission.ts'

/** What the SDK does not check. */
const elicited = z.discriminatedUnion('action', [
  z.looseObject({ action: z.literal('accept'), content: questionContent.nullish() }),
  z.looseObject({ action: z.literal('decline') }),
  z.looseObject({ action: z.literal('cancel') }),
])

/**
 * Ask whatever waits, in the form that this client knows, and store the answer, unless another came first. Rejects as
 * `askPermission` does. A question that the client cannot show is answered as one that nobody can.
 */
export async function askClient(
  client: AgentContext,
  capabilities: ClientCapabilities | undefined,
  session: Session,
  pending: PendingApproval,
  withdrawn: AbortSignal,
): Promise<void> {
  const { toolCallId, options, question } = pending
  if (question === undefined) return askPermission(client, session, toolCallId, options, withdrawn)
  if (capabilities?.elicitation?.form == null) {
    const choices = options.filter(({ optionId }) => optionId !== ANSWER_OPTION)
    const choosable = choices.some(({ kind }) => kind === 'allow_once')
    return choosable
      ? askPermission(client, session, toolCallId, choices, withdrawn)
      : session.refuse(toolCallId, 'unattended')
  }
  const response: unknown = await client.request(
    methods.client.elicitation.create,
    { mode: 'form', sessionId: session.id, toolCallId, ...question },
    { cancellationSignal: withdrawn, stopWaitingOnCancel: true },
  )
  const answer = elicited.safeParse(response)
  if (!answer.success)
    throw new SandlotError('bad_request', 'The client’s answer to a question is not valid.')
  switch (answer.data.action) {
    case 'accept':
      await session.answer(toolCallId, ANSWER_OPTION, { content: answer.data.content ?? {} })
      break
    case 'decline':
      await session.answer(toolCallId, DECLINE_OPTION)
      break
    case 'cancel':
      await session.refuse(toolCallId, 'cancel')
  }
}
