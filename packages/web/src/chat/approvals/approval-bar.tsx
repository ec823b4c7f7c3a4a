import type { PermissionOption } from '@sandlot/shared/chat/sandlot-event'
import type { CallEntry } from '@sandlot/shared/transcript/entries'
import { Button } from '../../ui/button.tsx'
import { isGrave } from './approval-panel.tsx'
import type { Chat } from '../../state/chat.ts'

type Answer = Extract<PermissionOption['kind'], 'allow_once' | 'reject_once'>

/**
 * Answer calls by the option of that kind, where the event offers it. Never “always”: that is one
 * call's own button.
 */
export function answerCalls(chat: Chat, sessionId: string, calls: readonly CallEntry[], kind: Answer): void {
  for (const call of calls.filter(asksApproval)) {
    const option = call.approval?.options.find((offered) => offered.kind === kind)
    if (option !== undefined) chat.approve(sessionId, call.id, option.optionId)
  }
}

/** It asks for approval to run. A question is answered by itself. */
export function asksApproval(call: CallEntry): boolean {
  return call.approval?.question === undefined
}

/**
 * Several calls wait: answer them together. `onAnswer` allows what is on the screen, and shows what
 * is not.
 */
export function ApprovalBar(props: { waiting: readonly CallEntry[]; onAnswer: (kind: Answer) => void }) {
  const waiting = props.waiting.filter(asksApproval)
  if (waiting.length < 2) return null
  return (
    <div
      role="group"
      aria-label="All waiting approvals"
      data-testid="approval-bar"
      className="flex flex-wrap items-center gap-2 border-b border-waiting-line bg-waiting-wash px-4 py-2 first:rounded-t-2xl"
    >
      <span className="min-w-0 flex-1 text-sm font-medium text-waiting">
        {waiting.length} calls need your approval
      </span>
      <Button size="sm" onClick={() => props.onAnswer('reject_once')}>
        Deny all
      </Button>
      <Button
        size="sm"
        variant={waiting.some(({ approval }) => isGrave(approval?.why)) ? 'danger' : 'primary'}
        onClick={() => props.onAnswer('allow_once')}
      >
        Allow all once
      </Button>
    </div>
  )
}
