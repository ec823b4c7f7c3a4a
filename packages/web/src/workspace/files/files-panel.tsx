/** The person's workspace: a tree, and one file of it to read or change. */
import { messageOf } from '@sandlot/shared/base/errors'
import { ChevronLeft, FolderOpen, X } from 'lucide-react'
import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react'
import { useChat } from '../../state/chat-context.ts'
import { useWorkspace } from '../../state/use-workspace.ts'
import { revealedText } from '../../lib/invisible.ts'
import { call } from '../../net/call.ts'
import { uploadFile } from '../../net/files.ts'
import { FilePreview } from '../../preview/file-preview.tsx'
import { addUploads, useUploads } from '../../state/uploads.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { EmptyPlace } from '../../ui/empty-place.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { chosenEntries, droppedEntries, folderOf, nameOf } from '../../state/dropped.ts'
import type { EntryActions } from './entry-menu.tsx'
import { FilesToolbar } from './files-toolbar.tsx'
import { MoveDialog } from './move-dialog.tsx'
import { TextEditor } from './text-editor.tsx'
import { TrashDialog } from './trash-dialog.tsx'
import { namesOf, TreeView } from './tree-view.tsx'
import { UploadBar } from './upload-bar.tsx'
import { useFileActions } from './use-file-actions.ts'
import { loadFolder, refreshTree, reveal, useTree } from './use-tree.ts'
import { useResource } from '../../state/use-resource.ts'

/** Milliseconds after the last letter. */
const PAUSE_MS = 150
const MOST_SHOWN = 100

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
  const [query, setQuery] = useState('')
  const files = useFileActions(setRenaming)
  const [dialog, setDialog] = useState<Dialog>(null)
  const chosen = useRef<Chosen>({ folder: '', files: null, folders: null })
  const actions = useEntryActions({
    files,
    chosen,
    onEdit: props.onEdit,
    onRename: setRenaming,
    onDialog: setDialog,
  })
  const drop = (data: DataTransfer, folder: string) =>
    void droppedEntries(data, folder).then(addUploads, (error: unknown) => files.setProblem(messageOf(error)))
  return (
    <>
      <FileInput kind="files" testId="workspace-files" chosen={chosen} />
      <FileInput kind="folders" testId="workspace-folders" chosen={chosen} />
      <FilesToolbar
        query={query}
        onQuery={setQuery}
        actions={actions}
        onFolders={() => pickFiles(chosen, 'folders', '')}
        onTrash={() => setDialog('trash')}
      />
      <ProblemBars files={files} />
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
          <Spinner /> Loading…
        </p>
      ) : root.entries.length === 0 && root.problem === null ? (
        <EmptyWorkspace onDrop={(data) => drop(data, '')} />
      ) : (
        <TreeView
          actions={actions}
          renaming={renaming}
          onRename={(path, name) => {
            setRenaming(null)
            if (name !== null) void files.rename(path, name)
          }}
          onDrop={drop}
        />
      )}
      <BrowserDialog dialog={dialog} files={files} onClose={() => setDialog(null)} />
    </>
  )
}

type FileActions = ReturnType<typeof useFileActions>
/** The open dialog: a move of these paths, or the trash. */
type Dialog = { moving: readonly string[] } | 'trash' | null

/** The inputs for files and folders, and the folder that their files go to. */
interface Chosen {
  folder: string
  files: HTMLInputElement | null
  folders: HTMLInputElement | null
}

function pickFiles(chosen: RefObject<Chosen>, kind: 'files' | 'folders', folder: string): void {
  chosen.current.folder = folder
  chosen.current[kind]?.click()
}

function useEntryActions(parts: {
  files: FileActions
  chosen: RefObject<Chosen>
  onEdit: (path: string) => void
  onRename: (path: string) => void
  onDialog: (dialog: Dialog) => void
}): EntryActions {
  const { openFile } = useWorkspace()
  const { files, chosen } = parts
  return {
    open: openFile,
    edit: parts.onEdit,
    rename: parts.onRename,
    move: (paths, folder) => {
      if (folder === undefined) parts.onDialog({ moving: paths })
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
    addFolder: (folder) =>
      void files.make(folder, 'new folder', (path) => call('makeFolder', { body: { path } })),
    upload: (folder) => pickFiles(chosen, 'files', folder),
    copyPath: (path) => {
      void navigator.clipboard.writeText(`/workspace/${path}`)
      showToast('Path copied.', { seconds: 3 })
    },
  }
}

function FileInput(props: { kind: 'files' | 'folders'; testId: string; chosen: RefObject<Chosen> }) {
  const { kind, testId, chosen } = props
  return (
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
}

function ProblemBars({ files }: { files: FileActions }) {
  const { problem, setProblem, forever, setForever, removeForGood } = files
  return (
    <>
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
          <Button size="sm" variant="danger" onClick={() => void removeForGood(forever)}>
            Delete for good
          </Button>
        </div>
      )}
    </>
  )
}

function EmptyWorkspace({ onDrop }: { onDrop: (data: DataTransfer) => void }) {
  return (
    <DropPlace onDrop={onDrop}>
      <EmptyPlace icon={FolderOpen} title="No files yet">
        <p>Files the agent writes appear here. Drop files or folders to share them with the agent.</p>
      </EmptyPlace>
    </DropPlace>
  )
}

function BrowserDialog(props: { dialog: Dialog; files: FileActions; onClose: () => void }) {
  const { dialog, files, onClose } = props
  if (dialog === null) return null
  if (dialog === 'trash')
    return (
      <TrashDialog
        onRestored={(path) => void reveal(path)}
        onClose={() => {
          onClose()
          void refreshTree()
        }}
      />
    )
  return (
    <MoveDialog
      paths={dialog.moving}
      onMove={(folder) => {
        onClose()
        void files.move(dialog.moving, folder)
      }}
      onClose={onClose}
    />
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

function FoundFiles(props: { query: string; onOpen: (path: string, kind: string) => void }) {
  const { query } = props
  const { data: found, problem } = useResource(
    query,
    (signal) => call('findFiles', { query: { q: query, most: MOST_SHOWN }, signal }),
    { keep: true, pauseMs: PAUSE_MS },
  )
  if (problem !== null)
    return (
      <div className="p-3">
        <Alert>{problem}</Alert>
      </div>
    )
  if (found === null)
    return (
      <p role="status" className="flex items-center gap-2 px-5 py-3 text-sm text-muted">
        <Spinner /> Searching…
      </p>
    )
  return (
    <div className="min-h-0 flex-1 overflow-y-auto py-1">
      {found.entries.length === 0 && <p className="px-5 py-2 text-sm text-muted">No matches.</p>}
      <ul aria-label="Found files">
        {found.entries.map(({ path, kind }) => (
          <li key={path}>
            <button
              type="button"
              onClick={() => props.onOpen(path, kind)}
              className="flex min-h-9 w-full flex-col justify-center px-4 py-1 text-left hover:bg-hover focus-visible:-outline-offset-2 pointer-coarse:min-h-11"
            >
              <span className="max-w-full truncate text-sm">
                <Revealed text={nameOf(path)} />
                {kind === 'directory' && '/'}
              </span>
              {folderOf(path) !== '' && (
                <span className="max-w-full truncate text-xs text-muted">
                  <Revealed text={folderOf(path)} />
                </span>
              )}
            </button>
          </li>
        ))}
      </ul>
      {found.more && <p className="px-4 py-2 text-xs text-muted">Too many results; keep typing.</p>}
    </div>
  )
}
