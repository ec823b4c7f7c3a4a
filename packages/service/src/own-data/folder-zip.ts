/**
 * A folder of a workspace as a zip file, made while it is sent. Symbolic links are not followed;
 * no name in it leads out of where it is unpacked.
 */
import { type PassThrough, Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { DirectoryList, FilePiece, WorkspaceEntry } from '@sandlot/shared/workspace/files'
import { ZipFile } from 'yazl'

/** Each takes some memory until the end. */
const MOST_ENTRIES = 100_000
/** A file that begins larger says so before its bytes. */
const LARGE_BYTES = 3_900_000_000
const LEVEL = 3
/** Files whose names end so are compressed already. */
const PACKED =
  /\.(7z|avif|bz2|docx|gif|gz|jar|jpe?g|m4a|mkv|mov|mp[34]|odt|ogg|png|pptx|rar|tgz|webm|webp|whl|xlsx|xz|zip|zst)$/i

export interface FolderReader {
  /** The first page, without `after`. */
  list(path: string, after?: string): Promise<DirectoryList>
  read(path: string, offset: number): Promise<FilePiece>
}

/** A zip file that is being filled. */
export interface ZipFilling {
  zip: ZipFile
  /** Aborted when its reader has gone. */
  signal: AbortSignal
}

interface ZippedFolder {
  path: string
  /** In the zip file. */
  name: string
  /** Its first page. */
  first: DirectoryList
  /** Only these paths of it. */
  only?: readonly string[] | undefined
}

/**
 * The bytes, at the pace at which they are taken. Ends with an error where `fill` rejects. `ended`
 * is called once, also after a cancel.
 */
export function streamZip(
  fill: (into: ZipFilling) => Promise<void>,
  ended: () => void,
): ReadableStream<Uint8Array> {
  const zip = new ZipFile()
  const output = zip.outputStream as PassThrough
  const taken = new AbortController()
  output.once('close', () => {
    taken.abort()
    ended()
  })
  fill({ zip, signal: taken.signal })
    .then(() => zip.end())
    .catch((error: unknown) => output.destroy(error instanceof Error ? error : new Error(messageOf(error))))
  return Readable.toWeb(output) as ReadableStream<Uint8Array>
}

/**
 * A text in it lists what could not be put in. Ends with an error when the workspace is not
 * reachable any more.
 */
export function zipFolder(
  reader: FolderReader,
  folder: ZippedFolder,
  ended: () => void,
): ReadableStream<Uint8Array> {
  return streamZip((into) => addFolder(into, reader, folder), ended)
}

/** `zipFolder`, into a zip file that has more. */
export async function addFolder(
  { zip, signal }: ZipFilling,
  reader: FolderReader,
  { path, name, first, only }: ZippedFolder,
): Promise<void> {
  const left: string[] = []
  let count = 0
  const isIn = only === undefined ? () => true : (at: string) => only.some((one) => isOnWay(at, one))
  for await (const { entry, at, to } of walk(reader, { path, name, first, isIn })) {
    if (signal.aborted) return
    count += 1
    if (count > MOST_ENTRIES) {
      left.push(`More than ${MOST_ENTRIES} files and folders: the rest is not in here.`)
      break
    }
    const mtime = new Date(Math.min(Math.max(entry.modifiedAt, EARLIEST), LATEST))
    if (entry.kind === 'directory') zip.addEmptyDirectory(to, { mtime })
    else if (entry.kind === 'file') await addFile(zip, reader, { at, to, mtime, left, signal })
    else left.push(`${JSON.stringify(at)} is ${entry.kind === 'symlink' ? 'a symbolic link' : 'no file'}.`)
  }
  if (left.length > 0)
    zip.addBuffer(
      Buffer.from(`Not in this zip file:\n\n${left.join('\n')}\n`),
      `${name}/_not-in-this-zip.txt`,
    )
}

/** The range of times in a zip file. */
const [EARLIEST, LATEST] = [Date.UTC(1980, 0, 2), Date.UTC(2107, 11, 30)]

interface AddedFile {
  at: string
  to: string
  mtime: Date
  left: string[]
  signal: AbortSignal
}

/** Resolves when its last byte was taken. */
async function addFile(zip: ZipFile, reader: FolderReader, { at, to, mtime, left, signal }: AddedFile) {
  let first: FilePiece
  try {
    first = await reader.read(at, 0)
  } catch (error) {
    if (!isAboutTheFile(error)) throw error
    left.push(`${JSON.stringify(at)}: ${messageOf(error)}`)
    return
  }
  const bytes = Readable.from(bytesOf(reader, at, first, left), { objectMode: false, signal })
  zip.addReadStream(bytes, to, {
    mtime,
    compressionLevel: PACKED.test(at) ? 0 : LEVEL,
    forceZip64Format: first.size > LARGE_BYTES,
  })
  await finished(bytes)
}

/** The file up to its length at the start: a growing log is included up to there. */
async function* bytesOf(
  reader: FolderReader,
  at: string,
  { size, data }: FilePiece,
  left: string[],
): AsyncGenerator<Buffer> {
  let piece = Buffer.from(data, 'base64').subarray(0, size)
  for (let sent = 0; sent < size;) {
    if (piece.length === 0) {
      left.push(`${JSON.stringify(at)} became shorter while it was read: its end is missing.`)
      return
    }
    yield piece
    sent += piece.length
    if (sent >= size) return
    try {
      piece = Buffer.from((await reader.read(at, sent)).data, 'base64').subarray(0, size - sent)
    } catch (error) {
      if (!isAboutTheFile(error)) throw error
      left.push(`${JSON.stringify(at)}, from byte ${sent} on: ${messageOf(error)}`)
      return
    }
  }
}

/** Not about the workspace as a whole. */
function isAboutTheFile(error: unknown): boolean {
  return (
    error instanceof SandlotError &&
    ['not_found', 'bad_request', 'forbidden', 'conflict', 'too_large'].includes(error.code)
  )
}

/** It is the other, or below it, or above it. */
function isOnWay(at: string, other: string): boolean {
  return `${at}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${at}/`)
}

