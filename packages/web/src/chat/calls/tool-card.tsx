/**
 * One call of a tool: what it is, what it does, how it stands. The tool itself says its title and
 * kind.
 */
import type { CallEntry } from '@sandlot/shared/transcript/entries'
import { ChevronRight, CircleStop, CornerDownRight } from 'lucide-react'
import { memo, type ReactNode, useId, useMemo, useState } from 'react'
import type { ToolCallContent } from '@sandlot/shared/chat/call'
import { DiffView } from '../../preview/diff-view.tsx'
import { cn } from '../../lib/cn.ts'
import { formatDuration } from '../../lib/format.ts'
import { revealedText } from '../../lib/invisible.ts'
import { useSeen } from '../../lib/use-seen.ts'
import { useNow } from '../../lib/use-now.ts'
import { pathInWorkspace } from '../../net/files.ts'
import { Revealed } from '../../ui/revealed.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { ApprovalPanel } from '../approvals/approval-panel.tsx'
import { ChangedCall } from '../approvals/edit-call.tsx'
import { shownArguments } from '@sandlot/shared/transcript/call-arguments'
import {
  answerWords,
  failureSentence,
  opensItself,
  phaseOf,
  ranOn,
  statusWord,
  type CallPhase,
} from '@sandlot/shared/transcript/call-words'
import { PersonMark } from '../../ui/person-mark.tsx'
import { useChat } from '../../state/chat-context.ts'
import { useOther, useReading } from '../../state/reading.ts'
import { WaitingForApprovers } from '../sharing/waiting-for-approvers.tsx'
import { ToolArguments } from './tool-arguments.tsx'
import { ToolIcon } from './tool-icon.tsx'
import { ToolQuestion } from '../approvals/tool-question.tsx'
import { LiveToolOutput, SettledToolOutput } from './tool-output.tsx'
import { attachmentsOf, filesWritten } from './call-attachments.ts'
import { FileCard } from '../../preview/file-card.tsx'
import { MessageImages } from '../transcript/message-images.tsx'
import { useRemembered } from '../transcript/remembered.ts'

const FRAME: Record<CallPhase, string> = {
  queued: 'border-line',
  waiting: 'border-waiting-line bg-raised',
  running: 'border-accent-line bg-raised shadow-1',
  done: 'border-line',
  stopped: 'border-line',
  missed: 'border-line',
  failed: 'border-line bg-raised',
}
const INK: Record<CallPhase, string> = {
  queued: 'text-faint',
  waiting: 'text-waiting',
  running: 'text-accent',
  done: 'text-faint',
  stopped: 'text-faint',
  missed: 'text-waiting',
  failed: 'text-failed',
}
/** Nothing to be done about it: it stands back. */
const QUIET: Partial<Record<CallPhase, true>> = { queued: true, done: true, stopped: true }

/**
 * `place`: “1 of 3”, where several calls wait. `keyed`: the keyboard's approval keys act on this
 * card. `marked`: they have brought it into view.
 */
export const ToolCard = memo(function ToolCard(props: {
  call: CallEntry
  sessionId: string
  place?: string | undefined
  keyed?: boolean
  marked?: boolean
}) {
  const { call, place, marked = false } = props
  const phase = phaseOf(call)
  const [choice, setChoice] = useRemembered(`card ${call.id}`)
  const bodyId = useId()
  const waiting = phase === 'waiting'
  // A call that waits for an answer is never folded.
  const open = waiting || (choice ?? opensItself(call))
  const { access } = useReading()
  return (
    <article
      data-testid="tool-card"
      data-status={call.status}
      data-phase={phase}
      data-call-id={call.id}
      data-marked={marked || undefined}
      aria-label={`${revealedText(call.title)}: ${statusWord(call)}`}
      // Receives the focus when the call before it was answered.
      tabIndex={waiting ? -1 : undefined}
      className={cn(
        'overflow-hidden rounded-lg border scroll-my-4',
        FRAME[phase],
        marked && 'ring-2 ring-accent',
      )}
    >
      <div className="flex items-center">
        {waiting ? (
          <div className="flex min-w-0 flex-1 items-center gap-2.5 px-3 pt-2 pb-1">
            <Header call={call} phase={phase} place={place} />
          </div>
        ) : (
          <FoldButton open={open} bodyId={bodyId} onToggle={() => setChoice(!open)}>
            <Header call={call} phase={phase} place={place} />
          </FoldButton>
        )}
        {phase === 'running' && access !== 'watch' && <CancelCall call={call} sessionId={props.sessionId} />}
      </div>
      <QuestionAnswer call={call} />
      <div id={bodyId} hidden={!open}>
        {open && (
          <Body
            call={call}
            phase={phase}
            sessionId={props.sessionId}
            keyed={props.keyed === true}
            marked={marked}
          />
        )}
      </div>
      <CallImages content={call.content} title={call.title} />
      <CallFiles call={call} />
    </article>
  )
})

