/** A dialog in the middle, with its title and a way to close it above what it holds. */
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from './button.tsx'
import { Dialog } from './on-demand.tsx'

interface TitledDialogProps {
  title: string
  /** Classes for its width and height. */
  size: string
  open: boolean
  onOpenChange: (open: boolean) => void
  /** Mounted again each time it is opened. */
  children: ReactNode
}

export function TitledDialog(props: TitledDialogProps) {
  return (
    <Dialog.Root open={props.open} onOpenChange={props.onOpenChange}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop fixed inset-0 z-40 bg-black/40" />
        <Dialog.Popup
          className={`popup fixed top-1/2 left-1/2 z-50 flex max-w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 flex-col overflow-hidden rounded-2xl border border-line bg-raised shadow-3 outline-none ${props.size}`}
        >
          <div className="flex items-center justify-between border-b border-line py-3 pr-3 pl-5">
            <Dialog.Title className="text-base font-semibold">{props.title}</Dialog.Title>
            <Dialog.Close render={<IconButton label="Close" className="max-md:size-11" />}>
              <X aria-hidden />
            </Dialog.Close>
          </div>
          {props.children}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
