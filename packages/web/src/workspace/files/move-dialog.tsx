/** Target of a move in the workspace: one folder at a time. */
import { ChevronLeft, Folder } from 'lucide-react'
import { useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TitledDialog } from '../../ui/titled-dialog.tsx'
import { below, folderOf } from '../../state/dropped.ts'
import { namesOf } from './tree-view.tsx'

export function MoveDialog(props: {
  paths: readonly string[]
  onMove: (folder: string) => void
  onClose: () => void
}) {
  const { folder, folders, problem, open } = useFolders(folderOf(props.paths[0] ?? ''))
  const goesNowhere = props.paths.every((path) => folderOf(path) === folder)
  const goesIntoItself = props.paths.some((path) => `${folder}/`.startsWith(`${path}/`))
  const row =
    'flex h-9 w-full items-center gap-2.5 px-5 text-left text-sm hover:bg-hover focus-visible:-outline-offset-2 pointer-coarse:h-11'
  return (
    <TitledDialog
      open
      onOpenChange={(open) => !open && props.onClose()}
      title={`Move ${namesOf(props.paths)}`}
      size="h-[30rem] max-h-[calc(100dvh-2rem)] w-[26rem]"
    >
      <p className="border-b border-line px-5 py-2 font-mono text-xs text-muted [overflow-wrap:anywhere]">
        /workspace/
        <Revealed text={folder} />
      </p>
      <div className="min-h-0 flex-1 overflow-y-auto py-1">
        {problem !== null && (
          <div className="px-5 py-2">
            <Alert>{problem}</Alert>
          </div>
        )}
        {folder !== '' && (
          <button type="button" className={row} onClick={() => open(folderOf(folder))}>
            <ChevronLeft className="size-4 text-muted" aria-hidden /> Up
          </button>
        )}
        {folders === null && problem === null && (
          <p role="status" className="flex items-center gap-2 px-5 py-2 text-sm text-muted">
            <Spinner /> Loading…
          </p>
        )}
        {folders?.map((name) => (
          <button key={name} type="button" className={row} onClick={() => open(below(folder, name))}>
            <Folder className="size-4 shrink-0 text-accent" aria-hidden />
            <span className="min-w-0 truncate">
              <Revealed text={name} />
            </span>
          </button>
        ))}
        {folders?.length === 0 && <p className="px-5 py-2 text-sm text-muted">No folders.</p>}
      </div>
      <div className="flex justify-end gap-2 border-t border-line px-5 py-3">
        <Button onClick={props.onClose}>Cancel</Button>
        <Button
          variant="primary"
          disabled={goesNowhere || goesIntoItself}
          onClick={() => props.onMove(folder)}
        >
          Move here
        </Button>
      </div>
    </TitledDialog>
  )
}

/** The folders within one, which is `first` until another is opened. */
function useFolders(first: string) {
  const [folder, setFolder] = useState(first)
  const { data: folders, problem } = useResource(folder, async (signal) => {
    const { entries } = await call('listFiles', { query: { path: folder }, signal })
    return entries
      .filter(({ name, kind }) => kind === 'directory' && below(folder, name) !== '.tool-outputs')
      .map(({ name }) => name)
  })
  return { folder, folders, problem, open: setFolder }
}
