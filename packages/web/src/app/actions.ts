/** Actions of the palette, in their groups. */
import { MODES, type Mode, isWithin } from '@sandlot/shared/chat/mode'
import {
  ArrowDownToDot,
  Copy,
  FileCode,
  Inbox,
  Keyboard,
  type LucideIcon,
  LogOut,
  Monitor,
  Moon,
  PanelLeft,
  PanelRight,
  PencilLine,
  Share2,
  Square,
  SquarePen,
  Sun,
  Trash2,
} from 'lucide-react'
import { useLocation } from 'wouter'
import { call } from '../net/call.ts'
import { usePendingList } from '../chat/approvals/pending-button.tsx'
import { useChat, useChatState } from '../state/chat-context.ts'
import { MODE_WORDS } from '../chat/composer/mode-menu.tsx'
import { useReadingOf } from '../state/reading.ts'
import { PANELS } from '../workspace/dock.tsx'
import { useWorkspace } from '../state/use-workspace.ts'
import { ownKeys } from '../lib/own-keys.ts'
import { type Shortcut, keysOf } from '../lib/shortcuts.ts'
import { setTheme } from '../lib/theme.ts'
import { groupsOf } from '../settings/sections.tsx'
import { useDeleteChats } from '../sidebar/use-delete-chats.ts'
import { isBusy } from '../state/chat-state.ts'
import { copyLastCode, copyLastReply } from './copy-last.ts'

export interface PaletteItem {
  id: string
  label: string
  icon: LucideIcon
  keys?: string
  run: () => void
}

export interface PaletteGroup {
  title: string
  items: readonly PaletteItem[]
}

/** Actions of the page's frame. */
export interface FrameActions {
  toggleSidebar: () => void
  share: () => void
  rename: () => void
  showShortcuts: () => void
  focusComposer: () => void
}

export function useActions(frame: FrameActions): PaletteGroup[] {
  return [
    { title: 'This chat', items: useChatActions(frame) },
    { title: 'View', items: useViewActions(frame) },
    { title: 'Settings', items: useSettingsActions() },
  ]
}

const ofKey = (shortcut: Shortcut) => ({ id: shortcut, keys: keysOf(shortcut, ownKeys()) })

function useChatActions(frame: FrameActions): PaletteItem[] {
  const { chat, me } = useChat()
  const [, navigate] = useLocation()
  const sessionId = useChatState((state) => state.activeId)
  const known = useChatState(({ views }) => sessionId !== null && (views[sessionId]?.transcript.seq ?? 0) > 0)
  const busy = useChatState((state) => isBusy(state, sessionId))
  const { access } = useReadingOf(sessionId)
  const own = known && access === 'own'
  const deleteChats = useDeleteChats()
  const entries = () =>
    sessionId === null ? undefined : chat.store.getState().views[sessionId]?.transcript.entries
  const items: (PaletteItem | false)[] = [
    me.role !== 'guest' && {
      ...ofKey('new-chat'),
      label: 'New chat',
      icon: SquarePen,
      run: () => navigate('/'),
    },
    busy &&
      access !== 'watch' && {
        ...ofKey('stop'),
        label: 'Stop the agent',
        icon: Square,
        run: () => chat.stopPrompt(sessionId),
      },
    access !== 'watch' && {
      ...ofKey('focus-composer'),
      label: 'Focus the message box',
      icon: ArrowDownToDot,
      run: frame.focusComposer,
    },
    known && {
      ...ofKey('copy-reply'),
      label: 'Copy the last answer',
      icon: Copy,
      run: () => copyLastReply(entries()),
    },
    known && {
      ...ofKey('copy-code'),
      label: 'Copy the last code block',
      icon: FileCode,
      run: () => copyLastCode(entries()),
    },
    own && { id: 'share', label: 'Share this chat…', icon: Share2, run: frame.share },
    own && {
      ...ofKey('delete-chat'),
      label: 'Delete this chat',
      icon: Trash2,
      run: () => deleteChats(sessionId === null ? [] : [sessionId]),
    },
    own && { id: 'rename', label: 'Rename this chat…', icon: PencilLine, run: frame.rename },
    ...(own ? modeActions(me.modeCeiling, (mode) => chat.setMode(sessionId ?? '', mode)) : []),
  ]
  return items.filter((item) => item !== false)
}

function modeActions(ceiling: Mode | undefined, choose: (mode: Mode) => void): PaletteItem[] {
  return MODES.filter((mode) => isWithin(ceiling, mode)).map((mode) => ({
    id: `mode-${mode}`,
    label: `Approval mode: ${MODE_WORDS[mode].name}`,
    icon: MODE_WORDS[mode].icon,
    run: () => choose(mode),
  }))
}

function useViewActions(frame: FrameActions): PaletteItem[] {
  const { me } = useChat()
  const workspace = useWorkspace()
  const setPending = usePendingList((state) => state.setOpen)
  const guest = me.role === 'guest'
  const items: (PaletteItem | false)[] = [
    ...(guest
      ? []
      : PANELS.map(({ id, label, icon }) => ({
          id: `panel-${id}`,
          label: `Open workspace: ${label}`,
          icon,
          run: () => workspace.open(id),
        }))),
    !guest && {
      ...ofKey('toggle-workspace'),
      label: 'Toggle workspace',
      icon: PanelRight,
      run: workspace.toggle,
    },
    {
      ...ofKey('toggle-sidebar'),
      label: 'Toggle sidebar',
      icon: PanelLeft,
      run: frame.toggleSidebar,
    },
    { id: 'theme-light', label: 'Theme: light', icon: Sun, run: () => setTheme('light') },
    { id: 'theme-dark', label: 'Theme: dark', icon: Moon, run: () => setTheme('dark') },
    { id: 'theme-system', label: 'Theme: system', icon: Monitor, run: () => setTheme('system') },
    {
      ...ofKey('pending'),
      label: 'Approvals waiting for you',
      icon: Inbox,
      run: () => setPending(true),
    },
    { ...ofKey('shortcuts'), label: 'Keyboard shortcuts', icon: Keyboard, run: frame.showShortcuts },
  ]
  return items.filter((item) => item !== false)
}

function useSettingsActions(): PaletteItem[] {
  const { me, onSignedOut } = useChat()
  const [, navigate] = useLocation()
  const settings = groupsOf(me.role)
    .flatMap(({ sections }) => sections)
    .map(({ id, title, icon }) => ({
      id: `settings-${id}`,
      label: `Settings: ${title}`,
      icon,
      run: () => navigate(`/settings/${id}`),
    }))
  const leave = {
    id: 'sign-out',
    label: 'Sign out',
    icon: LogOut,
    run: () => void call('signOut').finally(onSignedOut),
  }
  return [...settings, leave]
}
