/** Everything that can be done and every chat, by a few letters. */
import { Autocomplete } from '@base-ui/react/autocomplete'
import { Dialog } from '@base-ui/react/dialog'
import { MessageSquare, Search } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { useChatState } from '../state/chat-context.ts'
import { useNamed } from '../search/use-search.ts'
import { Kbd } from '../ui/kbd.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { type FrameActions, type PaletteGroup, type PaletteItem, useActions } from './actions.ts'

/** Chats that are offered before anything is typed. */
const RECENT = 5
const MOST_FOUND = 8

/** `typed`: while it was being loaded. */
export default function Palette(props: { frame: FrameActions; typed: string; onClose: () => void }) {
  const [text, setText] = useState(props.typed)
  const actions = useActions(props.frame)
  const chats = useChats(text)
  const groups = useMemo(() => matching(text, [chats, ...actions]), [text, chats, actions])
  const run = (item: PaletteItem) => {
    props.onClose()
    // The dialog gives the focus back first, and what opens takes it from there.
    setTimeout(item.run, 0)
  }
  return (
    <Dialog.Root open onOpenChange={(open) => !open && props.onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop fixed inset-0 z-40 bg-black/40" />
        <Dialog.Popup
          aria-label="Chats and actions"
          className="popup fixed top-[max(1rem,12vh)] left-1/2 z-50 flex max-h-[min(32rem,calc(100dvh-2rem))] w-[38rem] max-w-[calc(100vw-2rem)] -translate-x-1/2 flex-col overflow-hidden rounded-2xl border border-line bg-raised shadow-3 outline-none"
        >
          <Autocomplete.Root
            open
            inline
            items={groups}
            // Filtered here, words in any order.
            filter={null}
            autoHighlight="always"
            keepHighlight
            value={text}
            onValueChange={(value, { reason }) => reason !== 'item-press' && setText(value)}
            itemToStringValue={(item: PaletteItem) => item.label}
          >
            <PaletteInput />
            <div className="min-h-0 flex-1 overflow-y-auto p-1.5">
              <Autocomplete.Empty className="px-2.5 py-6 text-center text-sm text-muted empty:hidden">
                {groups.length === 0 && 'No results.'}
              </Autocomplete.Empty>
              <Autocomplete.List>
                {(group: PaletteGroup) => (
                  <Autocomplete.Group key={group.title} items={group.items} className="not-last:mb-1.5">
                    <Autocomplete.GroupLabel className="px-2.5 pt-2 pb-1 text-xs font-medium text-faint">
                      {group.title}
                    </Autocomplete.GroupLabel>
                    <Autocomplete.Collection>
                      {(item: PaletteItem) => <PaletteRow key={item.id} item={item} onRun={run} />}
                    </Autocomplete.Collection>
                  </Autocomplete.Group>
                )}
              </Autocomplete.List>
            </div>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function PaletteInput() {
  return (
    <Autocomplete.InputGroup className="flex items-center gap-2.5 border-b border-line px-4">
      <Search className="size-4 shrink-0 text-faint" aria-hidden />
      <Autocomplete.Input
        aria-label="Find a chat or an action"
        // After the typed text, not over it.
        onFocus={({ currentTarget }) =>
          currentTarget.setSelectionRange(currentTarget.value.length, currentTarget.value.length)
        }
        placeholder="Find a chat or an action"
        maxLength={200}
        className="h-12 w-full bg-transparent text-base outline-none placeholder:text-faint"
      />
    </Autocomplete.InputGroup>
  )
}

function PaletteRow({ item, onRun }: { item: PaletteItem; onRun: (item: PaletteItem) => void }) {
  return (
    <Autocomplete.Item
      value={item}
      onClick={() => onRun(item)}
      className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm outline-none data-highlighted:bg-hover pointer-coarse:min-h-11"
    >
      <item.icon className="size-4 shrink-0 text-muted" aria-hidden />
      <span dir="auto" className="min-w-0 flex-1 truncate">
        <Revealed text={item.label} />
      </span>
      {item.keys !== undefined && (
        <span className="text-faint">
          <Kbd keys={item.keys} />
        </span>
      )}
    </Autocomplete.Item>
  )
}

/** The newest, or those with these words in their names. */
function useChats(text: string): PaletteGroup {
  const [, navigate] = useLocation()
  const sessions = useChatState((state) => state.sessions)
  const activeId = useChatState((state) => state.activeId)
  const { found } = useNamed(text)
  const asked = text.trim() !== ''
  const shown = asked
    ? found.state === 'found'
      ? found.items.slice(0, MOST_FOUND)
      : []
    : (sessions ?? []).filter(({ sessionId }) => sessionId !== activeId).slice(0, RECENT)
  return {
    title: asked ? 'Chats' : 'Newest chats',
    items: shown.map(({ sessionId, title }) => ({
      id: sessionId,
      label: title ?? 'New chat',
      icon: MessageSquare,
      run: () => navigate(`/s/${sessionId}`),
    })),
  }
}

/** Groups without what does not have every word. The first one was found by the service. */
function matching(text: string, [chats, ...actions]: PaletteGroup[]): PaletteGroup[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const has = ({ label }: PaletteItem) => words.every((word) => label.toLowerCase().includes(word))
  const left = actions.map(({ title, items }) => ({ title, items: items.filter(has) }))
  return [...(chats === undefined ? [] : [chats]), ...left].filter(({ items }) => items.length > 0)
}
