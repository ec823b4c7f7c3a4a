/** Decide whether a call needs an approval. */
import type { Mode } from '@sandlot/shared/chat/mode'
import { judge } from '../approval/engine.ts'
import { approvalOptions } from '../approval/options.ts'
import { callRequest } from '../approval/request.ts'
import type { Approvals } from './approvals.ts'
import type { CallParts } from './parts.ts'
import type { JudgedBy, Ruling, ToolCall } from '../tools/tool.ts'

/**
 * The current rules' verdict on a call, and the answers that its question offers. Rejects when the
 * store fails.
 */
export async function rulingOf(
  { call, by }: { call: ToolCall; by: JudgedBy | undefined },
  held: {
    userId: string
    at: { sessionId: string; promptId: string }
    approvals: Approvals
    mode: Mode
    parts: Pick<CallParts, 'rules' | 'externalAccess'>
  },
): Promise<Ruling> {
  const { userId, at, approvals, mode } = held
  const { rules, externalAccess } = held.parts
  const request = callRequest(call, by?.paths)
  const ruled = [...(await rules.of(userId, at)), ...approvals.rulesAt(at)]
  const access = externalAccess(at.sessionId, userId, ruled)
  const external = { externalAccess: access, lost: by?.lost }
  const judgement = judge(request, ruled, mode, external)
  return { ...judgement, options: approvalOptions(request, judgement, rules.remember) }
}
