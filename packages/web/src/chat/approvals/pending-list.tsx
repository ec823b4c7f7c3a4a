/**
 * All calls that wait for the person, of all chats, with keys: j and k or the arrows go from one to
 * the next, Enter opens its chat, and the approval keys answer it once all of it is in sight.
 */
import type { WaitingApproval } from '@sandlot/shared/chat/pending'
import { messageOf } from '@sandlot/shared/base/errors'
import { type KeyboardEvent, type RefObject, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { cn } from '../../lib/cn.ts'
import { formatDuration } from '../../lib/format.ts'
import { ownKeys } from '../../lib/own-keys.ts'
import { keysOf, shortcutOf } from '../../lib/shortcuts.ts'
import { useNow } from '../../lib/use-now.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Kbd } from '../../ui/kbd.tsx'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { ToolArguments } from '../calls/tool-arguments.tsx'
import { ToolIcon } from '../calls/tool-icon.tsx'
import { useChatState } from '../../state/chat-context.ts'
import { ApprovalWhy, isGrave } from './approval-panel.tsx'

type Kind = 'allow_once' | 'reject_once'
const keyOf = ({ sessionId, callId }: WaitingApproval): string => `${sessionId} ${callId}`

export default function PendingList(props: { onClose: () => void }) {
  const { waiting, more, problem, reload } = useWaiting()
  const { open, failed, said, setSaid, send } = useAnswers(waiting, reload)
  const [, navigate] = useLocation()
  const region = useRef<HTMLUListElement>(null)
  const { place, chosen, rowOf, choose, setAt } = useChosen(open, region)
  const visit = ({ sessionId }: WaitingApproval) => {
    props.onClose()
    navigate(`/s/${sessionId}`)
  }
  const answer = (one: WaitingApproval, kind: Kind) => {
    if (!one.options.some((offered) => offered.kind === kind) || one.question !== undefined) return
    choose(open[place + 1] ?? open[place - 1])
    void send(one, kind)
  }
  const byKey = (kind: Kind) => {
    if (chosen === undefined || chosen.question !== undefined) return
    const row = rowOf(chosen)
    if (row === null || region.current === null) return
    if (kind === 'reject_once' || isWhole(row, region.current)) return answer(chosen, kind)
    setSaid(bringIntoView(row, region.current))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const shortcut = shortcutOf(event, ownKeys())
    const step = STEPS[event.key]
    if (shortcut === 'allow' || shortcut === 'reject')
      byKey(shortcut === 'allow' ? 'allow_once' : 'reject_once')
    else if (event.ctrlKey || event.metaKey || event.altKey) return
    else if (step !== undefined) choose(open[Math.min(open.length - 1, Math.max(0, place + step))])
    else if (event.key === 'Enter' && chosen !== undefined && event.target === rowOf(chosen)) visit(chosen)
    else return
    event.preventDefault()
  }
  return (
    <div className="flex min-h-0 flex-1 flex-col" onKeyDown={onKeyDown}>
      <p role="status" className="sr-only">
        {said}
      </p>
      <ListStatus problem={problem} failed={failed} count={waiting === null ? null : open.length} />
      <ul
        ref={region}
        aria-label="Waiting for you"
        className="relative flex min-h-0 flex-1 flex-col gap-2 overflow-y-auto p-3 empty:hidden"
      >
        {open.map((one, index) => (
          <Row
            key={keyOf(one)}
            one={one}
            chosen={index === place}
            onChoose={() => setAt(keyOf(one))}
            onAnswer={(kind) => answer(one, kind)}
            onVisit={() => visit(one)}
          />
        ))}
        {more && <MoreWait />}
      </ul>
      {open.length > 0 && <KeyHints />}
    </div>
  )
}

/** `count`: null until the list is loaded. */
function ListStatus(props: { problem: string | null; failed: string | null; count: number | null }) {
  const { problem, failed, count } = props
  return (
    <>
      <div className="px-5 pt-3 empty:hidden">
        {problem !== null && <Alert>{problem}</Alert>}
        {failed !== null && <Alert>{failed}</Alert>}
      </div>
      {count === null && problem === null && <p className="px-5 py-6 text-sm text-muted">Loading…</p>}
      {count === 0 && (
        <p className="px-5 py-8 text-center text-sm text-muted">
          Nothing needs you. Approvals from all your chats appear here.
        </p>
      )}
    </>
  )
}

/** The row that the keys act on: the first, until another is chosen. */
function useChosen(open: readonly WaitingApproval[], region: RefObject<HTMLElement | null>) {
  const [at, setAt] = useState<string | null>(null)
  const found = open.findIndex((one) => keyOf(one) === at)
  const place = found === -1 ? 0 : found
  const chosen = open[place]

  const rowOf = (one: WaitingApproval) =>
    region.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(keyOf(one))}"]`) ?? null
  const choose = (one: WaitingApproval | undefined) => {
    if (one === undefined) return
    setAt(keyOf(one))
    const row = rowOf(one)
    row?.focus({ preventScroll: true })
    row?.scrollIntoView({ block: 'nearest' })
  }
  return { place, chosen, rowOf, choose, setAt }
}

