/**
 * Answers to an approval, directly below what would be done. Labelled by the options' names, acted
 * on by their ids.
 */
import type { CallEntry } from '@sandlot/shared/transcript/entries'
import type { PermissionOption } from '@sandlot/shared/chat/sandlot-event'
import { useEffect, useId, useState } from 'react'
import type { RuleReason } from '@sandlot/shared/chat/rules'
import { ChevronRight, SquarePen, TriangleAlert } from 'lucide-react'
import { formatCount, formatDuration } from '../../lib/format.ts'
import { useNow } from '../../lib/use-now.ts'
import { Button, type ButtonVariant } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { Kbd } from '../../ui/kbd.tsx'
import { ApprovalMenu } from './approval-menu.tsx'
import { EditCall } from './edit-call.tsx'
import { shownArguments } from '@sandlot/shared/transcript/call-arguments'
import { useChat, useChatState } from '../../state/chat-context.ts'
import { useReading } from '../../state/reading.ts'
import { WaitingForApprovers } from '../sharing/waiting-for-approvers.tsx'
import { useOwnKeys } from '../../lib/own-keys.ts'
import { keysOf } from '../../lib/shortcuts.ts'
import { cn } from '../../lib/cn.ts'
import { Revealed } from '../../ui/revealed.tsx'

const VARIANT: Record<PermissionOption['kind'], ButtonVariant> = {
  allow_once: 'primary',
  allow_always: 'secondary',
  reject_once: 'secondary',
  reject_always: 'secondary',
}
const ORDER: PermissionOption['kind'][] = ['allow_once', 'allow_always', 'reject_once', 'reject_always']
/** After this an answer that nothing came of may be given again. */
const ANSWER_PATIENCE_MS = 8000
const HOUR_MS = 3_600_000

/** `keyed`: the keys act on this card. `marked`: a key has brought it into view. */
export function ApprovalPanel(props: {
  call: CallEntry
  sessionId: string
  keyed: boolean
  marked: boolean
}) {
  const { call, sessionId } = props
  const { chat } = useChat()
  const { mayApprove } = useReading()
  const online = useChatState((state) => state.connection.status === 'open')
  const [answered, setAnswered] = useAnswered(online)
  const [explaining, setExplaining] = useState(false)
  const [editing, setEditing] = useState(false)
  const approval = call.approval
  if (approval === undefined) return null
  const options = approval.options.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))
  const reject = options.find((option) => option.kind === 'reject_once')
  const allow = options.find((option) => option.kind === 'allow_once')
  const answer = (option: PermissionOption, why?: string) => {
    setAnswered(true)
    chat.approve(sessionId, call.id, option.optionId, why)
  }
  return (
    <div
      data-testid="approval"
      role="group"
      aria-label={`Approval of ${call.title}`}
      className="flex flex-col gap-2"
    >
      <ApprovalWhy why={approval.why} whole={shownArguments(call.rawInput).command ?? ''} />
      {!mayApprove ? (
        <WaitingForApprovers />
      ) : editing && allow !== undefined ? (
        <EditCall
          call={call}
          sessionId={sessionId}
          optionId={allow.optionId}
          onClose={() => setEditing(false)}
        />
      ) : explaining && reject !== undefined ? (
        <Explanation
          disabled={answered}
          onDeny={(why) => answer(reject, why)}
          onClose={() => setExplaining(false)}
        />
      ) : (
        <Answers
          {...props}
          options={options}
          grave={isGrave(approval.why)}
          disabled={answered}
          onAnswer={answer}
          onEdit={() => setEditing(true)}
          onExplain={() => setExplaining(true)}
        />
      )}
      <ApprovalNote expiresAt={approval.expiresAt} answered={answered} online={online} />
    </div>
  )
}

/** False again where an answer has not taken effect in time. */
function useAnswered(online: boolean) {
  const [answered, setAnswered] = useState(false)
  useEffect(() => {
    if (!answered || !online) return
    const timer = setTimeout(() => setAnswered(false), ANSWER_PATIENCE_MS)
    return () => clearTimeout(timer)
  }, [answered, online])
  return [answered, setAnswered] as const
}

