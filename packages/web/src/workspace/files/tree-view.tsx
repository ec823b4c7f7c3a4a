/** The rows of the tree. Only those near what is seen are drawn. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import type { WorkspaceEntry } from '@sandlot/shared/workspace/files'
import { ChevronRight, File as FileIcon, Folder, FolderOpen, Link2 } from 'lucide-react'
import {
  type DragEvent,
  type KeyboardEvent,
  type MouseEvent,
  type RefObject,
  type UIEvent,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import { cn } from '../../lib/cn.ts'
import { revealedText } from '../../lib/invisible.ts'
import { Revealed } from '../../ui/revealed.tsx'
import { folderOf, nameOf } from '../../state/dropped.ts'
import { EntryMenu, type EntryActions } from './entry-menu.tsx'
import {
  type NoteRow,
  type Row,
  loadFolder,
  loadMore,
  mark,
  pathsFor,
  rowsOf,
  toggleFolder,
  unmark,
  useTree,
} from './use-tree.ts'

/** Drawn above and below what is seen. */
const MARGIN_ROWS = 12
const INDENT_PX = 16
/** Type of what is dragged within the tree. */
const DRAGGED = 'application/x-sandlot-paths'

const TREE =
  'group/tree min-h-0 flex-1 overflow-y-auto py-1 outline-none focus-visible:outline-2 focus-visible:-outline-offset-2 focus-visible:outline-accent-line'

export function TreeView(props: {
  actions: EntryActions
  /** The entry that is being renamed, in place. */
  renaming: string | null
  onRename: (path: string, name: string | null) => void
  /** Files and folders from elsewhere. */
  onDrop: (data: DataTransfer, folder: string) => void
}) {
  const tree = useTree()
  const rows = rowsOf(tree)
  const box = useRef<HTMLDivElement>(null)
  const id = useId()
  const height = useRowHeight()
  const at = rows.findIndex((row) => 'entry' in row && row.path === tree.at)
  const { first, last, onScroll } = useSeenRows(box, rows.length, at, height)
  const entries = rows.filter((row) => 'entry' in row)
  const here = entries.find((row) => row.path === tree.at)

  const { target, ...dropEvents } = useDropTarget(rows, height, props)
  return (
    <div
      ref={box}
      role="tree"
      aria-label="Workspace"
      aria-multiselectable
      aria-activedescendant={here === undefined ? undefined : `${id}${here.path}`}
      tabIndex={0}
      data-testid="tree"
      onKeyDown={(event) => props.renaming === null && onTreeKey(event, entries, here, props.actions, id)}
      onFocus={() => here === undefined && focusFirst(entries)}
      onScroll={onScroll}
      {...dropEvents}
      className={cn(TREE, target === '' && 'bg-accent-wash')}
    >
      <div role="none" className="relative" style={{ height: rows.length * height }}>
        {rows.slice(first, last).map((row, index) => {
          const style = { top: (first + index) * height, height, paddingLeft: 8 + row.level * INDENT_PX }
          if (!('entry' in row)) return <Note key={`${row.folder}/${row.note}`} row={row} style={style} />
          return (
            <EntryRow
              key={row.path}
              id={`${id}${row.path}`}
              row={row}
              style={style}
              marked={tree.marked.has(row.path)}
              here={row.path === tree.at}
              target={row.path === target}
              renaming={row.path === props.renaming}
              onRename={(name) => {
                props.onRename(row.path, name)
                box.current?.focus()
              }}
              actions={props.actions}
            />
          )
        })}
      </div>
    </div>
  )
}

