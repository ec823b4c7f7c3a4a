/** `session/request_permission`: how a foreign client is asked. Our own service answers by `_sandlot/approve`. */
import { type AgentContext, type ToolCallUpdate, methods } from '@agentclientprotocol/sdk'
import { SandlotError } from '@sandlot/shared/errors'
import type { PermissionOption } from '@sandlot/shared/sandlot-event'
import { z } from 'zod'
import type { Session } from '../session/session.ts'

/** What the SDK does not check. */
const permissionAnswer = z.looseObject({
  outcome: z.discriminatedUnion('outcome', [
    z.looseObject({ outcome: z.literal('selected'), optionId: z.string() }),
    z.looseObject({ outcome: z.literal('cancelled') }),
  ]),
})

/**
 * Ask and store the answer, unless another came first. `withdrawn` ends the waiting. Rejects when the client cannot be
 * asked or answers nonsense.
 */
export async function askPermission(
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

/** Clients draw the question from this alone; some never saw the call before. */
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
