import { Settings, SquarePen } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { useChat, useChatState } from '../state/chat-context.ts'
import { cn } from '../lib/cn.ts'
import { useOwnKeys } from '../lib/own-keys.ts'
import { keysOf } from '../lib/shortcuts.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Kbd } from '../ui/kbd.tsx'
import { LogoMark } from '../ui/logo.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { ChatList } from './chat-list.tsx'
import { beginIn, useChatListState } from '../state/chat-list-state.ts'
import { SearchBox, SearchResults } from '../search/search-results.tsx'
import { useNamed } from '../search/use-search.ts'

/**
 * Brand, new chat, the list of sessions, and the person. `onPick`: something was chosen; a drawer
 * closes then.
 */
export function Sidebar(props: { onPick: () => void; onSettings: () => void }) {
  const { me } = useChat()
  const sessions = useChatState((state) => state.sessions)
  const doomed = useChatListState((state) => state.doomed)
  const [problem, setProblem] = useState<string | null>(null)
  const [wanted, setWanted] = useState('')
  const { found, more } = useNamed(wanted)
  const [nothingInside, setNothingInside] = useState(false)
  const hasShared = sessions?.some(({ owner }) => owner !== undefined) === true
  const [chosen, setChosen] = useState<'all' | 'shared'>('all')
  const shows = hasShared ? chosen : 'all'
  const named = found.state === 'found' ? found.items.filter(({ sessionId }) => !doomed.has(sessionId)) : null
  return (
    <div className="flex h-full flex-col bg-panel">
      <div className="flex h-13 items-center gap-2.5 px-4">
        <LogoMark className="size-6" />
        <span className="text-base font-semibold tracking-tight">Sandlot</span>
      </div>
      {me.role !== 'guest' && <NewChatLink onPick={props.onPick} />}
      <SearchBox wanted={wanted} onWanted={setWanted} />
      {hasShared && <SharedFilter shows={shows} onChoose={setChosen} />}
      <nav aria-label="Chats" className="min-h-0 flex-1 overflow-y-auto px-2.5 pb-4">
        {problem !== null && <Alert>{problem}</Alert>}
        {found.state === 'failed' && <Alert>{found.problem}</Alert>}
        <p role="status" className="px-2.5 py-3 text-sm text-faint empty:hidden">
          {named?.length === 0 && (nothingInside ? 'No results.' : 'No results.')}
        </p>
        {sessions === null && (
          <p role="status" className="flex items-center gap-2 px-2.5 py-3 text-sm text-faint">
            <Spinner className="size-3.5" /> Loading your chats…
          </p>
        )}
        {sessions?.length === 0 && found.state === 'not asked' && (
          <p className="px-2.5 py-3 text-sm text-faint">
            {me.role === 'guest' ? 'Chats shared with you appear here.' : 'Your chats will appear here.'}
          </p>
        )}
        {found.state !== 'looking' && (
          <ChatList found={named} shared={shows === 'shared'} onPick={props.onPick} />
        )}
        {found.state === 'found' && found.next !== null && (
          <Button size="sm" variant="ghost" className="mt-2" onClick={() => void more().then(setProblem)}>
            Show older chats
          </Button>
        )}
        {wanted.trim() !== '' && (
          <SearchResults text={wanted} onPick={props.onPick} onNothing={setNothingInside} />
        )}
      </nav>
      <OwnAccount onSettings={props.onSettings} />
    </div>
  )
}

function NewChatLink({ onPick }: { onPick: () => void }) {
  const own = useOwnKeys()
  return (
    <div className="px-2.5 pb-2">
      <Link
        href="/"
        onClick={() => {
          beginIn(null)
          onPick()
        }}
        data-testid="new-chat"
        className="flex h-9 items-center gap-2.5 rounded-lg border border-line-strong bg-raised px-2.5 text-sm font-medium shadow-1 hover:bg-hover max-md:h-11"
      >
        <SquarePen className="size-4 text-muted" aria-hidden />
        <span className="flex-1">New chat</span>
        <span className="text-faint">
          <Kbd keys={keysOf('new-chat', own)} />
        </span>
      </Link>
    </div>
  )
}

function SharedFilter(props: { shows: 'all' | 'shared'; onChoose: (shown: 'all' | 'shared') => void }) {
  const { shows } = props
  return (
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
            onChange={() => props.onChoose(value === 'shared' ? 'shared' : 'all')}
            className="sr-only"
          />
          {name}
        </label>
      ))}
    </fieldset>
  )
}

function OwnAccount({ onSettings }: { onSettings: () => void }) {
  const { me } = useChat()
  return (
    <div className="border-t border-line p-2.5">
      <button
        type="button"
        onClick={onSettings}
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
  )
}

const SHOWN = { all: 'All', shared: 'Shared with me' }