/** The rows to draw: those in view, with a margin. The focused row is scrolled into view. */
function useSeenRows(box: RefObject<HTMLElement | null>, count: number, at: number, height: number) {
  const [seen, setSeen] = useState({ top: 0, height: 800 })
  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return
    const measure = () => setSeen({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [box])
  useEffect(() => {
    const element = box.current
    if (element === null || at < 0) return
    if (at * height < element.scrollTop) element.scrollTop = at * height
    else if ((at + 1) * height > element.scrollTop + element.clientHeight)
      element.scrollTop = (at + 1) * height - element.clientHeight
  }, [box, at, height])
  return {
    first: Math.max(0, Math.floor(seen.top / height) - MARGIN_ROWS),
    last: Math.min(count, Math.ceil((seen.top + seen.height) / height) + MARGIN_ROWS),
    onScroll: ({ currentTarget }: UIEvent<HTMLElement>) =>
      setSeen({ top: currentTarget.scrollTop, height: currentTarget.clientHeight }),
  }
}

function focusFirst([first]: readonly Row[]): void {
  if (first !== undefined) useTree.setState({ at: first.path })
}

function onTreeKey(
  event: KeyboardEvent,
  entries: readonly Row[],
  here: Row | undefined,
  actions: EntryActions,
  id: string,
): void {
  if (event.altKey) return
  if (!moveByKey(event, entries, here) && !actByKey(event, entries, here, actions, id)) return
  event.preventDefault()
  event.stopPropagation()
}

/** Arrows, Home and End: false for another key. */
function moveByKey(event: KeyboardEvent, entries: readonly Row[], here: Row | undefined): boolean {
  const goTo = (row: Row | undefined) => {
    if (row !== undefined) mark(row.path, event.shiftKey ? 'to' : 'only')
  }
  const index = here === undefined ? -1 : entries.indexOf(here)
  const isFolder = here?.entry.kind === 'directory'
  if (event.key === 'ArrowDown') goTo(entries[Math.min(index + 1, entries.length - 1)])
  else if (event.key === 'ArrowUp') goTo(entries[Math.max(index - 1, 0)])
  else if (event.key === 'Home') goTo(entries[0])
  else if (event.key === 'End') goTo(entries.at(-1))
  else if (here === undefined || event.ctrlKey || event.metaKey) return false
  else if (event.key === 'ArrowRight' && isFolder) {
    if (!here.open) toggleFolder(here.path, true)
    else if (entries[index + 1]?.path.startsWith(`${here.path}/`)) goTo(entries[index + 1])
  } else if (event.key === 'ArrowLeft') {
    if (isFolder && here.open) toggleFolder(here.path, false)
    else if (here.level > 0) mark(folderOf(here.path))
  } else return false
  return true
}

/** Keys that select, open, rename or delete: false for another key. */
function actByKey(
  event: KeyboardEvent,
  entries: readonly Row[],
  here: Row | undefined,
  actions: EntryActions,
  id: string,
): boolean {
  const ctrl = event.ctrlKey || event.metaKey
  if (event.key === 'a' && ctrl) useTree.setState({ marked: new Set(entries.map(({ path }) => path)) })
  else if (event.key === 'Escape' && useTree.getState().marked.size > 1) unmark()
  else if (here === undefined || ctrl) return false
  else if (event.key === 'Enter') {
    if (here.entry.kind === 'directory') toggleFolder(here.path)
    else actions.open(here.path)
  } else if (event.key === ' ') mark(here.path, 'add')
  else if (event.key === 'F2') actions.rename(here.path)
  else if (event.key === 'Delete') actions.remove(pathsFor(here.path))
  else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey))
    openMenu(document.getElementById(`${id}${here.path}`))
  else return false
  return true
}

/** The folder for a drop on this row; below all rows, the workspace itself. */
function dropFolder(row: Row | NoteRow | undefined): string {
  if (row === undefined) return ''
  if (!('entry' in row)) return row.folder
  return row.entry.kind === 'directory' ? row.path : folderOf(row.path)
}

