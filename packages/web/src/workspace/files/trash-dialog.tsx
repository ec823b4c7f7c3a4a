/** Files deleted on this page, to be restored. */
import { TRASH_DAYS, type TrashList } from '@sandlot/shared/workspace/files'
import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { formatDate } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TitledDialog } from '../../ui/titled-dialog.tsx'

export function TrashDialog(props: { onRestored: (path: string) => void; onClose: () => void }) {
  const {
    data: list,
    problem,
    busy,
    change,
  } = useResource('trash', (signal) => call('listTrash', { signal }))
  return (
    <TitledDialog
      open
      onOpenChange={(open) => !open && props.onClose()}
      title="Trash"
      size="h-[30rem] max-h-[calc(100dvh-2rem)] w-[32rem]"
    >
      <p className="border-b border-line px-5 py-2 text-xs text-muted">
        Deleted files stay here for {TRASH_DAYS} days and count towards your workspace quota.
      </p>
      <div className="min-h-0 flex-1 overflow-y-auto">
        {problem !== null && (
          <div className="p-3">
            <Alert>{problem}</Alert>
          </div>
        )}
        {list === null && problem === null && (
          <p role="status" className="flex items-center gap-2 px-5 py-3 text-sm text-muted">
            <Spinner /> Loading…
          </p>
        )}
        {list?.entries.length === 0 && <p className="px-5 py-3 text-sm text-muted">The trash is empty.</p>}
        <ul aria-label="Trash" className="divide-y divide-line">
          {list?.entries.map((entry) => (
            <TrashedFile
              key={entry.id}
              entry={entry}
              busy={busy}
              onRestore={() =>
                void change(async () => {
                  props.onRestored((await call('restoreFile', { params: { id: entry.id } })).path)
                })
              }
            />
          ))}
        </ul>
      </div>
      {list !== null && list.entries.length > 0 && (
        <EmptyTrash busy={busy} onEmpty={() => void change(() => call('emptyTrash'))} />
      )}
    </TitledDialog>
  )
}

function TrashedFile(props: { entry: TrashList['entries'][number]; busy: boolean; onRestore: () => void }) {
  const { path, removedAt } = props.entry
  return (
    <li className="flex items-center gap-3 py-1.5 pr-3 pl-5 text-sm">
      <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <Revealed text={path} />
      </span>
      <span className="shrink-0 text-xs text-muted max-sm:hidden">{formatDate(removedAt)}</span>
      <Button size="sm" disabled={props.busy} onClick={props.onRestore}>
        Restore
      </Button>
    </li>
  )
}

function EmptyTrash(props: { busy: boolean; onEmpty: () => void }) {
  const [sure, setSure] = useState(false)
  return (
    <div className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-5 py-3">
      {sure && <p className="flex-1 text-sm">Permanently delete everything in it?</p>}
      {sure && <Button onClick={() => setSure(false)}>Cancel</Button>}
      <Button
        variant="danger"
        disabled={props.busy}
        onClick={() => {
          if (!sure) return setSure(true)
          setSure(false)
          props.onEmpty()
        }}
      >
        <Trash2 className="size-4" aria-hidden /> {sure ? 'Delete for good' : 'Empty the trash'}
      </Button>
    </div>
  )
}
