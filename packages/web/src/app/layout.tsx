/** The frame of the signed-in app: sidebar (a drawer on small screens), header, page. */
import { Menu as MenuIcon, PanelLeft, PanelRight, SquarePen, WifiOff } from 'lucide-react'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { useLocation } from 'wouter'
import { useChat, useChatState } from '../state/chat-context.ts'
import { ChatMenu, RenameDialog } from '../chat/chat-menu.tsx'
import { PendingButton } from '../chat/approvals/pending-button.tsx'
import { PeopleHere } from '../chat/sharing/people-here.tsx'
import { useReadingOf } from '../state/reading.ts'
import { useGlobalKeys } from '../chat/use-global-keys.ts'
import { useWorkspace } from '../state/use-workspace.ts'
import type { FrameActions } from './actions.ts'
import { copyLastCode, copyLastReply } from './copy-last.ts'
import { browserStorage } from '../lib/storage.ts'
import { useIsWide } from '../lib/wide.ts'
import { ShortcutsDialog } from '../settings/shortcuts.tsx'
import { EMPTY_VIEW } from '../state/chat-state.ts'
import { useDeleteChats } from '../sidebar/use-delete-chats.ts'
import { Sidebar } from '../sidebar/sidebar.tsx'
import { IconButton } from '../ui/button.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { useNow } from '../lib/use-now.ts'
import type { ConnectionState } from '../net/connection.ts'
import { Spinner } from '../ui/spinner.tsx'
import { Dialog } from '../ui/on-demand.tsx'

// Loaded when it is opened first. The palette knows every section of the settings.
const Dock = lazy(() => import('../workspace/dock.tsx'))
const Palette = lazy(() => import('./palette.tsx'))
const ShareDialog = lazy(() => import('../chat/sharing/share-dialog.tsx'))

const SIDEBAR_KEY = 'sandlot.sidebar'

export function Layout(props: { children: ReactNode }) {
  const sidebar = useSidebar()
  const [palette, setPalette] = useState(false)
  const [renaming, setRenaming] = useState(false)
  const [sharing, setSharing] = useState(false)
  const [shortcuts, setShortcuts] = useState(false)
  const sessionId = useChatState((state) => state.activeId)
  const { me } = useChat()
  const title = useTitle()
  useLayoutKeys(sidebar, { palette: () => setPalette(true), shortcuts: () => setShortcuts(true) })
  return (
    <div className="flex h-full">
      <SidebarFrame {...sidebar} />
      <main className="flex min-w-0 flex-1 flex-col bg-canvas">
        <Header
          sidebar={sidebar}
          title={title}
          onShare={() => setSharing(true)}
          onRename={() => setRenaming(true)}
        />
        <ConnectionBanner />
        {props.children}
      </main>
      {me.role !== 'guest' && <OpenedDock />}
      {sharing && sessionId !== null && (
        <Suspense fallback={null}>
          <ShareDialog sessionId={sessionId} onClose={() => setSharing(false)} />
        </Suspense>
      )}
      {renaming && sessionId !== null && (
        <RenameDialog sessionId={sessionId} title={title} onClose={() => setRenaming(false)} />
      )}
      {palette && (
        <LazyPalette
          frame={{
            toggleSidebar: sidebar.toggle,
            share: () => setSharing(true),
            rename: () => setRenaming(true),
            showShortcuts: () => setShortcuts(true),
            focusComposer,
          }}
          onClose={() => setPalette(false)}
        />
      )}
      <ShortcutsDialog open={shortcuts} onOpenChange={setShortcuts} />
    </div>
  )
}

/** Stays after it was open once, closed or not. */
function OpenedDock() {
  const isOpen = useWorkspace(({ panel }) => panel !== null)
  const [opened, setOpened] = useState(isOpen)
  if (isOpen && !opened) setOpened(true)
  return (
    opened && (
      <Suspense fallback={null}>
        <Dock />
      </Suspense>
    )
  )
}

type SidebarState = ReturnType<typeof useSidebar>

