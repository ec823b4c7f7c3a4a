/**
 * Approvals and questions for a foreign client: `elicitation/create` where it shows forms, else
 * `session/request_permission`. Our own service answers with `_sandlot/approve`.
 */
import {
  type AgentContext,
  type ToolCallUpdate,
  type ClientCapabilities,
  methods,
} from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { PermissionOption } from '@sandlot/shared/chat/sandlot-event'
import { z } from 'zod'
import type { Session } from '../../session/session.ts'
import { ANSWER_OPTION, DECLINE_OPTION, questionContent } from '@sandlot/shared/chat/question'
import type { PendingApproval } from '../../session/approvals.ts'

/** Checked here, because the SDK does not. */
const permissionAnswer = z.looseObject({
  outcome: z.discriminatedUnion('outcome', [
    z.looseObject({ outcome: z.literal('selected'), optionId: z.string() }),
    z.looseObject({ outcome: z.literal('cancelled') }),
  ]),
})

/**
 * Asks the client and stores its answer, unless another was stored first. `withdrawn` cancels the
 * request. Rejects when the request fails or the answer is invalid.
 */
async function askPermission(
  client: AgentContext,
  session: Session,
  toolCallId: string,
  options: readonly PermissionOption[],
  withdrawn: AbortSignal,
): Promise<void> {
  const response: unknown = await client.request(
    methods.client.session.requestPermission,
    {
      sessionId: session.id,
      toolCall: callOf(session, toolCallId),
      options: options.map(({ optionId, name, kind }) => ({ optionId, name, kind })),
    },
    { cancellationSignal: withdrawn, stopWaitingOnCancel: true },
  )
  const answer = permissionAnswer.safeParse(response)
  if (!answer.success)
    throw new SandlotError('bad_request', 'The client’s answer to a permission request is not valid.')
  const { outcome } = answer.data
  if (outcome.outcome === 'cancelled') await session.refuse(toolCallId, 'cancel')
  else await session.answer(toolCallId, outcome.optionId)
}

/** All that a client needs to show the request; some have never received the call before. */
function callOf(session: Session, toolCallId: string): ToolCallUpdate {
  for (const event of session.log) {
    if (event.sessionUpdate !== 'tool_call' || event.toolCallId !== toolCallId) continue
    const { title, name, kind, rawInput, locations } = event
    return {
      toolCallId,
      title,
      name,
      kind,
      status: 'pending',
      rawInput,
      ...(locations === undefined
        ? {}
        : { locations: locations.map(({ path, line }) => (line === undefined ? { path } : { path, line })) }),
    }
  }
  return { toolCallId }
}

/** Checked here, because the SDK does not. */
const elicited = z.discriminatedUnion('action', [
  z.looseObject({ action: z.literal('accept'), content: questionContent.nullish() }),
  z.looseObject({ action: z.literal('decline') }),
  z.looseObject({ action: z.literal('cancel') }),
])

/**
 * Sends a pending approval or question in a form that this client supports, and stores the answer,
 * unless another was stored first. A question that the client cannot show is refused as
 * `unattended`. Rejects as `askPermission` does.
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
