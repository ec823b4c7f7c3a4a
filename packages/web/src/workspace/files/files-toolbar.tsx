/** Toolbar above the tree: search, new entries, and actions on the whole workspace. */
import { Archive, Ellipsis, FilePlus, FolderPlus, FolderUp, RotateCw, Trash2, Upload } from 'lucide-react'
import { useRef } from 'react'
import { zipUrl } from '../../net/files.ts'
import { ICON_BUTTON, IconButton } from '../../ui/button.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { folderOf, nameOf } from '../../state/dropped.ts'
import { downloadItem, type EntryActions, menuItem, POPUP } from './entry-menu.tsx'
import { refreshTree, useTree } from './use-tree.ts'
import { Menu } from '../../ui/on-demand.tsx'

export function FilesToolbar(props: {
  query: string
  onQuery: (query: string) => void
  actions: EntryActions
  onFolders: () => void
  onTrash: () => void
}) {
  const { actions } = props
  const host = useRef<HTMLDivElement>(null)
  const at = useTree((tree) => tree.at)
  const folder = () => focusedFolder(at)
  return (
    <div ref={host} className="flex items-center gap-1 border-b border-line py-1.5 pr-2 pl-3">
      <SearchField
        label="Search for files"
        placeholder="Search for files"
        compact
        value={props.query}
        onChange={props.onQuery}
        onKeyDown={(event) => {
          if (event.key !== 'Escape' || props.query === '') return
          event.nativeEvent.stopImmediatePropagation()
          props.onQuery('')
        }}
      />
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
          aria-label="Workspace options"
          title="Workspace options"
          className={`${ICON_BUTTON} data-popup-open:bg-hover`}
        >
          <Ellipsis aria-hidden />
        </Menu.Trigger>
        <Menu.Portal container={host}>
          <Menu.Positioner positionMethod="fixed" side="bottom" align="end" sideOffset={4} className="z-50">
            <Menu.Popup className={POPUP}>
              {menuItem('New file', FilePlus, () => actions.addFile(folder()))}
              {menuItem('New folder', FolderPlus, () => actions.addFolder(folder()))}
              {menuItem('Add a folder', FolderUp, props.onFolders)}
              {downloadItem(zipUrl(''), 'Download all as zip', Archive)}
              {menuItem('Trash', Trash2, props.onTrash)}
              {menuItem('Refresh', RotateCw, () => void refreshTree())}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </div>
  )
}

/** The folder in focus, or that of the file in focus. */
function focusedFolder(at: string | null): string {
  const entry = at === null ? undefined : entryAt(at)
  return at === null || entry === undefined ? '' : entry.kind === 'directory' ? at : folderOf(at)
}

function entryAt(path: string) {
  return useTree
    .getState()
    .folders.get(folderOf(path))
    ?.entries.find(({ name }) => name === nameOf(path))
}
