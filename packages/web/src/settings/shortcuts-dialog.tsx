import { Dialog } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { IconButton } from '../ui/button.tsx'
import { ShortcutList } from './shortcut-list.tsx'

export function ShortcutsDialog(props: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Dialog.Root open={props.open} onOpenChange={props.onOpenChange}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop fixed inset-0 z-40 bg-black/40" />
        <Dialog.Popup className="popup fixed top-1/2 left-1/2 z-50 flex max-h-[calc(100dvh-2rem)] w-[30rem] max-w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 flex-col rounded-2xl border border-line bg-raised shadow-3 outline-none">
          <div className="flex items-center justify-between border-b border-line py-3 pr-3 pl-5">
            <Dialog.Title className="text-base font-semibold">Keyboard</Dialog.Title>
            <Dialog.Close render={<IconButton label="Close" className="max-md:size-11" />}>
              <X aria-hidden />
            </Dialog.Close>
          </div>
          {/* Focusable, so that the keyboard can scroll it. */}
          <div className="overflow-y-auto p-5" tabIndex={0} role="group" aria-label="Keys">
            <ShortcutList />
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
