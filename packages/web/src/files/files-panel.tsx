/** What is in the person's workspace: a tree, and one file of it to read or change. */
import { Menu } from '@base-ui/react/menu'
import { messageOf } from '@sandlot/shared/errors'
import type { FilesFound } from '@sandlot/shared/person/files'
import {
  Archive,
  ChevronLeft,
  Ellipsis,
  FilePlus,
  FolderPlus,
  FolderUp,
  RotateCw,
  Search,
  Trash2,
  Upload,
  X,
} from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { useChatState } from '../chat/chat-context.ts'
import { useDesk } from '../desk/use-desk.ts'
import { revealedText } from '../lib/invisible.ts'
import {
  makeFolder,
  moveFile,
  removeFile,
  restoreFile,
  searchFiles,
  uploadFile,
  zipUrl,
} from '../net/files.ts'
import { ApiError } from '../net/http.ts'
import { FilePreview } from '../preview/file-preview.tsx'
import { addUploads, useUploads } from '../state/uploads.ts'
import { Alert } from '../ui/alert.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { showToast } from '../ui/toasts.tsx'
import { below, chosenEntries, droppedEntries, folderOf, nameOf } from './dropped.ts'
import { type EntryActions, ITEM, POPUP } from './entry-menu.tsx'
import { MoveDialog } from './move-dialog.tsx'
import { TextEditor } from './text-editor.tsx'
import { TrashDialog } from './trash-dialog.tsx'
import { namesOf, TreeView } from './tree-view.tsx'
import { UploadBar } from './upload-bar.tsx'
import { refreshTree, reveal, toggleFolder, useTree } from './use-tree.ts'