/** `keyed` and `marked` are those of the panel. */
function Answers(props: {
  options: readonly PermissionOption[]
  grave: boolean
  disabled: boolean
  keyed: boolean
  marked: boolean
  onAnswer: (option: PermissionOption) => void
  onEdit: () => void
  onExplain: () => void
}) {
  const { options, disabled } = props
  const { access } = useReading()
  const plain = options.filter(({ remembers }) => remembers === undefined)
  const remembering = options.flatMap((option) => {
    const { remembers } = option
    // Rules are their owner's.
    return remembers === undefined || access !== 'own' ? [] : [{ ...option, remembers }]
  })
  const own = useOwnKeys()
  const allow = options.find((option) => option.kind === 'allow_once')
  const reject = options.find((option) => option.kind === 'reject_once')
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      {plain.map((option) => (
        <Button
          key={option.optionId}
          variant={props.grave && option.kind === 'allow_once' ? 'danger' : VARIANT[option.kind]}
          disabled={disabled}
          className="h-8 px-3 pointer-coarse:flex-1"
          data-option-kind={option.kind}
          onClick={() => props.onAnswer(option)}
        >
          {option.name}
          {props.keyed && option.kind === 'allow_once' && <Kbd keys={keysOf('allow', own)} />}
          {props.keyed && option.kind === 'reject_once' && <Kbd keys={keysOf('reject', own)} />}
        </Button>
      ))}
      {allow !== undefined && (
        <Button
          disabled={disabled || access === 'watch'}
          className="h-8 px-3 pointer-coarse:flex-1"
          title="Edit the call, then allow it"
          onClick={props.onEdit}
        >
          <SquarePen className="size-3.5" aria-hidden />
          Edit
        </Button>
      )}
      <ApprovalMenu
        options={remembering}
        disabled={disabled}
        onAnswer={(option) => props.onAnswer(option)}
        onExplain={reject === undefined ? undefined : props.onExplain}
      />
      {access === 'watch' && (
        <span className="text-xs text-muted">
          You’re watching, so you can allow or deny it but not edit it.
        </span>
      )}
      {props.marked && <span className="text-xs text-muted">Press again to confirm</span>}
    </div>
  )
}

/** A denial in words for the model. */
function Explanation(props: { disabled: boolean; onDeny: (why: string) => void; onClose: () => void }) {
  const [reason, setReason] = useState('')
  const reasonId = useId()
  return (
    <form
      className="flex gap-1.5"
      onSubmit={(event) => {
        event.preventDefault()
        props.onDeny(reason)
      }}
    >
      <label htmlFor={reasonId} className="sr-only">
        What to do instead
      </label>
      <input
        id={reasonId}
        dir="auto"
        className={INPUT}
        value={reason}
        maxLength={2000}
        placeholder="What should it do instead?"
        // The user has just asked for this field.
        autoFocus
        onChange={(event) => setReason(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          event.stopPropagation()
          props.onClose()
        }}
      />
      <Button type="submit" variant="danger" disabled={props.disabled} className="h-10 pointer-coarse:h-11">
        Deny
      </Button>
    </form>
  )
}

function ApprovalNote(props: { expiresAt: number; answered: boolean; online: boolean }) {
  const now = useNow(true)
  const left = props.expiresAt - now
  if (props.answered && !props.online) {
    return <p className="text-xs text-muted">Your answer will be sent when you’re back online.</p>
  }
  if (left > HOUR_MS) return null
  return (
    <p className="text-xs text-muted" aria-live="off">
      {left > 0 ? `Denied automatically in ${formatDuration(left)}.` : 'This approval has expired.'}
    </p>
  )
}

/** Allowing has an effect that nothing makes good. */
export function isGrave(why: readonly RuleReason[] = []): boolean {
  return why.some(({ grave }) => grave === true)
}

/**
 * “Why was I asked”, in one line: the gravest reason, which comes first. The others open below it.
 * `whole`: what the card shows already.
 */
export function ApprovalWhy(props: { why: readonly RuleReason[]; whole: string }) {
  const [first, ...others] = props.why.toSorted((a, b) => Number(b.grave ?? 0) - Number(a.grave ?? 0))
  const [open, setOpen] = useState(false)
  const listId = useId()
  if (first === undefined) return null
  return (
    <div data-testid="approval-why" className="flex flex-col gap-1 text-sm text-muted">
      <div className="flex flex-wrap items-baseline gap-x-2">
        <p
          className={cn('min-w-0 [overflow-wrap:anywhere]', first.grave === true && 'text-failed')}
          data-grave={first.grave}
        >
          {first.grave === true && (
            <TriangleAlert className="mr-1.5 inline size-4 align-text-bottom" aria-label="Careful:" />
          )}
          <Reason reason={first} whole={props.whole} />
        </p>
        {others.length > 0 && (
          <button
            type="button"
            aria-expanded={open}
            aria-controls={listId}
            className="inline-flex items-center gap-0.5 rounded text-xs hover:text-ink pointer-coarse:min-h-11"
            onClick={() => setOpen(!open)}
          >
            {formatCount(others.length, 'more reason')}
            <ChevronRight
              className={cn('size-3.5 transition-transform duration-100', open && 'rotate-90')}
              aria-hidden
            />
          </button>
        )}
      </div>
      <ul id={listId} hidden={!open} aria-label="Why approval is needed" className="flex flex-col gap-1">
        {others.map((reason) => (
          <li key={`${reason.part}\n${reason.because}`} className="[overflow-wrap:anywhere]">
            <Reason reason={reason} whole={props.whole} />
          </li>
        ))}
      </ul>
    </div>
  )
}

/** A reason that the card already shows as a whole is not repeated. */
function Reason({ reason: { part, because }, whole }: { reason: RuleReason; whole: string }) {
  if (part === whole.trim()) return <>This {because}.</>
  return (
    <>
      <code className="rounded bg-sunken px-1 py-0.5 text-xs text-ink">
        <Revealed text={part} />
      </code>{' '}
      {because}.
    </>
  )
}
