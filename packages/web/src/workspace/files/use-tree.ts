/** The tree of the workspace: what is open, marked and known of it. */
import { messageOf } from '@sandlot/shared/base/errors'
import type { WorkspaceEntry } from '@sandlot/shared/workspace/files'
import { create } from 'zustand'
import { call } from '../../net/call.ts'
import { below, folderOf } from '../../state/dropped.ts'

export interface Row {
  path: string
  entry: WorkspaceEntry
  /** 0: directly in the workspace. */
  level: number
  /** Set for a folder. */
  open: boolean
  /** Its position among its siblings, from 1, and their number. */
  place: number
  of: number
}

/** Below an open folder: what is not there yet, or is more than is listed. */
export interface NoteRow {
  folder: string
  level: number
  note: 'loading' | 'empty' | 'more' | 'failed'
  words: string
}

interface Folder {
  entries: readonly WorkspaceEntry[]
  /** The number of entries after the listed ones. */
  left: number
  problem: string | null
}

interface Tree {
  folders: ReadonlyMap<string, Folder>
  open: ReadonlySet<string>
  marked: ReadonlySet<string>
  /** The path with the focus. */
  at: string | null
  /** One end of a range that is marked with Shift. */
  from: string | null
}

const nowhere = (): Tree => ({
  folders: new Map(),
  open: new Set(),
  marked: new Set(),
  at: null,
  from: null,
})

export const useTree = create<Tree>()(nowhere)

/** Reloads a folder. The shown entries stay until the answer. Never rejects. */
export async function loadFolder(path: string): Promise<void> {
  try {
    const { entries, left } = await call('listFiles', { query: { path } })
    setFolder(path, { entries: inOrder(entries), left, problem: null })
  } catch (error) {
    const known = useTree.getState().folders.get(path)
    setFolder(path, { entries: known?.entries ?? [], left: known?.left ?? 0, problem: messageOf(error) })
  }
}

/** The next entries of a folder that has more than are listed. */
export async function loadMore(path: string): Promise<void> {
  const known = useTree.getState().folders.get(path)
  if (known === undefined) return
  const last = known.entries.map(({ name }) => name).reduce((a, b) => (a > b ? a : b), '')
  try {
    const { entries, left } = await call('listFiles', { query: { path, after: last } })
    setFolder(path, { entries: inOrder([...known.entries, ...entries]), left, problem: null })
  } catch (error) {
    setFolder(path, { ...known, problem: messageOf(error) })
  }
}

/** All that is open, again. */
export async function refreshTree(): Promise<void> {
  const { open } = useTree.getState()
  await Promise.all(['', ...open].map(loadFolder))
}

export function toggleFolder(path: string, open?: boolean): void {
  const now = useTree.getState().open
  const next = new Set(now)
  if (open ?? !now.has(path)) next.add(path)
  else next.delete(path)
  useTree.setState({ open: next })
  if (next.has(path)) void loadFolder(path)
}

/** Opens the folders above it, and puts the keys there. */
export async function reveal(path: string): Promise<void> {
  const above: string[] = []
  for (let folder = folderOf(path); folder !== ''; folder = folderOf(folder)) above.unshift(folder)
  useTree.setState(({ open }) => ({ open: new Set([...open, ...above]) }))
  await Promise.all(['', ...above].map(loadFolder))
  mark(path)
}

/** `add`: beside what is marked. `to`: everything from where the mark was begun. */
export function mark(path: string, how: 'only' | 'add' | 'to' = 'only'): void {
  const { marked, from } = useTree.getState()
  if (how === 'only') useTree.setState({ marked: new Set([path]), at: path, from: path })
  else if (how === 'add') {
    const next = new Set(marked)
    if (!next.delete(path)) next.add(path)
    useTree.setState({ marked: next, at: path, from: path })
  } else {
    const paths = rowsOf(useTree.getState()).flatMap((row) => ('entry' in row ? [row.path] : []))
    const [a, b] = [paths.indexOf(from ?? path), paths.indexOf(path)].toSorted((x, y) => x - y)
    useTree.setState({ marked: new Set(paths.slice(Math.max(0, a ?? 0), (b ?? 0) + 1)), at: path })
  }
}

export function unmark(): void {
  useTree.setState({ marked: new Set() })
}

/** Selected paths, without those inside of a selected folder. */
function markedPaths({ marked }: Tree): string[] {
  return [...marked].filter((path) => {
    for (let folder = folderOf(path); folder !== ''; folder = folderOf(folder))
      if (marked.has(folder)) return false
    return true
  })
}

/** The paths that an action on this entry is about: the selection, where it is part of it. */
export function pathsFor(path: string): string[] {
  const tree = useTree.getState()
  return tree.marked.has(path) ? markedPaths(tree) : [path]
}

/** All rows from top to bottom. Pure. */
export function rowsOf({ folders, open }: Tree): (Row | NoteRow)[] {
  const rows: (Row | NoteRow)[] = []
  const add = (path: string, level: number): void => {
    const folder = folders.get(path)
    if (folder === undefined) {
      rows.push({ folder: path, level, note: 'loading', words: 'Loading…' })
      return
    }
    folder.entries.forEach((entry, index) => {
      const here = below(path, entry.name)
      const isOpen = entry.kind === 'directory' && open.has(here)
      rows.push({ path: here, entry, level, open: isOpen, place: index + 1, of: folder.entries.length })
      if (isOpen) add(here, level + 1)
    })
    if (folder.problem !== null) rows.push({ folder: path, level, note: 'failed', words: folder.problem })
    else if (folder.left > 0)
      rows.push({ folder: path, level, note: 'more', words: `${folder.left.toLocaleString('en')} more` })
    else if (folder.entries.length === 0 && path !== '')
      rows.push({ folder: path, level, note: 'empty', words: 'Empty' })
  }
  add('', 0)
  return rows
}

function setFolder(path: string, folder: Folder): void {
  useTree.setState((tree) => {
    const folders = new Map(tree.folders).set(path, folder)
    if (folder.problem !== null) return { folders }
    // Removed entries are no longer open, selected or focused.
    const there = new Set(folder.entries.map(({ name }) => below(path, name)))
    const isRemoved = (one: string): boolean => {
      if (path !== '' && !one.startsWith(`${path}/`)) return false
      const rest = path === '' ? one : one.slice(path.length + 1)
      return folder.left === 0 && !there.has(below(path, rest.split('/')[0] ?? ''))
    }
    const remaining = (set: ReadonlySet<string>) => new Set([...set].filter((one) => !isRemoved(one)))
    for (const known of folders.keys())
      if (known !== path && known !== '' && isRemoved(known)) folders.delete(known)
    return {
      folders,
      open: remaining(tree.open),
      marked: remaining(tree.marked),
      at: tree.at !== null && isRemoved(tree.at) ? null : tree.at,
    }
  })
}

/** Folders first, what is hidden last. */
function inOrder(entries: readonly WorkspaceEntry[]): WorkspaceEntry[] {
  const rank = ({ name, kind }: WorkspaceEntry) => (name.startsWith('.') ? 2 : kind === 'directory' ? 0 : 1)
  return entries.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
}