interface Folder {
  path: string
  name: string
  first: DirectoryList
  isIn: (at: string) => boolean
}

interface Walked {
  entry: WorkspaceEntry
  /** In the workspace. */
  at: string
  /** In the zip file. */
  to: string
}

async function* walk(reader: FolderReader, { path, name, first, isIn }: Folder): AsyncGenerator<Walked> {
  const names = new Set<string>()
  for (let page = first; ;) {
    for (const entry of page.entries) {
      const at = path === '' ? entry.name : `${path}/${entry.name}`
      // Outputs, shell states and the trash.
      if (at === '.tool-outputs' || !isIn(at)) continue
      const to = `${name}/${uniqueName(entry.name, names)}`
      yield { entry, at, to }
      if (entry.kind === 'directory') yield* walkBelow(reader, { at, to, isIn })
    }
    const last = page.entries.at(-1)
    if (page.left === 0 || last === undefined) return
    page = await reader.list(path, last.name)
  }
}

async function* walkBelow(
  reader: FolderReader,
  { at, to, isIn }: Pick<Walked, 'at' | 'to'> & Pick<Folder, 'isIn'>,
): AsyncGenerator<Walked> {
  let first: DirectoryList
  try {
    first = await reader.list(at)
  } catch (error) {
    // It has gone, or is closed to us: it is there as an empty one.
    if (isAboutTheFile(error)) return
    throw error
  }
  yield* walk(reader, { path: at, name: to, first, isIn })
}

/** A name that every system takes, and that is in `used`, without regard to case, only once. */
function uniqueName(name: string, used: Set<string>): string {
  const safe = safeName(name)
  let unique = safe
  for (let n = 2; used.has(unique.toLowerCase()); n++) unique = `${safe} (${n})`
  used.add(unique.toLowerCase())
  return unique
}

/** Separators and what is not seen are `_`, also in the names that Windows reads otherwise. */
export function safeName(name: string): string {
  const plain = name
    .replaceAll(/[\\/:*?"<>|\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '_')
    .replace(/[. ]+$/, (end) => '_'.repeat(end.length))
  return /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i.test(plain) ? `_${plain}` : plain
}