export default function FilesPanel() {
  const { file } = useDesk()
  const [editing, setEditing] = useState<string | null>(null)
  useFresh()
  const shown = editing ?? file
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

/** After each step of the open chat, so long after the last look. */
const LOOK_MS = 1_000

/** The tree is what is there: looked at again when the agent has done something, and on return. */
function useFresh(): void {
  const arrived = useUploads((state) => state.arrived)
  const seq = useChatState(({ activeId, views }) =>
    activeId === null ? 0 : (views[activeId]?.transcript.seq ?? 0),
  )
  const looked = useRef(0)
  useEffect(() => {
    const look = () => {
      looked.current = performance.now()
      void refreshTree()
    }
    const since = performance.now() - looked.current
    if (since > LOOK_MS) return look()
    const timer = setTimeout(look, LOOK_MS - since)
    return () => clearTimeout(timer)
  }, [seq, arrived])
  useEffect(() => {
    const look = () => document.visibilityState === 'visible' && void refreshTree()
    document.addEventListener('visibilitychange', look)
    addEventListener('focus', look)
    return () => {
      document.removeEventListener('visibilitychange', look)
      removeEventListener('focus', look)
    }
  }, [])
}

function OneFile(props: { path: string; editing: boolean; onEdit: () => void; onDone: () => void }) {
  const { path, editing } = props
  const { closeFile } = useDesk()
  const [version, setVersion] = useState(0)
  const known = useTree(({ folders }) => folders.get(folderOf(path))?.entries)
  const modifiedAt = known?.find(({ name }) => name === nameOf(path))?.modifiedAt
  if (!editing)
    return (
      <FilePreview
        path={path}
        version={`${version} ${modifiedAt ?? ''}`}
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
  const { openFile } = useDesk()
  const root = useTree(({ folders }) => folders.get(''))
  const [renaming, setRenaming] = useState<string | null>(null)
  const [moving, setMoving] = useState<readonly string[] | null>(null)
  const [forever, setForever] = useState<readonly string[] | null>(null)
  const [trash, setTrash] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const [query, setQuery] = useState('')
  const chosen = useRef<{ folder: string; files: HTMLInputElement | null; folders: HTMLInputElement | null }>(
    {
      folder: '',
      files: null,
      folders: null,
    },
  )

  /** Shows what went wrong, and looks again either way. */
  const attempt = async (work: () => Promise<void>) => {
    setProblem(null)
    try {
      await work()
    } catch (error) {
      setProblem(messageOf(error))
    }
    await refreshTree()
  }
  const make = (folder: string, name: string, put: (path: string) => Promise<void>) =>
    attempt(async () => {
      if (folder !== '') toggleFolder(folder, true)
      const path = await firstFree(below(folder, name), put)
      await reveal(path)
      setRenaming(path)
    })
  const move = (paths: readonly string[], folder: string) =>
    attempt(async () => {
      const back: { path: string; to: string }[] = []
      try {
        for (const path of paths) {
          const to = below(folder, nameOf(path))
          if (to === path) continue
          await moveFile(path, to)
          back.unshift({ path: to, to: path })
        }
      } finally {
        if (back.length > 0)
          showToast(`${namesOf(back.map(({ to }) => to))} moved.`, {
            action: {
              label: 'Undo',
              onClick: () =>
                void attempt(async () => {
                  for (const one of back) await moveFile(one.path, one.to)
                }),
            },
          })
      }
    })
  const remove = (paths: readonly string[]) =>
    attempt(async () => {
      const ids: string[] = []
      const left = [...paths]
      try {
        for (const path of paths) {
          const id = await removeFile(path)
          if (id !== null) ids.push(id)
          left.shift()
        }
      } catch (error) {
        // A full disk has no room for the trash either.
        if (!(error instanceof ApiError) || error.code !== 'too_large') throw error
        setForever(left)
      } finally {
        const gone = paths.slice(0, paths.length - left.length)
        if (gone.length > 0)
          showToast(`${namesOf(gone)} deleted.`, {
            action: {
              label: 'Undo',
              onClick: () =>
                void attempt(async () => {
                  for (const id of ids.toReversed()) await reveal(await restoreFile(id))
                }),
            },
          })
      }
    })
  const actions: EntryActions = {
    open: openFile,
    edit: props.onEdit,
    rename: setRenaming,
    move: (paths, folder) => {
      if (folder === undefined) setMoving(paths)
      else if (paths.length > 0) void move(paths, folder)
    },
    remove: (paths) => void remove(paths),
    addFile: (folder) =>
      void make(folder, 'new file.txt', (path) =>
        uploadFile(path, new Blob([]), {
          replace: false,
          onProgress: () => {},
          signal: new AbortController().signal,
        }),
      ),
    addFolder: (folder) => void make(folder, 'new folder', makeFolder),
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
      <Toolbar
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
          <Button
            size="sm"
            variant="danger"
            onClick={() => {
              setForever(null)
              void attempt(async () => {
                for (const path of forever) await removeFile(path, { forever: true })
              })
            }}
          >
            Delete for good
          </Button>
        </div>
      )}
      {query.trim() !== '' ? (
        <Found
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
          <p className="px-5 py-3 text-sm text-muted">
            Nothing is here yet. What the agent writes is listed here, and files and folders that you add or
            drop here are there for the agent.
          </p>
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
            void move(moving, folder)
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

/** `new file.txt`, `new file (2).txt` …, whichever is not there. */
async function firstFree(path: string, put: (path: string) => Promise<void>): Promise<string> {
  const [, stem = path, ending = ''] = /^(.*[^/])(\.[^./]+)$/.exec(path) ?? []
  for (let n = 1; ; n++) {
    const place = n === 1 ? path : `${stem} (${n})${ending}`
    try {
      await put(place)
      return place
    } catch (error) {
      if (n === 50 || !(error instanceof ApiError) || error.code !== 'conflict') throw error
    }
  }
}

function Toolbar(props: {
  query: string
  onQuery: (query: string) => void
  actions: EntryActions
  onFolders: () => void
  onTrash: () => void
}) {
  const { actions } = props
  const host = useRef<HTMLDivElement>(null)
  const at = useTree((tree) => tree.at)
  const item = (label: string, Icon: typeof Upload, onClick: () => void) => (
    <Menu.Item className={ITEM} onClick={onClick}>
      <Icon className="size-4 text-muted" aria-hidden /> {label}
    </Menu.Item>
  )
  /** Where the keys are: in that folder, or beside that file. */
  const folder = (): string => {
    const entry = at === null ? undefined : entryAt(at)
    return at === null || entry === undefined ? '' : entry.kind === 'directory' ? at : folderOf(at)
  }
  return (
    <div ref={host} className="flex items-center gap-1 border-b border-line py-1.5 pr-2 pl-3">
      <label className="relative min-w-0 flex-1">
        <span className="sr-only">Search for files</span>
        <Search
          className="pointer-events-none absolute top-1/2 left-2.5 size-3.5 -translate-y-1/2 text-faint"
          aria-hidden
        />
        <input
          type="search"
          value={props.query}
          maxLength={200}
          placeholder="Search for files"
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => props.onQuery(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape' || props.query === '') return
            event.nativeEvent.stopImmediatePropagation()
            props.onQuery('')
          }}
          className="h-8 w-full rounded-lg border border-line bg-raised pr-2 pl-8 text-sm placeholder:text-faint pointer-coarse:h-11"
        />
      </label>
      <IconButton label="New file" onClick={() => actions.addFile(folder())} className="max-sm:hidden">
        <FilePlus aria-hidden />
      </IconButton>
      <IconButton label="New folder" onClick={() => actions.addFolder(folder())} className="max-sm:hidden">
        <FolderPlus aria-hidden />
      </IconButton>
      <IconButton label="Add files" onClick={() => actions.upload(folder())}>
        <Upload aria-hidden />
      </IconButton>
      <Menu.Root>
        <Menu.Trigger
          render={<IconButton label="More about the workspace" className="data-popup-open:bg-hover" />}
        >
          <Ellipsis aria-hidden />
        </Menu.Trigger>
        <Menu.Portal container={host}>
          <Menu.Positioner positionMethod="fixed" side="bottom" align="end" sideOffset={4} className="z-50">
            <Menu.Popup className={POPUP}>
              {item('New file', FilePlus, () => actions.addFile(folder()))}
              {item('New folder', FolderPlus, () => actions.addFolder(folder()))}
              {item('Add a folder', FolderUp, props.onFolders)}
              <Menu.LinkItem className={ITEM} href={zipUrl('')} download closeOnClick>
                <Archive className="size-4 text-muted" aria-hidden /> Download all as zip
              </Menu.LinkItem>
              {item('Trash', Trash2, props.onTrash)}
              {item('Look again', RotateCw, () => void refreshTree())}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </div>
  )
}

function entryAt(path: string) {
  return useTree
    .getState()
    .folders.get(folderOf(path))
    ?.entries.find(({ name }) => name === nameOf(path))
}

function DropPlace(props: { onDrop: (data: DataTransfer) => void; children: ReactNode }) {
  return (
    <div
      className="min-h-0 flex-1"
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

/** So long after the last letter. */
const PAUSE_MS = 150
const MOST_SHOWN = 100

/** What fits the words that are searched for, as a list. */
function Found(props: { query: string; onOpen: (path: string, kind: string) => void }) {
  const { query } = props
  const [found, setFound] = useState<FilesFound | { problem: string } | null>(null)
  useEffect(() => {
    let over = false
    const timer = setTimeout(() => {
      searchFiles(query, MOST_SHOWN).then(
        (files) => !over && setFound(files),
        (error: unknown) => !over && setFound({ problem: messageOf(error) }),
      )
    }, PAUSE_MS)
    return () => {
      over = true
      clearTimeout(timer)
    }
  }, [query])
  if (found === null)
    return (
      <p role="status" className="flex items-center gap-2 px-5 py-3 text-sm text-muted">
        <Spinner /> Searching…
      </p>
    )
  if ('problem' in found)
    return (
      <div className="p-3">
        <Alert>{found.problem}</Alert>
      </div>
    )
  return (
    <div className="min-h-0 flex-1 overflow-y-auto py-1">
      {found.entries.length === 0 && <p className="px-5 py-2 text-sm text-muted">Nothing is called so.</p>}
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
      {found.more && (
        <p className="px-4 py-2 text-xs text-muted">There may be more. Write more of the name.</p>
      )}
    </div>
  )
}
