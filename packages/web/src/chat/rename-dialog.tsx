import { Dialog } from '@base-ui/react/dialog'
import { MAX_TITLE_CHARS } from '@sandlot/shared/frames'
import { useState } from 'react'
import { useSubmit } from '../auth/use-submit.ts'
import { renameSession } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'

/** The service tells the new name to all tabs. */
export function RenameDialog(props: { sessionId: string; title: string; onClose: () => void }) {
  const [title, setTitle] = useState(props.title)
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await renameSession(props.sessionId, title.trim())
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
