/** A small image that opens as large as the window when it is clicked. */
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from './button.tsx'
import { Dialog } from './on-demand.tsx'

export function EnlargedImage(props: { src: string; alt: string; className: string; children: ReactNode }) {
  const { src, alt } = props
  return (
    <Dialog.Root>
      <Dialog.Trigger aria-label={`Open ${alt}`} className={props.className}>
        {props.children}
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop fixed inset-0 z-40 bg-black/75" />
        <Dialog.Popup
          data-testid="large-image"
          className="popup pointer-events-none fixed inset-0 z-50 flex items-center justify-center p-4 outline-none sm:p-10"
        >
          <Dialog.Title className="sr-only">{alt}</Dialog.Title>
          <img
            src={src}
            alt={alt}
            className="pointer-events-auto max-h-full max-w-full min-w-[min(24rem,80vw)] rounded-lg bg-panel object-contain shadow-3"
          />
          <Dialog.Close
            render={<IconButton label="Close" />}
            className="pointer-events-auto absolute top-3 right-3 size-11 bg-raised text-ink shadow-2"
          >
            <X aria-hidden />
          </Dialog.Close>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