/** On a wide screen shown or hidden, else a drawer. */
function useSidebar() {
  const wide = useIsWide()
  const [shown, setShown] = useState(() => browserStorage('local').get(SIDEBAR_KEY) !== 'hidden')
  const [drawer, setDrawer] = useState(false)
  const [, navigate] = useLocation()
  const toggle = () => {
    if (!wide) return setDrawer(!drawer)
    browserStorage('local').set(SIDEBAR_KEY, shown ? 'hidden' : 'shown')
    setShown(!shown)
  }
  const openSettings = () => {
    setDrawer(false)
    navigate('/settings')
  }
  return { wide, shown, drawer, setDrawer, toggle, openSettings }
}

function useLayoutKeys(sidebar: SidebarState, open: { palette: () => void; shortcuts: () => void }): void {
  const [, navigate] = useLocation()
  const { chat, me } = useChat()
  const workspace = useWorkspace()
  const sessionId = useChatState((state) => state.activeId)
  const ownsChat = useReadingOf(sessionId).access === 'own'
  const deleteChats = useDeleteChats()
  const entries = () => chat.store.getState().views[sessionId ?? '']?.transcript.entries
  useGlobalKeys((shortcut) => {
    if (shortcut === 'new-chat') navigate('/')
    else if (shortcut === 'toggle-sidebar') sidebar.toggle()
    else if (shortcut === 'settings') sidebar.openSettings()
    else if (shortcut === 'palette') open.palette()
    else if (shortcut === 'toggle-workspace' && me.role !== 'guest') workspace.toggle()
    else if (shortcut === 'copy-reply') copyLastReply(entries())
    else if (shortcut === 'delete-chat' && ownsChat && sessionId !== null) deleteChats([sessionId])
    else if (shortcut === 'copy-code') copyLastCode(entries())
    else if (shortcut === 'shortcuts') open.shortcuts()
    else return false
    return true
  })
}

function SidebarFrame({ wide, shown, drawer, setDrawer, openSettings }: SidebarState) {
  return (
    <>
      {wide && shown && (
        <aside aria-label="Sidebar" className="w-66 shrink-0 border-r border-line">
          <Sidebar onPick={() => undefined} onSettings={openSettings} />
        </aside>
      )}
      {!wide && (
        <Dialog.Root open={drawer} onOpenChange={setDrawer}>
          <Dialog.Portal>
            <Dialog.Backdrop className="backdrop fixed inset-0 z-30 bg-black/40" />
            <Dialog.Popup className="drawer fixed inset-y-0 left-0 z-40 w-[min(20rem,85vw)] border-r border-line shadow-3 outline-none">
              <Dialog.Title className="sr-only">Chats</Dialog.Title>
              <Sidebar onPick={() => setDrawer(false)} onSettings={openSettings} />
            </Dialog.Popup>
          </Dialog.Portal>
        </Dialog.Root>
      )}
    </>
  )
}

function Header(props: { sidebar: SidebarState; title: string; onShare: () => void; onRename: () => void }) {
  const { title } = props
  const { wide, shown, toggle } = props.sidebar
  const [, navigate] = useLocation()
  const { me } = useChat()
  const workspace = useWorkspace()
  const isGuest = me.role === 'guest'
  return (
    <header className="flex h-13 shrink-0 items-center gap-1 px-2.5">
      <IconButton label={wide ? 'Toggle sidebar' : 'Open chats'} onClick={toggle} className="max-md:size-11">
        {wide ? <PanelLeft aria-hidden /> : <MenuIcon aria-hidden />}
      </IconButton>
      <Title title={title} />
      <PendingButton />
      <PeopleHere onShare={props.onShare} />
      <ChatMenu title={title} onShare={props.onShare} onRename={props.onRename} />
      {!isGuest && (
        <IconButton
          label="Workspace"
          aria-expanded={workspace.panel !== null}
          onClick={workspace.toggle}
          className="max-md:size-11"
        >
          <PanelRight aria-hidden />
        </IconButton>
      )}
      {!isGuest && (!wide || !shown) && (
        <IconButton label="New chat" onClick={() => navigate('/')} className="max-md:size-11">
          <SquarePen aria-hidden />
        </IconButton>
      )}
    </header>
  )
}

