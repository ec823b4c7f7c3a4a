/** Answers to approvals, from a browser's socket or an HTTP request. */
import { EXT, approveResult } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { QuestionContent } from '@sandlot/shared/chat/question'
import type { AgentConnection } from '../agent/agent-client.ts'

interface ApprovalAnswer {
  sessionId: string
  toolCallId: string
  optionId: string
  reason?: string | undefined
  content?: QuestionContent | undefined
  /** The call's arguments as the person changed them. */
  input?: Record<string, unknown> | undefined
}

/** Throws `conflict` when it was answered before, and what the agent refuses with. */
export async function answerApproval(
  agent: Pick<AgentConnection, 'request'>,
  { user, mayMakeRules }: { user: AgentUser; mayMakeRules: boolean },
  answer: ApprovalAnswer,
): Promise<void> {
  const result = approveResult.parse(await agent.request(EXT.approve, { ...answer, user, mayMakeRules }))
  if (result.answered) return
  throw new SandlotError(
    'conflict',
    `This was answered before${result.by === undefined ? '' : ` (${result.by})`}.`,
  )
}
