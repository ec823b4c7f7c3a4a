import { MAX_SEARCH_CHARS } from '@sandlot/shared/desk/search'
import type { SessionSummary } from '@sandlot/shared/frames'
import { Search, Settings, SquarePen } from 'lucide-react'
import { useMemo, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { messageOf } from '@sandlot/shared/errors'
import { AlertDialog } from '@base-ui/react/alert-dialog'
import { useChat, useChatState } from '../chat/chat-context.ts'
import { cn } from '../lib/cn.ts'
import { ageGroup } from '../lib/format.ts'
import { deleteSession } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Kbd } from '../ui/kbd.tsx'
import { LogoMark } from '../ui/logo.tsx'
import { SessionItem } from './session-item.tsx'
import { SearchResults } from '../search/search-results.tsx'
import { useNamed } from '../search/use-search.ts'

/**
 * Brand, new chat, the list of sessions, and the person. `onPick`: something was chosen; a drawer
 * closes then.
 */
export function Sidebar(props: { onPick: () => void; onSettings: () => void }) {
  const { chat, me } = useChat()
  const sessions = useChatState((state) => state.sessions)
  const more = useChatState((state) => state.nextPage !== null)
  const activeId = useChatState((state) => state.activeId)
  const [doomed, setDoomed] = useState<SessionSummary | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [, navigate] = useLocation()
  const [wanted, setWanted] = useState('')
  const { found, more: findMore, drop } = useNamed(wanted)
  const [nothingInside, setNothingInside] = useState(false)
  const hasShared = sessions?.some(({ owner }) => owner !== undefined) === true
  const [chosen, setChosen] = useState<'all' | 'shared'>('all')
  const shows = hasShared ? chosen : 'all'
  const groups = useMemo(() => {
    if (found.state === 'found') return foundGroup(found.items, sessions ?? [])
    const listed = sessions ?? []
    return grouped(shows === 'all' ? listed : listed.filter(({ owner }) => owner !== undefined))
  }, [found, sessions, shows])

  const remove = (summary: SessionSummary) => {
    setProblem(null)
    deleteSession(summary.sessionId).then(
      () => {
        chat.forget(summary.sessionId)
        drop(({ sessionId }) => sessionId === summary.sessionId)
        if (summary.sessionId === activeId) navigate('/')
      },
      (error: unknown) => setProblem(messageOf(error)),
    )
  }
  return (
    <div className="flex h-full flex-col bg-panel">
      <div className="flex h-13 items-center gap-2.5 px-4">
        <LogoMark className="size-6" />
        <span className="text-base font-semibold tracking-tight">Sandlot</span>
      </div>
      {me.role !== 'guest' && (
        <div className="px-2.5 pb-2">
          <Link
            href="/"
            onClick={props.onPick}
            data-testid="new-chat"
            className="flex h-9 items-center gap-2.5 rounded-lg border border-line-strong bg-raised px-2.5 text-sm font-medium shadow-1 hover:bg-hover max-md:h-11"
          >
            <SquarePen className="size-4 text-muted" aria-hidden />
            <span className="flex-1">New chat</span>
            <span className="text-faint">
              <Kbd keys="Mod+Shift+O" />
            </span>
          </Link>
        </div>
      )}
      <search className="relative px-2.5 pb-1">
        <Search
          className="pointer-events-none absolute top-2.5 left-5 size-4 text-faint pointer-coarse:top-3.5"
          aria-hidden
        />
        <input
          dir="auto"
          type="search"
          aria-label="Search your chats"
          placeholder="Search chats"
          value={wanted}
          maxLength={MAX_SEARCH_CHARS}
          autoComplete="off"
          onChange={(event) => setWanted(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return
            // Not Stop: with nothing searched for, Escape leaves the field.
            event.preventDefault()
            if (wanted === '') return event.currentTarget.blur()
            // Nor the drawer’s end.
            event.stopPropagation()
            event.nativeEvent.stopImmediatePropagation()
            setWanted('')
          }}
          className="h-9 w-full rounded-lg bg-transparent pr-2.5 pl-9.5 text-sm placeholder:text-faint hover:bg-hover focus:bg-hover pointer-coarse:h-11"
        />
      </search>
      {hasShared && (
        <fieldset className="mx-2.5 mb-1 flex gap-1">
          <legend className="sr-only">Which chats</legend>
          {Object.entries(SHOWN).map(([value, name]) => (
            <label
              key={value}
              className={cn(
                'flex h-7 cursor-pointer items-center rounded-md px-2.5 text-xs has-focus-visible:outline-2 has-focus-visible:outline-accent pointer-coarse:h-11',
                shows === value ? 'bg-active font-medium text-ink' : 'text-muted hover:bg-hover',
              )}
            >
              <input
                type="radio"
                name="shown-chats"
                checked={shows === value}
                onChange={() => setChosen(value === 'shared' ? 'shared' : 'all')}
                className="sr-only"
              />
              {name}
            </label>
          ))}
        </fieldset>
      )}
      <nav aria-label="Chats" className="min-h-0 flex-1 overflow-y-auto px-2.5 pb-4">
        {problem !== null && <Alert>{problem}</Alert>}
        {found.state === 'failed' && <Alert>{found.problem}</Alert>}
        <p role="status" className="px-2.5 py-3 text-sm text-faint empty:hidden">
          {found.state === 'found' &&
            found.items.length === 0 &&
            (nothingInside ? 'No chat with that name. Nothing in a chat either.' : 'No chat with that name.')}
        </p>
        {sessions?.length === 0 && found.state === 'not asked' && (
          <p className="px-2.5 py-3 text-sm text-faint">
            {me.role === 'guest'
              ? 'Chats that are shared with you appear here.'
              : 'Your chats will appear here.'}
          </p>
        )}
        {groups.map(([name, members]) => (
          <section key={name} aria-label={name}>
            <h2 className="px-2.5 pt-4 pb-1 text-xs font-medium text-faint">{name}</h2>
            <ul className="flex flex-col gap-px">
              {members.map((summary) => (
                <SessionItem
                  key={summary.sessionId}
                  summary={summary}
                  active={summary.sessionId === activeId}
                  onDelete={setDoomed}
                  onPick={props.onPick}
                />
              ))}
            </ul>
          </section>
        ))}
        {(found.state === 'found' ? found.next !== null : more && found.state === 'not asked') && (
          <Button
            size="sm"
            variant="ghost"
            className="mt-2"
            onClick={() => void (found.state === 'found' ? findMore() : chat.loadOlder()).then(setProblem)}
          >
            Show older chats
          </Button>
        )}
        {wanted.trim() !== '' && (
          <SearchResults text={wanted} onPick={props.onPick} onNothing={setNothingInside} />
        )}
      </nav>
      <div className="border-t border-line p-2.5">
        <button
          type="button"
          onClick={props.onSettings}
          className="flex w-full items-center gap-2.5 rounded-lg px-2 py-1.5 text-left hover:bg-hover"
        >
          <span
            className="flex size-7 shrink-0 items-center justify-center rounded-full bg-accent-wash text-xs font-semibold text-accent"
            aria-hidden
          >
            {me.name.slice(0, 1).toUpperCase()}
          </span>
          <span className="min-w-0 flex-1">
            <span className="block truncate text-sm font-medium">{me.name}</span>
            <span className="block truncate text-xs text-faint">{me.email}</span>
          </span>
          <Settings className="size-4 shrink-0 text-faint" aria-hidden />
          <span className="sr-only">Settings</span>
        </button>
      </div>
      <Confirm
        open={doomed !== null}
        onOpenChange={(open) => !open && setDoomed(null)}
        title="Delete this chat?"
        description={`“${doomed?.title ?? 'New chat'}” and its saved outputs are deleted. Files in your workspace stay.`}
        action="Delete"
        onConfirm={() => doomed !== null && remove(doomed)}
      />
    </div>
  )
}