/** `target`: the folder under what is dragged. */
function useDropTarget(
  rows: readonly (Row | NoteRow)[],
  height: number,
  props: { actions: EntryActions; onDrop: (data: DataTransfer, folder: string) => void },
) {
  const [target, setTarget] = useState<string | null>(null)
  const dropRow = (event: DragEvent): Row | NoteRow | undefined => {
    const box = event.currentTarget.getBoundingClientRect()
    return rows[Math.floor((event.clientY - box.top + event.currentTarget.scrollTop) / height)]
  }
  const onDragOver = (event: DragEvent) => {
    const { types } = event.dataTransfer
    if (!types.includes('Files') && !types.includes(DRAGGED)) return
    event.preventDefault()
    event.stopPropagation()
    event.dataTransfer.dropEffect = types.includes(DRAGGED) ? 'move' : 'copy'
    setTarget(dropFolder(dropRow(event)))
  }
  const onDrop = (event: DragEvent) => {
    event.preventDefault()
    event.stopPropagation()
    setTarget(null)
    const folder = dropFolder(dropRow(event))
    const dragged = event.dataTransfer.getData(DRAGGED)
    if (dragged === '') props.onDrop(event.dataTransfer, folder)
    else
      props.actions.move(
        dragged.split('\0').filter((path) => folderOf(path) !== folder),
        folder,
      )
  }
  return { target, onDragOver, onDragLeave: () => setTarget(null), onDrop }
}

function useRowHeight(): number {
  const [height, setHeight] = useState(() => (matchMedia('(pointer: coarse)').matches ? 44 : 30))
  useEffect(() => {
    const query = matchMedia('(pointer: coarse)')
    const change = () => setHeight(query.matches ? 44 : 30)
    query.addEventListener('change', change)
    return () => query.removeEventListener('change', change)
  }, [])
  return height
}

function openMenu(row: Element | null): void {
  row?.querySelector<HTMLElement>('[aria-haspopup=menu]')?.click()
}

const ROW = 'absolute inset-x-0 flex items-center gap-1.5 pr-1 text-sm'

function EntryRow(props: {
  id: string
  row: Row
  style: object
  marked: boolean
  here: boolean
  target: boolean
  renaming: boolean
  onRename: (name: string | null) => void
  actions: EntryActions
}) {
  const { row, actions } = props
  const { entry, path } = row
  const isFolder = entry.kind === 'directory'
  return (
    <div
      id={props.id}
      role="treeitem"
      aria-level={row.level + 1}
      aria-setsize={row.of}
      aria-posinset={row.place}
      aria-selected={props.marked}
      aria-expanded={isFolder ? row.open : undefined}
      aria-label={revealedText(entry.name)}
      data-path={path}
      draggable={!props.renaming}
      {...pointerEvents(props)}
      style={props.style}
      className={cn(
        ROW,
        'group/row cursor-pointer select-none hover:bg-hover',
        props.marked && 'bg-accent-wash hover:bg-accent-wash',
        props.target && 'bg-accent-wash outline outline-accent-line',
        props.here &&
          'group-focus-visible/tree:outline-2 group-focus-visible/tree:-outline-offset-2 group-focus-visible/tree:outline-accent',
      )}
    >
      <ChevronRight
        aria-hidden
        className={cn(
          'size-3.5 shrink-0 text-faint transition-transform duration-100',
          row.open && 'rotate-90',
          !isFolder && 'invisible',
        )}
      />
      <EntryIcon entry={entry} open={row.open} />
      <EntryLabel entry={entry} renaming={props.renaming} onRename={props.onRename} />
      {!props.renaming && <EntryMenu path={path} entry={entry} actions={actions} />}
    </div>
  )
}

/** Ctrl or Cmd marks an entry as well, Shift all up to it. */
function pointerEvents(props: { row: Row; marked: boolean; renaming: boolean; actions: EntryActions }) {
  const { row, marked, renaming, actions } = props
  return {
    onDragStart(event: DragEvent) {
      event.dataTransfer.setData(DRAGGED, pathsFor(row.path).join('\0'))
      event.dataTransfer.effectAllowed = 'move'
    },
    onContextMenu(event: MouseEvent) {
      if (renaming || event.shiftKey) return
      event.preventDefault()
      if (!marked) mark(row.path)
      openMenu(event.currentTarget)
    },
    onClick(event: MouseEvent) {
      if (renaming) return
      if (event.metaKey || event.ctrlKey) return mark(row.path, 'add')
      if (event.shiftKey) return mark(row.path, 'to')
      mark(row.path)
      if (row.entry.kind === 'directory') toggleFolder(row.path)
      else actions.open(row.path)
    },
  }
}

