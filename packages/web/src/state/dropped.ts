/** Files and folders that were chosen or dropped, as paths below where they go. */
import type { NewEntry } from './uploads.ts'

/** The most files of one drop; more are better sent as an archive. */
const MOST_FILES = 10_000

export const below = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`)
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** Chosen ones. Of a chosen folder each says where in it it was. */
export function chosenEntries(files: Iterable<File>, folder: string): NewEntry[] {
  return [...files].map((file) => ({
    path: below(folder, file.webkitRelativePath === '' ? file.name : file.webkitRelativePath),
    file,
  }))
}

/**
 * Must be called while the drop is handled. Throws where there are too many, and what cannot be
 * read.
 */
export async function droppedEntries(data: DataTransfer, folder: string): Promise<NewEntry[]> {
  const roots = [...data.items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  if (roots.length === 0) return chosenEntries(data.files, folder)
  const found: NewEntry[] = []
  for (const root of roots) await collect(root, folder, found)
  return found
}

/**
 * Files and folders of one drop apart. Must be called while it is handled. `entries` is all that is
 * in the folders, as of `droppedEntries`.
 */
export function splitDrop(
  data: DataTransfer,
  folder: string,
): { files: File[]; folders: string[]; entries: () => Promise<NewEntry[]> } {
  const items = [...data.items].filter(({ kind }) => kind === 'file')
  const folders = items.flatMap((item) => {
    const entry = item.webkitGetAsEntry()
    return entry !== null && isFolder(entry) ? [entry] : []
  })
  const isFile = (item: DataTransferItem) => item.webkitGetAsEntry()?.isDirectory !== true
  return {
    files:
      items.length === 0
        ? [...data.files]
        : items.flatMap((item) => (isFile(item) ? (item.getAsFile() ?? []) : [])),
    folders: folders.map(({ name }) => below(folder, name)),
    async entries() {
      const found: NewEntry[] = []
      for (const one of folders) await collect(one, folder, found)
      return found
    },
  }
}

async function collect(entry: FileSystemEntry, folder: string, found: NewEntry[]): Promise<void> {
  if (found.length >= MOST_FILES)
    throw new Error(`More than ${MOST_FILES.toLocaleString('en')} files. Zip them first.`)
  const path = below(folder, entry.name)
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject))
    found.push({ path, file })
  } else if (isFolder(entry)) {
    const entries = await entriesOf(entry)
    if (entries.length === 0) found.push({ path, file: null })
    for (const one of entries) await collect(one, path, found)
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory

/** A reader gives some at a time. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader()
  const all: FileSystemEntry[] = []
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    )
    if (some.length === 0) return all
    all.push(...some)
  }
}