const SHOWN = { all: 'All', shared: 'Shared with me' }

/** As the list knows them now, where it does: what runs there, and what waits. */
function foundGroup(
  found: readonly SessionSummary[],
  known: readonly SessionSummary[],
): [string, SessionSummary[]][] {
  if (found.length === 0) return []
  const byId = new Map(known.map((summary) => [summary.sessionId, summary]))
  return [['Found', found.map((summary) => byId.get(summary.sessionId) ?? summary)]]
}

function grouped(sessions: readonly SessionSummary[]): [string, SessionSummary[]][] {
  const now = Date.now()
  return [...Map.groupBy(sessions, (summary) => ageGroup(summary.updatedAt, now))]
}

/** Ask before something that cannot be undone. */
function Confirm(props: {
  open: boolean
  onOpenChange: (open: boolean) => void
  title: string
  description: string
  action: string
  onConfirm: () => void
}) {
  return (
    <AlertDialog.Root open={props.open} onOpenChange={props.onOpenChange}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className="backdrop fixed inset-0 z-40 bg-black/40" />
        <AlertDialog.Popup className="popup fixed top-1/2 left-1/2 z-50 w-96 max-w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 rounded-2xl border border-line bg-raised p-5 shadow-3 outline-none">
          <AlertDialog.Title className="text-base font-semibold">{props.title}</AlertDialog.Title>
          <AlertDialog.Description className="mt-1.5 text-sm text-muted">
            {props.description}
          </AlertDialog.Description>
          <div className="mt-5 flex justify-end gap-2">
            <AlertDialog.Close render={<Button />}>Cancel</AlertDialog.Close>
            <AlertDialog.Close render={<Button variant="danger" />} onClick={props.onConfirm}>
              {props.action}
            </AlertDialog.Close>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  )
}
