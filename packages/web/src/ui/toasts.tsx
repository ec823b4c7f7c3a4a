/** A short notice of an action, with a way to undo it. */
import { Toast } from '@base-ui/react/toast'
import { X } from 'lucide-react'
import { Button, IconButton } from './button.tsx'

const toasts = Toast.createToastManager()

const USUAL_SECONDS = 6
const WITH_ACTION_SECONDS = 10

/** `action`: such as *Undo*; the words go away when it is pressed. */
export function showToast(
  text: string,
  { action, seconds }: { action?: { label: string; onClick: () => void }; seconds?: number } = {},
): void {
  const id = toasts.add({
    description: text,
    timeout: (seconds ?? (action === undefined ? USUAL_SECONDS : WITH_ACTION_SECONDS)) * 1000,
    actionProps: action && {
      children: action.label,
      onClick: () => {
        toasts.close(id)
        action.onClick()
      },
    },
  })
}

/** The list of toasts. Once in the page. */
export function Toasts() {
  return (
    <Toast.Provider toastManager={toasts}>
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