function FoldButton(props: { open: boolean; bodyId: string; onToggle: () => void; children: ReactNode }) {
  const { open } = props
  return (
    <button
      type="button"
      aria-expanded={open}
      aria-controls={props.bodyId}
      onClick={props.onToggle}
      className="flex min-h-9 min-w-0 flex-1 items-center gap-2.5 rounded-lg px-3 py-1.5 text-left hover:bg-hover focus-visible:-outline-offset-2 pointer-coarse:min-h-11"
    >
      {props.children}
      <ChevronRight
        className={cn('size-4 shrink-0 text-faint transition-transform duration-100', open && 'rotate-90')}
        aria-hidden
      />
    </button>
  )
}

function QuestionAnswer({ call }: { call: CallEntry }) {
  const answer = answerWords(call)
  const other = useOther(call.approval?.answer?.author)
  if (answer === undefined) return null
  return (
    <p
      data-testid="answer"
      className="flex items-baseline gap-2 px-3 pb-2.5 pl-9.5 text-sm [overflow-wrap:anywhere] text-ink"
    >
      <span className="sr-only">{other === null ? 'Your answer: ' : `The answer of ${other.name}: `}</span>
      <CornerDownRight className="size-3.5 shrink-0 self-center text-faint" aria-hidden />
      <Revealed text={answer} />
    </p>
  )
}

function Header(props: { call: CallEntry; phase: CallPhase; place: string | undefined }) {
  const { call, phase, place } = props
  const waiting = phase === 'waiting'
  return (
    <>
      {phase === 'running' ? (
        <Spinner className="size-4 shrink-0 text-accent" />
      ) : (
        <ToolIcon kind={call.kind} className={cn('size-4 shrink-0', INK[phase])} />
      )}
      <span
        className={cn(
          'min-w-0 flex-1 text-sm',
          waiting ? '[overflow-wrap:anywhere]' : 'truncate',
          QUIET[phase] ? 'text-muted' : 'text-ink',
        )}
      >
        <Revealed text={waiting ? waitingTitle(call) : call.title} />
      </span>
      <AnsweredBy call={call} />
      {place !== undefined && <span className="shrink-0 text-xs text-muted tabular-nums">{place}</span>}
      <Status call={call} phase={phase} />
    </>
  )
}

/** The user who allowed or denied it, where others could have. */
function AnsweredBy(props: { call: CallEntry }) {
  const answer = props.call.approval?.answer
  const { me } = useChat()
  const { together } = useReading()
  const other = useOther(answer?.author)
  if (!together || answer?.by !== 'user') return null
  const who = other ?? me
  return (
    <span className="flex max-w-[40%] shrink-0 items-center gap-1.5 text-xs text-faint">
      <PersonMark id={who.id} name={who.name} className="size-4.5 text-[0.5rem]" />
      <span className="truncate max-sm:sr-only">
        {answer.input !== undefined ? 'Changed' : answer.allowed ? 'Allowed' : 'Denied'} by{' '}
        {other === null ? 'you' : <Revealed text={other.name} />}
      </span>
    </span>
  )
}

/** The command stands whole below it, and once. */
function waitingTitle(call: CallEntry): string {
  const { command } = shownArguments(call.rawInput)
  return command !== undefined && command.trim().startsWith(call.title.replace(/…$/, ''))
    ? 'Run a command'
    : call.title
}

function Status(props: { call: CallEntry; phase: CallPhase }) {
  const { call, phase } = props
  return (
    <span className={cn('flex shrink-0 items-center gap-2 text-xs tabular-nums', INK[phase])}>
      <span className={QUIET[phase] ? undefined : 'font-medium'}>{statusWord(call)}</span>
      <Elapsed call={call} />
    </span>
  )
}

/** While it runs, whole seconds; afterwards what the tool itself measured. */
function Elapsed(props: { call: CallEntry }) {
  const { call } = props
  const running = call.status === 'in_progress' && call.startedAt !== undefined
  const now = useNow(running)
  // A background command runs on; the time of its start means nothing.
  if (ranOn(call) || (phaseOf(call) === 'stopped' && call.startedAt === undefined)) return null
  if (call.timing !== undefined)
    return <span className="text-faint">{formatDuration(call.timing.runMs)}</span>
  if (call.startedAt === undefined) return null
  if (call.endedAt !== undefined) {
    return <span className="text-faint">{formatDuration(call.endedAt - call.startedAt)}</span>
  }
  if (!running) return null
  const seconds = Math.max(0, Math.floor((now - call.startedAt) / 1000))
  return <span role="timer">{seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1000)}</span>
}

