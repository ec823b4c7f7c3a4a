/** Actions on one entry of the tree, or on all that are selected with it. */
import type { WorkspaceEntry } from '@sandlot/shared/workspace/files'
import {
  Archive,
  Copy,
  Download,
  Ellipsis,
  FilePlus,
  FolderInput,
  FolderPlus,
  type LucideIcon,
  Pencil,
  SquarePen,
  Trash2,
  Upload,
} from 'lucide-react'
import { useRef } from 'react'
import { revealedText } from '../../lib/invisible.ts'
import { fileUrl, zipUrl } from '../../net/files.ts'
import { pathsFor, useTree } from './use-tree.ts'
import { Menu } from '../../ui/on-demand.tsx'

export interface EntryActions {
  open: (path: string) => void
  edit: (path: string) => void
  rename: (path: string) => void
  /** Without a folder it is asked for. */
  move: (paths: readonly string[], folder?: string) => void
  remove: (paths: readonly string[]) => void
  addFile: (folder: string) => void
  addFolder: (folder: string) => void
  upload: (folder: string) => void
  copyPath: (path: string) => void
}

const ITEM =
  'flex h-8 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm outline-none data-highlighted:bg-hover pointer-coarse:h-11'
export const POPUP = 'popup min-w-48 rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none'
const ICON = 'size-4 text-muted'
/** All of them are in one address. */
const MOST_ZIPPED = 100

export function menuItem(label: string, Icon: LucideIcon, onClick: () => void) {
  return (
    <Menu.Item className={ITEM} onClick={onClick}>
      <Icon className={ICON} aria-hidden /> {label}
    </Menu.Item>
  )
}

export function downloadItem(href: string, label: string, Icon: LucideIcon) {
  return (
    <Menu.LinkItem className={ITEM} href={href} download closeOnClick>
      <Icon className={ICON} aria-hidden /> {label}
    </Menu.LinkItem>
  )
}

export function EntryMenu(props: { path: string; entry: WorkspaceEntry; actions: EntryActions }) {
  const { path, entry, actions } = props
  // Inside the page’s landmark, not at the end of the body.
  const host = useRef<HTMLSpanElement>(null)
  const marked = useTree(({ marked }) => (marked.has(path) ? marked.size : 1))
  const name = revealedText(entry.name)
  return (
    <span ref={host} role="none" onClick={(event) => event.stopPropagation()}>
      <Menu.Root>
        <Menu.Trigger
          // The keys are on the row: there it is Shift F10.
          tabIndex={-1}
          aria-label={`Options for ${name}`}
          title={`Options for ${name}`}
          className="inline-flex size-6 items-center justify-center rounded-md text-muted opacity-0 group-hover/row:opacity-100 hover:bg-hover hover:text-ink focus-visible:opacity-100 data-popup-open:bg-hover data-popup-open:opacity-100 pointer-coarse:size-11 pointer-coarse:opacity-100"
        >
          <Ellipsis className="size-4" aria-hidden />
        </Menu.Trigger>
        <Menu.Portal container={host}>
          <Menu.Positioner positionMethod="fixed" side="bottom" align="end" className="z-50">
            <Menu.Popup className={POPUP} onKeyDown={(event) => event.stopPropagation()}>
              {marked > 1 ? (
                <>
                  {menuItem(`Move ${marked} entries…`, FolderInput, () => actions.move(pathsFor(path)))}
                  {pathsFor(path).length <= MOST_ZIPPED &&
                    downloadItem(zipUrl(...pathsFor(path)), `Download ${marked} entries as zip`, Archive)}
                  {menuItem(`Delete ${marked} entries`, Trash2, () => actions.remove(pathsFor(path)))}
                </>
              ) : (
                <>
                  {entry.kind === 'file' && menuItem('Edit as text', SquarePen, () => actions.edit(path))}
                  {entry.kind === 'directory' && (
                    <>
                      {menuItem('New file', FilePlus, () => actions.addFile(path))}
                      {menuItem('New folder', FolderPlus, () => actions.addFolder(path))}
                      {menuItem('Add files here', Upload, () => actions.upload(path))}
                    </>
                  )}
                  {menuItem('Copy path', Copy, () => actions.copyPath(path))}
                  {menuItem('Rename', Pencil, () => actions.rename(path))}
                  {menuItem('Move…', FolderInput, () => actions.move([path]))}
                  {entry.kind === 'file' &&
                    downloadItem(fileUrl(path, { download: true }), 'Download', Download)}
                  {entry.kind === 'directory' && downloadItem(zipUrl(path), 'Download as zip', Archive)}
                  {menuItem('Delete', Trash2, () => actions.remove([path]))}
                </>
              )}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </span>
  )
}
