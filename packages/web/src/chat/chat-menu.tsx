import { Braces, Ellipsis, FileCode, FileText, Pencil, Share2 } from 'lucide-react'
import { useRef, useState } from 'react'
import { MAX_TITLE_CHARS } from '@sandlot/shared/chat/frames'
import { useChatState } from '../state/chat-context.ts'
import { useReadingOf } from '../state/reading.ts'
import { useSubmit } from '../auth/use-submit.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { Dialog, Menu } from '../ui/on-demand.tsx'

const ITEM =
  'flex h-9 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm outline-none data-highlighted:bg-hover pointer-coarse:h-11'

const SAVED_AS = [
  { format: 'markdown', name: 'Markdown', icon: FileText },
  { format: 'html', name: 'HTML', icon: FileCode },
  { format: 'json', name: 'JSON', icon: Braces },
]

/** Actions on the open chat as a whole. Nothing while there is none. */
export function ChatMenu(props: { title: string; onShare: () => void; onRename: () => void }) {
  const sessionId = useChatState((state) => state.activeId)
  const known = useChatState(
    ({ activeId, views }) => activeId !== null && (views[activeId]?.transcript.seq ?? 0) > 0,
  )
  // Inside the page’s landmark, not at the end of the body.
  const host = useRef<HTMLDivElement>(null)
  const reading = useReadingOf(sessionId)
  if (sessionId === null || !known) return null
  return (
    <div ref={host}>
      <Menu.Root>
        <Menu.Trigger
          aria-label="Chat options"
          title="Chat options"
          className="inline-flex size-8 items-center justify-center rounded-lg text-muted hover:bg-hover hover:text-ink data-popup-open:bg-hover max-md:size-11"
        >
          <Ellipsis className="size-4" aria-hidden />
        </Menu.Trigger>
        <Menu.Portal container={host}>
          <Menu.Positioner positionMethod="fixed" side="bottom" align="end" sideOffset={4} className="z-50">
            <Menu.Popup className="popup min-w-52 rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none">
              {reading.access === 'own' && (
                <>
                  <Menu.Item className={ITEM} onClick={props.onShare}>
                    <Share2 className="size-4 text-muted" aria-hidden /> Share…
                  </Menu.Item>
                  <Menu.Item className={ITEM} onClick={props.onRename}>
                    <Pencil className="size-4 text-muted" aria-hidden /> Rename…
                  </Menu.Item>
                </>
              )}
              {SAVED_AS.map(({ format, name, icon: Icon }) => (
                <Menu.Item
                  key={format}
                  className={ITEM}
                  render={
                    <a
                      href={`/api/sessions/${encodeURIComponent(sessionId)}/export?format=${format}`}
                      download
                    />
                  }
                >
                  <Icon className="size-4 text-muted" aria-hidden /> Save as {name}
                </Menu.Item>
              ))}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </div>
  )
}

/** The service sends the new name to all tabs. */
export function RenameDialog(props: { sessionId: string; title: string; onClose: () => void }) {
  const [title, setTitle] = useState(props.title)
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('renameChat', { params: { id: props.sessionId }, body: { title: title.trim() } })
    props.onClose()
  })
  return (
    <Dialog.Root open onOpenChange={(open) => !open && props.onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop fixed inset-0 z-40 bg-black/40" />
        <Dialog.Popup className="popup fixed top-1/2 left-1/2 z-50 w-96 max-w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 rounded-2xl border border-line bg-raised p-5 shadow-3 outline-none">
          <Dialog.Title className="text-base font-semibold">Rename this chat</Dialog.Title>
          <form onSubmit={onSubmit} className="mt-4 flex flex-col gap-4">
            {problem !== null && <Alert>{problem}</Alert>}
            <Field
              label="Name"
              value={title}
              maxLength={MAX_TITLE_CHARS}
              required
              autoComplete="off"
              onFocus={(event) => event.target.select()}
              onChange={(event) => setTitle(event.target.value)}
            />
            <div className="flex justify-end gap-2">
              <Button className="max-md:h-11" onClick={props.onClose}>
                Cancel
              </Button>
              <Button
                type="submit"
                variant="primary"
                className="max-md:h-11"
                disabled={busy || title.trim() === ''}
              >
                Rename
              </Button>
            </div>
          </form>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