function EntryLabel(props: {
  entry: WorkspaceEntry
  renaming: boolean
  onRename: (name: string | null) => void
}) {
  const { entry, renaming } = props
  if (renaming) return <NameField name={entry.name} onDone={props.onRename} />
  return (
    <>
      <span
        className={cn('min-w-0 flex-1 truncate', entry.name.startsWith('.') && 'text-muted')}
        title={revealedText(entry.name)}
      >
        <Revealed text={entry.name} />
      </span>
      {entry.kind === 'file' && (
        <span
          aria-hidden
          // Not of the name that is read aloud.
          data-size={formatBytes(entry.size)}
          className="shrink-0 text-xs text-muted tabular-nums after:content-[attr(data-size)]"
        />
      )}
    </>
  )
}

function EntryIcon({ entry, open }: { entry: WorkspaceEntry; open: boolean }) {
  const Icon =
    entry.kind === 'symlink' ? Link2 : entry.kind !== 'directory' ? FileIcon : open ? FolderOpen : Folder
  return (
    <Icon
      aria-hidden
      className={cn('size-4 shrink-0', entry.kind === 'directory' ? 'text-accent' : 'text-faint')}
    />
  )
}

/** Enter takes the name, Escape leaves it. */
function NameField(props: { name: string; onDone: (name: string | null) => void }) {
  const [name, setName] = useState(props.name)
  const field = useRef<HTMLInputElement>(null)
  const done = useRef(false)
  useEffect(() => {
    field.current?.focus()
    const ending = props.name.lastIndexOf('.')
    field.current?.setSelectionRange(0, ending > 0 ? ending : props.name.length)
    // Once.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  const finish = (to: string | null) => {
    // Taking the field away takes its focus too.
    if (done.current) return
    done.current = true
    props.onDone(to === props.name || to?.trim() === '' ? null : to)
  }
  return (
    <input
      ref={field}
      aria-label={`New name of ${revealedText(props.name)}`}
      value={name}
      maxLength={255}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => setName(event.target.value)}
      onClick={(event) => event.stopPropagation()}
      onBlur={() => finish(name)}
      onKeyDown={(event) => {
        event.stopPropagation()
        if (event.nativeEvent.isComposing) return
        if (event.key === 'Enter') finish(name)
        if (event.key === 'Escape') {
          event.nativeEvent.stopImmediatePropagation()
          finish(null)
        }
      }}
      className="h-6 min-w-0 flex-1 rounded border border-accent-line bg-raised px-1.5 text-sm outline-none pointer-coarse:h-9"
    />
  )
}

function Note({ row, style }: { row: NoteRow; style: { paddingLeft: number } }) {
  const padded = { ...style, paddingLeft: style.paddingLeft + 20 }
  const button = 'rounded px-1 text-accent hover:underline'
  return (
    <div role="none" style={padded} className={cn(ROW, 'text-xs text-muted')}>
      {row.note === 'more' ? (
        <button type="button" className={button} onClick={() => void loadMore(row.folder)}>
          {row.words}…
        </button>
      ) : row.note === 'failed' ? (
        <>
          <span role="alert" title={row.words} className="min-w-0 truncate text-failed">
            {row.words}
          </span>
          <button type="button" className={button} onClick={() => void loadFolder(row.folder)}>
            Try again
          </button>
        </>
      ) : (
        row.words
      )}
    </div>
  )
}

/** For the words of a question: “notes.txt”, or how many. */
export function namesOf(paths: readonly string[]): string {
  return paths.length === 1 ? `“${revealedText(nameOf(paths[0] ?? ''))}”` : `${paths.length} entries`
}
