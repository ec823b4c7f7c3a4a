import type { SessionSummary } from '@sandlot/shared/chat/frames'
import { Pin, UsersRound } from 'lucide-react'
import { memo, useRef } from 'react'
import { Link } from 'wouter'
import { cn } from '../lib/cn.ts'
import { PersonMark } from '../ui/person-mark.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { toggleChosen, useChatListState } from '../state/chat-list-state.ts'
import { SessionMenu } from './session-menu.tsx'

/** One row of the list: title and activity. */
export const SessionItem = memo(function SessionItem(props: {
  summary: SessionSummary
  active: boolean
  onRename: (sessionId: string) => void
  onDelete: (sessionIds: readonly string[]) => void
  onNewProject: (sessionId: string) => void
  onPick: () => void
}) {
  const { summary } = props
  const { sessionId } = summary
  const title = summary.title ?? 'New chat'
  const host = useRef<HTMLLIElement>(null)
  const isChosen = useChatListState(({ chosen }) => chosen?.has(sessionId))
  return (
    <li
      ref={host}
      data-testid="session-item"
      data-session-id={sessionId}
      data-running={summary.running}
      data-waiting={summary.waiting}
      className={cn(
        'group/item relative flex items-center rounded-lg hover:bg-hover',
        props.active && 'bg-active hover:bg-active',
      )}
    >
      {isChosen !== undefined && (
        <input
          type="checkbox"
          aria-label={`Select ${title}`}
          checked={isChosen}
          onChange={() => toggleChosen(sessionId)}
          className="ml-2.5 size-4 shrink-0 cursor-pointer accent-accent pointer-coarse:size-6"
        />
      )}
      <Link
        href={`/s/${sessionId}`}
        onClick={props.onPick}
        aria-current={props.active ? 'page' : undefined}
        className={cn(
          'flex min-h-8.5 min-w-0 flex-1 items-center gap-2 rounded-lg px-2.5 text-sm max-md:min-h-11 pointer-coarse:min-h-11',
          isChosen === undefined && 'group-focus-within/item:pr-9 group-hover/item:pr-9 pointer-coarse:pr-11',
        )}
      >
        <SessionLabel summary={summary} title={title} active={props.active} />
      </Link>
      {isChosen === undefined && (
        <SessionMenu
          summary={summary}
          title={title}
          host={host}
          onRename={props.onRename}
          onDelete={props.onDelete}
          onNewProject={props.onNewProject}
        />
      )}
    </li>
  )
})

function SessionLabel(props: { summary: SessionSummary; title: string; active: boolean }) {
  const { summary, title, active } = props
  const { owner } = summary
  // The open chat is being read.
  const unread = summary.unread === true && !active
  return (
    <>
      {owner !== undefined && <PersonMark {...owner} className="size-5 text-[0.5625rem]" />}
      <span className="min-w-0 flex-1 py-1">
        <span
          dir="auto"
          className={cn('block truncate text-ink', (active || unread) && 'font-medium')}
          title={title}
        >
          <Revealed text={title} />
        </span>
        {owner !== undefined && (
          <span className="block truncate text-2xs text-faint">
            <span className="sr-only">shared by </span>
            <Revealed text={owner.name} />
            {summary.access === 'watch' && ' · watching'}
          </span>
        )}
      </span>
      {summary.pinned === true && (
        <span className="shrink-0 text-faint" title="Pinned">
          <Pin className="size-3.5" aria-hidden />
          <span className="sr-only">pinned</span>
        </span>
      )}
      {summary.shared === true && (
        <span className="shrink-0 text-faint" title="Shared with others">
          <UsersRound className="size-3.5" aria-hidden />
          <span className="sr-only">shared</span>
        </span>
      )}
      <State summary={summary} unread={unread} />
    </>
  )
}

/** Filled: not seen yet. A ring: seen, and it did not come to its end. */
const SHORT = {
  failed: { words: 'failed', filled: 'bg-failed', ring: 'border-failed' },
  unfinished: { words: 'stopped early', filled: 'bg-waiting', ring: 'border-waiting' },
}

function State({ summary, unread }: { summary: SessionSummary; unread: boolean }) {
  const { running, waiting, ended } = summary
  if (waiting > 0) {
    return (
      <span className="shrink-0 rounded-full bg-waiting-wash px-1.5 text-2xs font-semibold text-waiting ring-1 ring-waiting-line">
        {waiting === 1 ? 'Approve' : `Approve ${waiting}`}
      </span>
    )
  }
  if (running)
    return (
      <span className="shrink-0 text-accent" title="Running">
        <Spinner className="size-3.5" />
        <span className="sr-only">running</span>
      </span>
    )
  if (ended === undefined) return unread ? <Dot words="new" className="bg-accent" /> : null
  const { words, filled, ring } = SHORT[ended]
  return <Dot words={unread ? `${words}, new` : words} className={unread ? filled : `border-2 ${ring}`} />
}

function Dot(props: { words: string; className: string }) {
  return (
    <span className="shrink-0" title={`${props.words.charAt(0).toUpperCase()}${props.words.slice(1)}`}>
      <span className={`block size-2 rounded-full ${props.className}`} aria-hidden />
      <span className="sr-only">{props.words}</span>
    </span>
  )
}
