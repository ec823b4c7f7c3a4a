/** What is in the person's workspace: looked at, saved, added to. */
import { Dialog } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { IconButton } from '../ui/button.tsx'
import { Files } from './files.tsx'

export function FilesDialog(props: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Dialog.Root open={props.open} onOpenChange={props.onOpenChange}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop fixed inset-0 z-40 bg-black/40" />
        <Dialog.Popup className="popup fixed top-1/2 left-1/2 z-50 flex h-[min(38rem,calc(100dvh-2rem))] w-[38rem] max-w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 flex-col overflow-hidden rounded-2xl border border-line bg-raised shadow-3 outline-none">
          <div className="flex items-center justify-between border-b border-line py-3 pr-3 pl-5">
            <Dialog.Title className="text-base font-semibold">Files</Dialog.Title>
            <Dialog.Close render={<IconButton label="Close" className="max-md:size-11" />}>
              <X aria-hidden />
            </Dialog.Close>
          </div>
          {/* Made anew each time it is opened: what the agent wrote meanwhile is there. */}
          <Files />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
