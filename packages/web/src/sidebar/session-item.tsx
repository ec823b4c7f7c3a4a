import { Menu } from '@base-ui/react/menu'
import type { SessionSummary } from '@sandlot/shared/frames'
import { Ellipsis, Trash2, UsersRound } from 'lucide-react'
import { memo, useRef } from 'react'
import { Link } from 'wouter'
import { cn } from '../lib/cn.ts'
import { PersonMark } from '../ui/person-mark.tsx'
import { Revealed } from '../ui/revealed.tsx'

/** One line of the list: title, and what goes on there. */
export const SessionItem = memo(function SessionItem(props: {
  summary: SessionSummary
  active: boolean
  onDelete: (summary: SessionSummary) => void
  onPick: () => void
}) {
  const { summary } = props
  const { owner } = summary
  const title = summary.title ?? 'New chat'
  const host = useRef<HTMLLIElement>(null)
  return (
    <li
      ref={host}
      data-testid="session-item"
      data-session-id={summary.sessionId}
      data-running={summary.running}
      data-waiting={summary.waiting}
      className={cn(
        'group/item relative flex items-center rounded-lg hover:bg-hover',
        props.active && 'bg-active hover:bg-active',
      )}
    >
      <Link
        href={`/s/${summary.sessionId}`}
        onClick={props.onPick}
        aria-current={props.active ? 'page' : undefined}
        className={cn(
          'flex min-h-8.5 min-w-0 flex-1 items-center gap-2 rounded-lg px-2.5 text-sm max-md:min-h-11 pointer-coarse:min-h-11',
          owner === undefined && 'group-focus-within/item:pr-9 group-hover/item:pr-9 pointer-coarse:pr-11',
        )}
      >
        {owner !== undefined && <PersonMark {...owner} className="size-5 text-[0.5625rem]" />}
        <span className="min-w-0 flex-1 py-1">
          <span
            dir="auto"
            className={cn('block truncate', props.active ? 'font-medium text-ink' : 'text-ink')}
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
        {summary.shared === true && (
          <span className="shrink-0 text-faint" title="Shared with others">
            <UsersRound className="size-3.5" aria-hidden />
            <span className="sr-only">shared</span>
          </span>
        )}
        <State summary={summary} />
      </Link>
      {owner === undefined && (
        <Menu.Root>
          <Menu.Trigger
            aria-label={`More about ${title}`}
            className="absolute right-1 inline-flex size-7 items-center justify-center rounded-md text-faint opacity-0 group-hover/item:opacity-100 hover:bg-hover hover:text-ink focus-visible:opacity-100 data-popup-open:opacity-100 pointer-coarse:right-0 pointer-coarse:size-11 pointer-coarse:opacity-100"
          >
            <Ellipsis className="size-4" aria-hidden />
          </Menu.Trigger>
          <Menu.Portal container={host}>
            <Menu.Positioner positionMethod="fixed" side="bottom" align="end" sideOffset={4} className="z-50">
              <Menu.Popup className="popup min-w-40 rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none">
                <Menu.Item
                  onClick={() => props.onDelete(summary)}
                  className="flex h-8 pointer-coarse:h-11 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm text-failed outline-none data-highlighted:bg-failed-wash"
                >
                  <Trash2 className="size-4" aria-hidden />
                  Delete chat
                </Menu.Item>
              </Menu.Popup>
            </Menu.Positioner>
          </Menu.Portal>
        </Menu.Root>
      )}
    </li>
  )
})

function State(props: { summary: SessionSummary }) {
  const { running, waiting } = props.summary
  if (waiting > 0) {
    return (
      <span className="shrink-0 rounded-full bg-waiting-wash px-1.5 text-2xs font-semibold text-waiting ring-1 ring-waiting-line">
        {waiting === 1 ? 'Approve' : `Approve ${waiting}`}
      </span>
    )
  }
  if (!running) return null
  return (
    <span className="shrink-0">
      <span className="pulse-dot block size-2 rounded-full bg-accent" aria-hidden />
      <span className="sr-only">running</span>
    </span>
  )
}
