/** The person's workspace: a tree, and one file of it to read or change. */
import { messageOf } from '@sandlot/shared/base/errors'
import { ChevronLeft, FolderOpen, X } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { useChat } from '../../state/chat-context.ts'
import { useWorkspace } from '../../state/use-workspace.ts'
import { revealedText } from '../../lib/invisible.ts'
import { makeFolder, moveFile, uploadFile } from '../../net/files.ts'
import { FilePreview } from '../../preview/file-preview.tsx'
import { addUploads, useUploads } from '../../state/uploads.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { EmptyPlace } from '../../ui/empty-place.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { below, chosenEntries, droppedEntries, folderOf, nameOf } from '../../state/dropped.ts'
import type { EntryActions } from './entry-menu.tsx'
import { FilesToolbar } from './files-toolbar.tsx'
import { FoundFiles } from './found-files.tsx'
import { MoveDialog } from './move-dialog.tsx'
import { TextEditor } from './text-editor.tsx'
import { TrashDialog } from './trash-dialog.tsx'
import { namesOf, TreeView } from './tree-view.tsx'
import { UploadBar } from './upload-bar.tsx'
import { useFileActions } from './use-file-actions.ts'
import { loadFolder, refreshTree, reveal, useTree } from './use-tree.ts'

/** The most that the service takes. */
const MOST_WATCHED = 128

export default function FilesPanel() {
  const { file } = useWorkspace()
  const [editing, setEditing] = useState<string | null>(null)
  const shown = editing ?? file
  useLive(shown)
  return (
    <div
      className="contents"
      // Else the browser would leave the page for a file that is dropped beside the tree.
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        const warn = (error: unknown) => showToast(messageOf(error))
        droppedEntries(event.dataTransfer, '').then(addUploads, warn)
      }}
    >
      <div hidden={shown !== null} className={shown === null ? 'flex min-h-0 flex-1 flex-col' : 'hidden'}>
        <Browser onEdit={setEditing} />
      </div>
      {shown !== null && (
        <OneFile
          key={shown}
          path={shown}
          editing={editing !== null}
          onEdit={() => setEditing(shown)}
          onDone={() => setEditing(null)}
        />
      )}
      <UploadBar />
    </div>
  )
}

/**
 * Keeps the tree and the open file current: the service reports changes in the shown folders, by
 * anyone. On return they are read in any case: not every kernel reports changes.
 */
function useLive(file: string | null): void {
  const { chat } = useChat()
  const open = useTree((tree) => tree.open)
  useEffect(() => {
    const shown = ['', ...open, ...(file === null ? [] : [folderOf(file)])]
    chat.watchFiles([...new Set(shown)].slice(0, MOST_WATCHED), (paths) => {
      for (const path of paths) if (shown.includes(path)) void loadFolder(path)
    })
  }, [chat, open, file])
  // Also where changes are not reported.
  const arrived = useUploads((state) => state.arrived)
  useEffect(() => void (arrived > 0 && refreshTree()), [arrived])
  useEffect(() => {
    const refresh = () => document.visibilityState === 'visible' && void refreshTree()
    void refreshTree()
    document.addEventListener('visibilitychange', refresh)
    addEventListener('focus', refresh)
    return () => {
      chat.watchFiles([], () => {})
      document.removeEventListener('visibilitychange', refresh)
      removeEventListener('focus', refresh)
    }
  }, [chat])
}

function OneFile(props: { path: string; editing: boolean; onEdit: () => void; onDone: () => void }) {
  const { path, editing } = props
  const { closeFile } = useWorkspace()
  const [version, setVersion] = useState(0)
  const known = useTree(({ folders }) => folders.get(folderOf(path))?.entries)
  const entry = known?.find(({ name }) => name === nameOf(path))
  if (!editing)
    return (
      <FilePreview
        path={path}
        version={`${version} ${entry?.modifiedAt ?? ''} ${entry?.size ?? ''}`}
        lead={
          <IconButton label="Back to the files" onClick={closeFile}>
            <ChevronLeft aria-hidden />
          </IconButton>
        }
        onEdit={props.onEdit}
      />
    )
  return (
    <>
      <div className="flex items-center gap-1 border-b border-line py-1.5 pr-2 pl-1.5">
        <h2
          className="min-w-0 flex-1 truncate px-1.5 text-sm font-medium"
          title={revealedText(`/workspace/${path}`)}
        >
          <Revealed text={nameOf(path)} />
        </h2>
      </div>
      <TextEditor path={path} onSaved={() => setVersion(version + 1)} onClose={props.onDone} />
    </>
  )
}

