/** The toasts that are shown; loaded with the first. */
import { Toast } from '@base-ui/react/toast'
import { X } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { Button, IconButton } from './button.tsx'

export interface ShownToast {
  text: string
  /** Such as *Undo*; the toast is closed when it is pressed. */
  action?: { label: string; onClick: () => void }
  seconds?: number
}

const manager = Toast.createToastManager()

const USUAL_SECONDS = 6
const WITH_ACTION_SECONDS = 10

function add({ text, action, seconds }: ShownToast): void {
  const id = manager.add({
    description: text,
    timeout: (seconds ?? (action === undefined ? USUAL_SECONDS : WITH_ACTION_SECONDS)) * 1000,
    actionProps: action && {
      children: action.label,
      onClick: () => {
        manager.close(id)
        action.onClick()
      },
    },
  })
}

/** `toasts`: all so far. */
export default function ToastList({ toasts }: { toasts: readonly ShownToast[] }) {
  const added = useRef(0)
  useEffect(() => {
    for (const toast of toasts.slice(added.current)) add(toast)
    added.current = toasts.length
  }, [toasts])
  return (
    <Toast.Provider toastManager={manager}>
      <Toast.Portal>
        <Toast.Viewport className="pointer-events-none fixed inset-x-4 top-15 z-60 mx-auto flex w-auto max-w-md flex-col gap-2 outline-none">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function List() {
  return Toast.useToastManager().toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      // The region announces it. Not a dialog, as which it would cover the page's keys.
      role="group"
      aria-modal={undefined}
      aria-label="Notice"
      swipeDirection={['up', 'right']}
      className="popup pointer-events-auto flex items-center gap-3 rounded-xl border border-line bg-raised py-2 pr-2 pl-4 text-sm shadow-3"
    >
      <Toast.Description className="min-w-0 flex-1 [overflow-wrap:anywhere]" />
      {toast.actionProps !== undefined && <Toast.Action render={<Button size="sm" />} />}
      <Toast.Close aria-hidden={undefined} render={<IconButton label="Dismiss" />}>
        <X aria-hidden />
      </Toast.Close>
    </Toast.Root>
  ))
}
