import { Menu } from '@base-ui/react/menu'
import { Ellipsis, FileText, Pencil } from 'lucide-react'
import { useRef, useState } from 'react'
import { saveText } from '../lib/save-text.ts'
import { asMarkdown } from './as-markdown.ts'
import { useChat, useChatState } from './chat-context.ts'
import { RenameDialog } from './rename-dialog.tsx'

const ITEM =
  'flex h-9 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm outline-none data-highlighted:bg-hover pointer-coarse:h-11'

/** What can be done with the chat on the screen as a whole. Nothing while there is none. */
export function ChatMenu(props: { title: string }) {
  const { chat } = useChat()
  const sessionId = useChatState((state) => state.activeId)
  const known = useChatState(
    ({ activeId, views }) => activeId !== null && (views[activeId]?.transcript.seq ?? 0) > 0,
  )
  const [renaming, setRenaming] = useState(false)
  // Inside the page’s landmark, not at the end of the body.
  const host = useRef<HTMLDivElement>(null)
  if (sessionId === null || !known) return null
  const save = () => {
    const entries = chat.store.getState().views[sessionId]?.transcript.entries ?? []
    saveText(`${fileName(props.title)}.md`, asMarkdown(props.title, entries))
  }
  return (
    <div ref={host}>
      <Menu.Root>
        <Menu.Trigger
          aria-label="More about this chat"
          title="More about this chat"
          className="inline-flex size-8 items-center justify-center rounded-lg text-muted hover:bg-hover hover:text-ink data-popup-open:bg-hover max-md:size-11"
        >
          <Ellipsis className="size-4" aria-hidden />
        </Menu.Trigger>
        <Menu.Portal container={host}>
          <Menu.Positioner positionMethod="fixed" side="bottom" align="end" sideOffset={4} className="z-50">
            <Menu.Popup className="popup min-w-52 rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none">
              <Menu.Item className={ITEM} onClick={() => setRenaming(true)}>
                <Pencil className="size-4 text-muted" aria-hidden /> Rename…
              </Menu.Item>
              <Menu.Item className={ITEM} onClick={save}>
                <FileText className="size-4 text-muted" aria-hidden /> Save as Markdown
              </Menu.Item>
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
      {renaming && (
        <RenameDialog sessionId={sessionId} title={props.title} onClose={() => setRenaming(false)} />
      )}
    </div>
  )
}

/** What every file system takes as a name. */
function fileName(title: string): string {
  const words = title.match(/[\p{L}\p{M}\p{N}_-]+/gu) ?? ['chat']
  return words.join(' ').slice(0, 80).trim()
}
