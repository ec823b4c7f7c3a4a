import type { DirectoryList, WorkspaceEntry } from '@sandlot/shared/person/files'
import { messageOf } from '@sandlot/shared/errors'
import { Download, File as FileIcon, Folder, RotateCw, Upload } from 'lucide-react'
import { Fragment, useEffect, useRef, useState } from 'react'
import { useDesk } from '../desk/use-desk.ts'
import { formatBytes, formatCount, formatDate } from '../lib/format.ts'
import { fetchDirectory, fileUrl, putFile } from '../net/files.ts'
import { ApiError } from '../net/http.ts'
import { FilePreview } from './file-preview.tsx'
import { useAttempt } from '../settings/use-attempt.ts'
import { Alert } from '../ui/alert.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { showToast } from '../ui/toasts.tsx'

const NOWHERE_YET = { path: '', list: null }

/** What is in the person's workspace: looked at, saved, added to. */
export default function FilesPanel() {
  const { file, closeFile } = useDesk()
  return (
    <>
      <Files />
      {file !== null && <FilePreview path={file} open onOpenChange={(open) => !open && closeFile()} />}
    </>
  )
}

/** One directory at a time. Files that are chosen or dropped are put into it. */
function Files() {
  const [{ path, list }, setHere] = useState<{ path: string; list: DirectoryList | null }>(NOWHERE_YET)
  const [sending, setSending] = useState<string | null>(null)
  /**
   * The first is asked about, because something of that name is there; the others wait for the
   * answer.
   */
  const [doubtful, setDoubtful] = useState<{ into: string; files: readonly File[] } | null>(null)
  const { problem, attempt } = useAttempt()
  const asked = useRef('')
  const input = useRef<HTMLInputElement>(null)

  const look = (at: string) =>
    attempt(async () => {
      asked.current = at
      const found = await fetchDirectory(at)
      // A newer navigation wins over a slower older one.
      if (asked.current !== at) return
      setHere({ path: at, list: found })
    })
  useEffect(() => {
    void look('')
    // Once.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [])

  /**
   * One after the other, until one asks; a refused file holds up no other. `into`: who goes
   * elsewhere meanwhile still meant that directory. `replace`: the first may take the place of what
   * is there.
   */
  const put = (into: string, files: readonly File[], replace = false) =>
    attempt(async () => {
      const problems = new Set<string>()
      let added = 0
      for (const [index, file] of files.entries()) {
        setSending(file.name)
        try {
          if ((await putInto(into, file, replace && index === 0)) === 'conflict') {
            setDoubtful({ into, files: files.slice(index) })
            break
          }
          added++
        } catch (error) {
          problems.add(messageOf(error))
        }
      }
      setSending(null)
      if (added > 0) showToast(`${formatCount(added, 'file is', 'files are')} in your workspace now.`)
      const found = await fetchDirectory(into)
      setHere((now) => (now.path === into ? { path: into, list: found } : now))
      if (problems.size > 0) throw new Error([...problems].join(' '))
    })
  const decide = (replace: boolean) => {
    if (doubtful === null) return
    const { into, files } = doubtful
    setDoubtful(null)
    void put(into, replace ? files : files.slice(1), replace)
  }
  // What is on its way, and what asks, comes first.
  const busy = sending !== null || doubtful !== null || list === null

  return (
    <div
      className="flex min-h-0 flex-1 flex-col"
      onDragOver={(event) => {
        event.preventDefault()
        if (busy) event.dataTransfer.dropEffect = 'none'
      }}
      onDrop={(event) => {
        event.preventDefault()
        if (!busy) void put(path, [...event.dataTransfer.files])
      }}
    >
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1 border-b border-line py-2 pr-3 pl-5">
        <Trail path={path} onGo={(to) => void look(to)} />
        <IconButton label="Refresh" className="max-md:size-11" onClick={() => void look(path)}>
          <RotateCw aria-hidden />
        </IconButton>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          data-testid="workspace-files"
          onChange={(event) => {
            void put(path, [...(event.currentTarget.files ?? [])])
            // The same file may be chosen again.
            event.currentTarget.value = ''
          }}
        />
        <Button size="sm" className="max-md:h-11" disabled={busy} onClick={() => input.current?.click()}>
          <Upload className="size-3.5" aria-hidden /> Add files
        </Button>
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto" aria-busy={list === null}>
        {problem !== null && (
          <div className="p-3">
            <Alert>{problem}</Alert>
          </div>
        )}
        <p role="status" className="flex items-center gap-2 px-5 py-3 text-sm text-muted empty:hidden">
          {sending !== null ? (
            <>
              <Spinner /> Sending {sending}…
            </>
          ) : list === null && problem === null ? (
            <>
              <Spinner /> Looking into your workspace…
            </>
          ) : null}
        </p>
        {list?.entries.length === 0 && (
          <p className="px-5 py-3 text-sm text-muted">
            Nothing is here yet. What the agent writes is listed here, and files that you add or drop here are
            there for the agent.
          </p>
        )}
        {list !== null && list.entries.length > 0 && (
          <ul aria-label={path === '' ? 'Workspace' : path} className="divide-y divide-line">
            {inOrder(list.entries).map((entry) => (
              <EntryLine
                key={entry.name}
                entry={entry}
                path={below(path, entry.name)}
                onEnter={(to) => void look(to)}
              />
            ))}
          </ul>
        )}
        {list !== null && list.left > 0 && (
          <p className="px-5 py-3 text-sm text-muted">
            {formatCount(list.left, 'more is', 'more are')} not shown. Ask the agent for what you look for.
          </p>
        )}
      </div>
      {doubtful !== null && (
        <ReplaceQuestion
          key={doubtful.files.length}
          name={below(doubtful.into, doubtful.files[0]?.name ?? '')}
          onAnswer={decide}
        />
      )}
    </div>
  )
}

/** In the list’s own place: a second dialog above this one would have two ways to be closed. */
function ReplaceQuestion(props: { name: string; onAnswer: (replace: boolean) => void }) {
  return (
    <div
      role="group"
      aria-label={`Replace ${props.name}?`}
      className="flex flex-wrap items-center gap-2 border-t border-waiting-line bg-waiting-wash px-5 py-3"
    >
      <p role="alert" className="min-w-0 flex-1 basis-56 text-sm [overflow-wrap:anywhere]">
        <span className="font-medium">{props.name}</span> is there already. Replace what is in it?
      </p>
      <span className="flex flex-1 justify-end gap-2">
        <Button className="max-md:h-11" onClick={() => props.onAnswer(false)}>
          Cancel
        </Button>
        <Button variant="danger" className="max-md:h-11" onClick={() => props.onAnswer(true)}>
          Replace
        </Button>
      </span>
    </div>
  )
}

/** Where one is, and the way back. */
function Trail(props: { path: string; onGo: (path: string) => void }) {
  const names = props.path === '' ? [] : props.path.split('/')
  const step = 'rounded px-1 py-0.5 font-mono text-xs hover:bg-hover hover:text-ink max-md:py-3'
  return (
    <nav aria-label="Directory" className="flex min-w-0 flex-1 flex-wrap items-center text-muted">
      {['workspace', ...names].map((name, depth) => (
        // The same name may be there twice.
        // oxlint-disable-next-line react/no-array-index-key
        <Fragment key={depth}>
          {depth > 0 && <span aria-hidden>/</span>}
          <button
            type="button"
            className={step}
            aria-current={depth === names.length ? 'page' : undefined}
            onClick={() => props.onGo(names.slice(0, depth).join('/'))}
          >
            {name}
          </button>
        </Fragment>
      ))}
    </nav>
  )
}

function EntryLine(props: { entry: WorkspaceEntry; path: string; onEnter: (path: string) => void }) {
  const { entry, path } = props
  const line =
    'flex min-h-11 min-w-0 flex-1 items-center gap-3 py-1.5 pl-5 text-left text-sm hover:bg-hover focus-visible:-outline-offset-2'
  const name = <span className="min-w-0 flex-1 truncate">{entry.name}</span>
  if (entry.kind === 'directory') {
    return (
      <li className="flex">
        <button type="button" className={`${line} pr-5`} onClick={() => props.onEnter(path)}>
          <Folder className="size-4 shrink-0 text-accent" aria-hidden />
          {name}
        </button>
      </li>
    )
  }
  if (entry.kind !== 'file') {
    return (
      <li className="flex min-h-11 items-center gap-3 py-1.5 pr-5 pl-5 text-sm text-muted">
        <FileIcon className="size-4 shrink-0" aria-hidden />
        {name}
        <span className="shrink-0 text-xs">{entry.kind === 'symlink' ? 'a link' : 'no file'}</span>
      </li>
    )
  }
  return (
    <li className="flex items-center">
      <a href={fileUrl(path)} target="_blank" rel="noopener" className={line}>
        <FileIcon className="size-4 shrink-0 text-faint" aria-hidden />
        {name}
        <span className="shrink-0 text-xs text-muted tabular-nums">{formatBytes(entry.size)}</span>
        <span className="w-24 shrink-0 text-right text-xs text-muted tabular-nums max-sm:hidden">
          {formatDate(entry.modifiedAt)}
        </span>
      </a>
      <a
        href={fileUrl(path, { download: true })}
        download={entry.name}
        aria-label={`Download ${entry.name}`}
        title={`Download ${entry.name}`}
        className="mx-1 inline-flex size-11 shrink-0 items-center justify-center rounded-lg text-muted hover:bg-hover hover:text-ink"
      >
        <Download className="size-4" aria-hidden />
      </a>
    </li>
  )
}

/** `conflict`: something of that name is there, and was left alone. Throws what can be shown. */
async function putInto(directory: string, file: File, replace: boolean): Promise<'put' | 'conflict'> {
  try {
    // A folder that was dropped has no bytes, and its name says nothing about that.
    await file.slice(0, 1).arrayBuffer()
  } catch (error) {
    throw new Error(`“${file.name}” cannot be read. Add files, not folders.`, { cause: error })
  }
  try {
    await putFile(below(directory, file.name), file, { replace })
    return 'put'
  } catch (error) {
    if (error instanceof ApiError && error.code === 'conflict') return 'conflict'
    throw error
  }
}

function below(directory: string, name: string): string {
  return directory === '' ? name : `${directory}/${name}`
}

/** Directories first, what is hidden last. */
function inOrder(entries: readonly WorkspaceEntry[]): WorkspaceEntry[] {
  const rank = ({ name, kind }: WorkspaceEntry) => (name.startsWith('.') ? 2 : kind === 'directory' ? 0 : 1)
  return entries.toSorted((a, b) => rank(a) - rank(b))
}
