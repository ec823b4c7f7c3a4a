/** In the header: how much waits for the person in all chats, and the list of it. */
import { Inbox } from 'lucide-react'
import { lazy, Suspense } from 'react'
import { create } from 'zustand'
import { formatCount } from '../../lib/format.ts'
import { waitingCount } from '../../state/chat-state.ts'
import { TitledDialog } from '../../ui/titled-dialog.tsx'
import { useChatState } from '../../state/chat-context.ts'
import { useGlobalKeys } from '../use-global-keys.ts'

const PendingList = lazy(() => import('./pending-list.tsx'))

/** True if the list is open; the palette opens it too. */
export const usePendingList = create<{ open: boolean; setOpen: (open: boolean) => void }>()((set) => ({
  open: false,
  setOpen: (open) => set({ open }),
}))

export function PendingButton() {
  const waiting = useChatState(waitingCount)
  const { open, setOpen } = usePendingList()
  useGlobalKeys((shortcut) => {
    if (shortcut !== 'pending') return false
    setOpen(true)
    return true
  })
  return (
    <>
      {waiting > 0 && (
        <button
          type="button"
          data-testid="pending"
          title="Approvals waiting for you"
          aria-label={`${formatCount(waiting, 'call')} ${waiting === 1 ? 'waits' : 'wait'} for you`}
          onClick={() => setOpen(true)}
          className="inline-flex h-8 shrink-0 items-center gap-1.5 rounded-lg border border-waiting-line bg-waiting-wash px-2 text-xs font-semibold text-waiting tabular-nums hover:bg-hover max-md:h-11"
        >
          <Inbox className="size-4" aria-hidden />
          {waiting}
        </button>
      )}
      <TitledDialog
        title="Waiting for you"
        size="w-[44rem] max-h-[min(44rem,calc(100dvh-2rem))]"
        open={open}
        onOpenChange={setOpen}
      >
        <Suspense fallback={<p className="px-5 py-6 text-sm text-muted">Loading…</p>}>
          <PendingList onClose={() => setOpen(false)} />
        </Suspense>
      </TitledDialog>
    </>
  )
}