function CancelCall(props: { call: CallEntry; sessionId: string }) {
  const { chat } = useChat()
  const [asked, setAsked] = useState(false)
  return (
    <button
      type="button"
      disabled={asked}
      onClick={() => {
        setAsked(true)
        chat.cancelCall(props.sessionId, props.call.id)
      }}
      aria-label={`Cancel ${props.call.title}`}
      className="mr-1.5 inline-flex h-7 shrink-0 pointer-coarse:h-11 items-center gap-1.5 rounded-md px-2 text-xs text-muted hover:bg-hover hover:text-ink disabled:opacity-60"
    >
      <CircleStop className="size-3.5" aria-hidden />
      {asked ? 'Cancelling…' : 'Cancel'}
    </button>
  )
}

function Body(props: {
  call: CallEntry
  phase: CallPhase
  sessionId: string
  keyed: boolean
  marked: boolean
}) {
  const { call, phase } = props
  const settled = call.status === 'completed' || call.status === 'failed'
  const [body, seen] = useSeen<HTMLDivElement>()
  const diffs = call.content.filter((item) => item.type === 'diff')
  const known = diffs.flatMap((diff) => [diff.newText, diff.oldText ?? ''])
  const other = useOther(call.approval?.answer?.author)
  const sentence = failureSentence(call, other?.name)
  const { access } = useReading()
  const question = call.approval?.question
  return (
    <div ref={body} className="flex flex-col gap-2 px-3 pt-0.5 pb-3">
      {question === undefined && (
        <div data-to-read className="flex flex-col gap-2 empty:hidden">
          <ToolArguments
            rawInput={call.approval?.answer?.input ?? call.rawInput}
            whole={phase === 'waiting'}
            known={known}
            title={call.title}
          />
        </div>
      )}
      <ChangedCall call={call} />
      {question !== undefined && phase !== 'waiting' && (
        <p className="text-sm [overflow-wrap:anywhere] whitespace-pre-wrap text-muted">{question.message}</p>
      )}
      {diffs.map((diff, index) => (
        // The same file may be there twice; the order is the tool's.
        // oxlint-disable-next-line react/no-array-index-key
        <DiffView
          key={index}
          path={diff.path}
          oldText={diff.oldText ?? null}
          newText={diff.newText}
          file={call.status === 'completed' && access === 'own' ? pathInWorkspace(diff.path) : null}
        />
      ))}
      {sentence !== undefined && <p className="text-sm text-muted">{sentence}</p>}
      {call.progress !== undefined && <Progress progress={call.progress} />}
      {settled ? (
        <SettledToolOutput call={call} sessionId={props.sessionId} visible={seen} />
      ) : (
        <LiveToolOutput call={call} sessionId={props.sessionId} />
      )}
      {phase === 'waiting' && (
        <Waiting call={call} sessionId={props.sessionId} keyed={props.keyed} marked={props.marked} />
      )}
    </div>
  )
}

/** The user's pending answer: approval to run, or an answer to a question. */
function Waiting(props: { call: CallEntry; sessionId: string; keyed: boolean; marked: boolean }) {
  const question = props.call.approval?.question
  const { mayApprove } = useReading()
  if (question === undefined) return <ApprovalPanel {...props} />
  if (!mayApprove)
    return (
      <>
        <p className="text-sm [overflow-wrap:anywhere] whitespace-pre-wrap">{question.message}</p>
        <WaitingForApprovers />
      </>
    )
  return <ToolQuestion call={props.call} sessionId={props.sessionId} question={question} />
}

function Progress(props: { progress: NonNullable<CallEntry['progress']> }) {
  const { message, done, total } = props.progress
  return (
    <div className="flex items-center gap-3 text-xs text-muted">
      <span className="min-w-0 flex-1">{message}</span>
      {done !== undefined && total !== undefined && total > 0 && (
        <progress className="h-1.5 w-32 accent-accent" value={done} max={total} aria-label={message} />
      )}
    </div>
  )
}

/** The images that a call made, also while its card is folded: they are what one came to see. */
function CallImages(props: { content: readonly ToolCallContent[]; title: string }) {
  const { images } = useMemo(() => attachmentsOf(props.content), [props.content])
  if (images.length === 0) return null
  return <MessageImages images={images} what={`from ${props.title}`} className="px-3 pt-1 pb-3" />
}

/** Files written to be looked at, also while the card is folded. */
function CallFiles({ call }: { call: CallEntry }) {
  const files = useMemo(() => filesWritten(call), [call])
  const { access } = useReading()
  if (access !== 'own' || files.length === 0) return null
  return files.map((path) => <FileCard key={path} path={path} flat />)
}