function Browser(props: { onEdit: (path: string) => void }) {
  const { openFile } = useWorkspace()
  const root = useTree(({ folders }) => folders.get(''))
  const [renaming, setRenaming] = useState<string | null>(null)
  const [moving, setMoving] = useState<readonly string[] | null>(null)
  const [trash, setTrash] = useState(false)
  const [query, setQuery] = useState('')
  const chosen = useRef<{ folder: string; files: HTMLInputElement | null; folders: HTMLInputElement | null }>(
    {
      folder: '',
      files: null,
      folders: null,
    },
  )

  const { problem, setProblem, forever, setForever, ...files } = useFileActions(setRenaming)
  const { attempt } = files
  const actions: EntryActions = {
    open: openFile,
    edit: props.onEdit,
    rename: setRenaming,
    move: (paths, folder) => {
      if (folder === undefined) setMoving(paths)
      else if (paths.length > 0) void files.move(paths, folder)
    },
    remove: (paths) => void files.remove(paths),
    addFile: (folder) =>
      void files.make(folder, 'new file.txt', (path) =>
        uploadFile(path, new Blob([]), {
          replace: false,
          onProgress: () => {},
          signal: new AbortController().signal,
        }),
      ),
    addFolder: (folder) => void files.make(folder, 'new folder', makeFolder),
    upload: (folder) => {
      chosen.current.folder = folder
      chosen.current.files?.click()
    },
    copyPath: (path) => {
      void navigator.clipboard.writeText(`/workspace/${path}`)
      showToast('The path is copied.', { seconds: 3 })
    },
  }
  const drop = (data: DataTransfer, folder: string) =>
    droppedEntries(data, folder).then(addUploads, (error: unknown) => setProblem(messageOf(error)))
  const input = (kind: 'files' | 'folders', testId: string) => (
    <input
      ref={(element) => {
        chosen.current[kind] = element
        if (kind === 'folders') element?.setAttribute('webkitdirectory', '')
      }}
      type="file"
      multiple
      hidden
      data-testid={testId}
      onChange={({ currentTarget }) => {
        addUploads(chosenEntries(currentTarget.files ?? [], chosen.current.folder))
        // The same file may be chosen again.
        currentTarget.value = ''
      }}
    />
  )
  return (
    <>
      {input('files', 'workspace-files')}
      {input('folders', 'workspace-folders')}
      <FilesToolbar
        query={query}
        onQuery={setQuery}
        actions={actions}
        onFolders={() => {
          chosen.current.folder = ''
          chosen.current.folders?.click()
        }}
        onTrash={() => setTrash(true)}
      />
      {problem !== null && (
        <div className="flex items-start gap-1 p-2">
          <div className="min-w-0 flex-1">
            <Alert>{problem}</Alert>
          </div>
          <IconButton label="Dismiss" onClick={() => setProblem(null)}>
            <X aria-hidden />
          </IconButton>
        </div>
      )}
      {forever !== null && (
        <div
          role="group"
          aria-label="Delete for good?"
          className="flex flex-wrap items-center gap-2 border-b border-waiting-line bg-waiting-wash px-4 py-2.5 text-sm"
        >
          <p role="alert" className="min-w-0 flex-1 basis-56 [overflow-wrap:anywhere]">
            The disk is full, so {namesOf(forever)} cannot go to the trash. Delete for good?
          </p>
          <Button size="sm" onClick={() => setForever(null)}>
            Cancel
          </Button>
          <Button size="sm" variant="danger" onClick={() => void files.removeForGood(forever)}>
            Delete for good
          </Button>
        </div>
      )}
      {query.trim() !== '' ? (
        <FoundFiles
          query={query.trim()}
          onOpen={(path, kind) => {
            if (kind !== 'directory') return openFile(path)
            setQuery('')
            void reveal(path)
          }}
        />
      ) : root === undefined ? (
        <p role="status" className="flex items-center gap-2 px-5 py-3 text-sm text-muted">
          <Spinner /> Looking into your workspace…
        </p>
      ) : root.entries.length === 0 && root.problem === null ? (
        <DropPlace onDrop={(data) => void drop(data, '')}>
          <EmptyPlace icon={FolderOpen} title="Nothing is here yet">
            <p>
              What the agent writes is listed here, and files and folders that you add or drop here are there
              for the agent.
            </p>
          </EmptyPlace>
        </DropPlace>
      ) : (
        <TreeView
          actions={actions}
          renaming={renaming}
          onRename={(path, name) => {
            setRenaming(null)
            if (name === null) return
            void attempt(async () => {
              const to = below(folderOf(path), name)
              await moveFile(path, to)
              await reveal(to)
            })
          }}
          onDrop={(data, folder) => void drop(data, folder)}
        />
      )}
      {moving !== null && (
        <MoveDialog
          paths={moving}
          onMove={(folder) => {
            setMoving(null)
            void files.move(moving, folder)
          }}
          onClose={() => setMoving(null)}
        />
      )}
      {trash && (
        <TrashDialog
          onRestored={(path) => void reveal(path)}
          onClose={() => {
            setTrash(false)
            void refreshTree()
          }}
        />
      )}
    </>
  )
}

function DropPlace(props: { onDrop: (data: DataTransfer) => void; children: ReactNode }) {
  return (
    <div
      className="flex min-h-0 flex-1 overflow-y-auto"
      onDragOver={(event) => {
        event.preventDefault()
        event.stopPropagation()
      }}
      onDrop={(event) => {
        event.preventDefault()
        event.stopPropagation()
        props.onDrop(event.dataTransfer)
      }}
    >
      {props.children}
    </div>
  )
}