function LazyPalette({ frame, onClose }: { frame: FrameActions; onClose: () => void }) {
  const [typed, setTyped] = useState('')
  return (
    <Suspense fallback={<PaletteField typed={typed} onTyped={setTyped} onClose={onClose} />}>
      <Palette typed={typed} frame={frame} onClose={onClose} />
    </Suspense>
  )
}

/** Takes what is typed while the palette is being loaded, in its place. */
function PaletteField(props: { typed: string; onTyped: (text: string) => void; onClose: () => void }) {
  return (
    <div className="fixed top-[max(1rem,12vh)] left-1/2 z-50 w-[38rem] max-w-[calc(100vw-2rem)] -translate-x-1/2 rounded-2xl border border-line bg-raised shadow-3">
      <input
        ref={(field) => field?.focus()}
        aria-label="Find a chat or an action"
        placeholder="Find a chat or an action"
        value={props.typed}
        maxLength={200}
        onChange={({ target }) => props.onTyped(target.value)}
        onKeyDown={(event) => event.key === 'Escape' && props.onClose()}
        className="h-12 w-full rounded-2xl bg-transparent px-4 text-base outline-none placeholder:text-faint"
      />
    </div>
  )
}

function focusComposer() {
  document.getElementById('composer')?.focus()
}

/** The title of the open chat; empty while there is none. */
function useTitle(): string {
  return useChatState((state) => {
    const { activeId } = state
    if (activeId === null) return ''
    const { missing, sync, transcript } = state.views[activeId] ?? EMPTY_VIEW
    if (missing) return ''
    const summary = state.sessions?.find((known) => known.sessionId === activeId)
    // While it is loaded nothing says that it has no name.
    return transcript.title ?? summary?.title ?? (sync === 'loading' ? '' : 'New chat')
  })
}

function Title(props: { title: string }) {
  const { title } = props
  const Tag = title === '' ? 'div' : 'h1'
  return (
    <Tag
      dir="auto"
      className="min-w-0 flex-1 truncate px-1 text-sm font-medium text-muted"
      data-testid="session-title"
    >
      <Revealed text={title} />
    </Tag>
  )
}

/**
 * Says that the connection is gone, and that nothing is lost by it. Not shown while a page starts
 * or for a blink.
 */
function ConnectionBanner() {
  const { chat } = useChat()
  const connection = useChatState((state) => state.connection)
  const everOpen = useChatState((state) => state.everOpen)
  const shown =
    connection.status === 'offline' ||
    connection.status === 'waiting' ||
    (everOpen && connection.status === 'connecting')
  return (
    <div data-testid="connection-state" data-status={connection.status} role="status">
      {shown && (
        <div className="flex flex-wrap items-center justify-center gap-x-2.5 gap-y-1 border-b border-waiting-line bg-waiting-wash px-4 py-1.5 text-xs text-waiting">
          {connection.status === 'connecting' ? (
            <Spinner className="size-3.5" />
          ) : (
            <WifiOff className="size-3.5" aria-hidden />
          )}
          <Words connection={connection} everOpen={everOpen} />
          {connection.status !== 'connecting' && (
            <button
              type="button"
              onClick={() => chat.wake()}
              className="rounded font-semibold underline underline-offset-2 pointer-coarse:-my-2 pointer-coarse:min-h-11 pointer-coarse:min-w-11"
            >
              Try now
            </button>
          )}
        </div>
      )}
    </div>
  )
}

function Words(props: { connection: ConnectionState; everOpen: boolean }) {
  const { connection } = props
  const now = useNow(connection.status === 'waiting')
  if (connection.status === 'connecting') return <span>Reconnecting…</span>
  if (connection.status === 'offline') {
    return (
      <span>You’re offline. Running work continues, and your messages will be sent when you’re back.</span>
    )
  }
  const seconds =
    connection.status === 'waiting' ? Math.max(1, Math.ceil((connection.retryAt - now) / 1000)) : 1
  const lost = props.everOpen ? 'Connection lost. Your work keeps running.' : 'Can’t reach Sandlot.'
  return (
    <span>
      {lost} <span aria-hidden>Next try in {seconds} s.</span>
    </span>
  )
}