function MoreWait() {
  return <li className="px-2 py-1 text-xs text-muted">More are waiting; they appear as you answer these.</li>
}

function KeyHints() {
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1 border-t border-line px-5 py-2 text-xs text-muted pointer-coarse:hidden">
      <span>
        <Kbd keys="J" /> <Kbd keys="K" /> next/previous
      </span>
      <span>
        <Kbd keys={keysOf('allow', ownKeys())} /> allow
      </span>
      <span>
        <Kbd keys={keysOf('reject', ownKeys())} /> deny
      </span>
      <span>
        <Kbd keys="Enter" /> open the chat
      </span>
    </p>
  )
}

/** An answer that fails opens its row again. `said`: for a screen reader. */
function useAnswers(waiting: readonly WaitingApproval[] | null, reload: () => Promise<void>) {
  const [answered, setAnswered] = useState<ReadonlySet<string>>(new Set())
  const [failed, setFailed] = useState<string | null>(null)
  const [said, setSaid] = useState('')
  const send = async (one: WaitingApproval, kind: Kind) => {
    const option = one.options.find((offered) => offered.kind === kind)
    if (option === undefined) return
    setFailed(null)
    setAnswered((before) => new Set([...before, keyOf(one)]))
    try {
      await call('answerApproval', {
        params: { id: one.sessionId, callId: one.callId },
        body: { optionId: option.optionId },
      })
      setSaid(`${kind === 'allow_once' ? 'Allowed' : 'Denied'}: ${one.title}.`)
    } catch (error) {
      setAnswered((before) => new Set([...before].filter((key) => key !== keyOf(one))))
      setFailed(messageOf(error))
      await reload()
    }
  }
  const open = (waiting ?? []).filter((one) => !answered.has(keyOf(one)))
  return { open, failed, said, setSaid, send }
}

const STEPS: Readonly<Record<string, number | undefined>> = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 }

function Row(props: {
  one: WaitingApproval
  chosen: boolean
  onChoose: () => void
  onAnswer: (kind: Kind) => void
  onVisit: () => void
}) {
  const { one, chosen } = props
  const { question } = one
  const row = useRef<HTMLLIElement>(null)
  useEffect(() => {
    // The first one has the focus when the list opens.
    if (chosen && !row.current?.parentElement?.contains(document.activeElement)) row.current?.focus()
  }, [chosen])
  return (
    <li
      ref={row}
      data-testid="pending-row"
      data-row={keyOf(one)}
      tabIndex={chosen ? 0 : -1}
      aria-current={chosen ? 'true' : undefined}
      aria-label={`${one.title}, in ${one.chat ?? 'a new chat'}`}
      onFocus={props.onChoose}
      className={cn(
        'flex flex-col gap-2 rounded-xl border px-3 py-2.5 outline-none',
        chosen ? 'border-waiting-line bg-waiting-wash' : 'border-line',
      )}
    >
      <RowChat one={one} chosen={chosen} onVisit={props.onVisit} />
      <div className="flex items-center gap-2 text-sm">
        <ToolIcon kind={one.kind} className="size-4 shrink-0 text-waiting" />
        <span className="min-w-0 [overflow-wrap:anywhere]">
          <Revealed text={question?.message ?? titleOf(one)} />
        </span>
      </div>
      {question === undefined && (
        <>
          <ToolArguments rawInput={one.arguments} whole known={[]} title={one.title} />
          <ApprovalWhy why={one.why ?? []} whole={commandOf(one.arguments)} />
        </>
      )}
      <RowAnswers one={one} chosen={chosen} onAnswer={props.onAnswer} onVisit={props.onVisit} />
    </li>
  )
}

