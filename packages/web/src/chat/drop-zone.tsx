/** Drop on a chat: files are attached, folders go to the workspace and are named in the message. */
import { messageOf } from '@sandlot/shared/base/errors'
import { ImagePlus, Paperclip } from 'lucide-react'
import { type DragEvent, type ReactNode, useRef, useState } from 'react'
import { useWorkspace } from '../state/use-workspace.ts'
import { splitDrop } from '../state/dropped.ts'
import { ATTACHED, addUploads } from '../state/uploads.ts'
import { showToast } from '../ui/toasts.tsx'

/** Files may be dropped anywhere on what is inside. */
export function DropZone(props: {
  sessionId: string | null
  onlyImages: boolean
  onFiles: (files: readonly File[]) => void
  /** They are on their way to these places in the workspace. */
  onFolders: (folders: readonly string[]) => void
  children: ReactNode
}) {
  const [over, setOver] = useState(false)
  const Icon = props.onlyImages ? ImagePlus : Paperclip
  // Each element inside is entered and left on its own.
  const depth = useRef(0)
  const move = (event: DragEvent, by: number) => {
    if (!event.dataTransfer.types.includes('Files')) return
    event.preventDefault()
    depth.current = Math.max(0, depth.current + by)
    setOver(depth.current > 0)
  }
  return (
    <div
      data-session-page={props.sessionId ?? 'new'}
      className="relative flex min-h-0 flex-1 flex-col"
      onDragEnter={(event) => move(event, 1)}
      onDragOver={(event) => move(event, 0)}
      onDragLeave={(event) => move(event, -1)}
      onDrop={(event) => {
        move(event, -depth.current)
        const { files, folders, entries } = splitDrop(event.dataTransfer, ATTACHED)
        if (files.length > 0) props.onFiles(files)
        if (folders.length === 0) return
        // The handler of files reports that the chat cannot show these.
        if (props.onlyImages) return props.onFiles([...event.dataTransfer.files])
        // There is their progress, and what is there already is asked about.
        useWorkspace.getState().open('files')
        entries().then(addUploads, (error: unknown) => showToast(messageOf(error)))
        props.onFolders(folders)
      }}
    >
      {props.children}
      {over && (
        <div
          aria-hidden
          className="pointer-events-none absolute inset-2 z-20 flex flex-col items-center justify-center gap-2 rounded-2xl border-2 border-dashed border-accent bg-canvas/85 text-base font-medium"
        >
          <Icon className="size-7 text-accent" /> Drop {props.onlyImages ? 'images' : 'files'} to attach them
        </div>
      )}
    </div>
  )
}