function RowChat(props: { one: WaitingApproval; chosen: boolean; onVisit: () => void }) {
  const { one, chosen } = props
  const { owner } = one
  return (
    <div className="flex items-center gap-2 text-xs text-muted">
      {owner !== undefined && <PersonMark {...owner} className="size-4.5 text-[0.5rem]" />}
      <button
        type="button"
        tabIndex={chosen ? 0 : -1}
        onClick={props.onVisit}
        className="min-w-0 truncate rounded text-left font-medium text-ink underline-offset-2 hover:underline pointer-coarse:min-h-11"
      >
        <Revealed text={one.chat ?? 'New chat'} />
      </button>
      {owner !== undefined && (
        <span className="min-w-0 truncate">
          of <Revealed text={owner.name} />
        </span>
      )}
      <Waited since={one.askedAt} />
    </div>
  )
}

function RowAnswers(props: {
  one: WaitingApproval
  chosen: boolean
  onAnswer: (kind: Kind) => void
  onVisit: () => void
}) {
  const { one, chosen } = props
  const { question } = one
  return (
    <div className="flex flex-wrap gap-1.5">
      {question === undefined &&
        ORDER.flatMap((kind) => {
          const option = one.options.find((offered) => offered.kind === kind)
          return option === undefined ? (
            []
          ) : (
            <Button
              key={kind}
              tabIndex={chosen ? 0 : -1}
              variant={kind === 'reject_once' ? 'secondary' : isGrave(one.why) ? 'danger' : 'primary'}
              className="h-8 px-3 pointer-coarse:flex-1"
              onClick={() => props.onAnswer(kind)}
            >
              {option.name}
            </Button>
          )
        })}
      <Button
        tabIndex={chosen ? 0 : -1}
        variant="ghost"
        className="h-8 px-3 pointer-coarse:flex-1"
        onClick={props.onVisit}
      >
        {question === undefined ? 'Open chat' : 'Answer in chat'}
      </Button>
    </div>
  )
}

const ORDER: Kind[] = ['allow_once', 'reject_once']

function Waited(props: { since: number }) {
  const now = useNow(true)
  return (
    <span className="ml-auto shrink-0 tabular-nums" aria-live="off">
      {formatDuration(Math.max(0, now - props.since))}
    </span>
  )
}

/** A command stands whole below it, and once. */
function titleOf({ title, arguments: args }: WaitingApproval): string {
  return commandOf(args).trim().startsWith(title.replace(/…$/, '').trim()) ? 'Run a command' : title
}

function commandOf(args: unknown): string {
  return typeof args === 'object' && args !== null && 'command' in args ? String(args.command) : ''
}

/** All of the row is in sight. */
function isWhole(row: HTMLElement, region: HTMLElement): boolean {
  const [inner, outer] = [row.getBoundingClientRect(), region.getBoundingClientRect()]
  return inner.top >= outer.top - 0.5 && inner.bottom <= outer.bottom + 0.5
}

/** Returns the next step for the person. */
function bringIntoView(row: HTMLElement, region: HTMLElement): string {
  const isTooLong = row.offsetHeight > region.clientHeight
  row.scrollIntoView({ block: isTooLong ? 'start' : 'nearest' })
  return isTooLong
    ? 'It’s too long to show here. Read it to the end, then use its buttons.'
    : 'Press again to allow it.'
}

/** Reloaded when the list of chats reports that something waits, or waits no more. */
function useWaiting() {
  const changes = useChatState((state) =>
    (state.sessions ?? [])
      .filter(({ waiting }) => waiting > 0)
      .map(({ sessionId, waiting, updatedAt }) => `${sessionId} ${waiting} ${updatedAt}`)
      .join('\n'),
  )
  const { data, problem, reload } = useResource(changes, (signal) => call('listWaiting', { signal }), {
    keep: true,
  })
  return { waiting: data?.approvals ?? null, more: data?.more ?? false, problem, reload }
}
