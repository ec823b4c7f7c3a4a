import { SandboxError } from '../errors.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { FLAG, FrameType, MAX_PAYLOAD } from './protocol/frames.ts'
import type {
  FileChange,
  FileKind,
  FileStat,
  FileWriter,
  PlaceOptions,
  SandboxFiles,
  WorkspaceChanges,
  WorkspaceSnapshot,
} from '../files.ts'
import { fileError } from './errno.ts'
import type { Link, Reply } from './link.ts'
import { DirectoryWatches } from './watch.ts'

const READ_BYTES = MAX_PAYLOAD - 64
const WRITE_BYTES = MAX_PAYLOAD - 8_192
/** Maximum size of a file or range read into memory. */
const MOST_BYTES = 64 * 1024 * 1024
/** Maximum of a list: the controller of all users holds it in memory. */
const MOST_ENTRIES = 100_000
const MOST_PATH_BYTES = 8 * 1024 * 1024
const AHEAD = 4
const MOST_REPOSITORIES = 8
const CHANGE_KINDS: Record<number, FileChange['kind']> = { 1: 'created', 2: 'changed', 3: 'removed' }
const KINDS: Record<number, FileKind> = { 1: 'file', 2: 'directory', 3: 'symlink', 4: 'other' }

/** File requests over a link. Each is atomic; nothing is cached. */
export class RemoteFiles implements SandboxFiles {
  readonly withoutLinks: SandboxFiles
  readonly #link: Link
  readonly #workspace: string
  /** Flags of every request. */
  readonly #flags: number
  /** Handles of writes; one sequence for both views, because sbxd identifies a write by it. */
  readonly #handles: { last: number }
  /** One for both views, because sbxd holds one set. */
  readonly #watches: DirectoryWatches

  constructor(
    link: Link,
    workspace: string,
    { flags = 0, handles = { last: 0 }, watches = new DirectoryWatches(link) } = {},
  ) {
    this.#link = link
    this.#workspace = workspace
    this.#flags = flags
    this.#handles = handles
    this.#watches = watches
    this.withoutLinks =
      flags === FLAG.NO_LINKS
        ? this
        : new RemoteFiles(link, workspace, { flags: FLAG.NO_LINKS, handles, watches })
  }

  async resolve(path: string): Promise<string> {
    const relative = this.#path(path)
    const request = new ByteWriter().text(relative).done()
    return (await this.#ask(FrameType.FILE_RESOLVE, 0, request, relative)).text()
  }

  async stat(path: string): Promise<FileStat> {
    const relative = this.#path(path)
    const reader = await this.#ask(FrameType.FILE_STAT, 0, new ByteWriter().text(relative).done(), relative)
    return { path: relative, ...readStat(reader) }
  }

  async list(path: string): Promise<FileStat[]> {
    const relative = this.#path(path)
    const entries: FileStat[] = []
    let position = 0n
    let pathBytes = 0
    for (;;) {
      const request = new ByteWriter().text(relative).opaque64(position).done()
      const { reader, flags } = await this.#reply(FrameType.FILE_LIST, 0, request, relative)
      position = reader.opaque64()
      const count = reader.u32()
      if (entries.length + count > MOST_ENTRIES)
        throw new SandboxError(
          'too_large',
          `"${relative}" has more than ${MOST_ENTRIES} entries; list it with a command`,
        )
      for (let i = 0; i < count; i += 1) {
        const stat = readStat(reader)
        const name = reader.text()
        const entry = { path: relative === '' ? name : `${relative}/${name}`, ...stat }
        pathBytes += Buffer.byteLength(entry.path)
        entries.push(entry)
      }
      if (pathBytes > MOST_PATH_BYTES)
        throw new SandboxError(
          'too_large',
          `The paths of what is in "${relative}" are longer than ${MOST_PATH_BYTES / 1024 / 1024} MiB together; list it with a command`,
        )
      if ((flags & FLAG.MORE) === 0) return entries.toSorted((a, b) => (a.path < b.path ? -1 : 1))
    }
  }

  async read(path: string, range: { offset?: number; length?: number } = {}): Promise<Uint8Array> {
    const relative = this.#file(path)
    const offset = whole(range.offset ?? 0, 'offset')
    const wanted = range.length === undefined ? MOST_BYTES + 1 : whole(range.length, 'length')
    if (range.length !== undefined && wanted > MOST_BYTES) throw tooLarge(relative)
    for (let attempt = 0; ; attempt += 1) {
      const bytes = await this.#readOnce(relative, offset, wanted)
      if (bytes) return bytes
      if (attempt === 2)
        throw new SandboxError('limit_reached', `"${relative}" changes while it is read, try again`)
    }
  }

  async write(path: string, data: Uint8Array): Promise<void> {
    await this.writer(path).commit(data)
  }

  writer(path: string, { isNew = false }: PlaceOptions = {}): FileWriter {
    const relative = this.#file(path)
    this.#handles.last += 1
    const send = (flags: number, payload: Buffer): Promise<unknown> =>
      this.#ask(FrameType.FILE_WRITE, flags, payload, relative)
    const first = isNew ? FLAG.BEGIN | FLAG.NEW : FLAG.BEGIN
    return new RemoteWriter({ handle: this.#handles.last, path: relative, first, send, link: this.#link })
  }

  async mkdir(path: string): Promise<void> {
    const relative = this.#path(path)
    if (relative !== '')
      await this.#ask(FrameType.FILE_MKDIR, 0, new ByteWriter().text(relative).done(), relative)
  }

  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    const relative = this.#path(path)
    if (relative === '') throw new SandboxError('invalid_arguments', 'The workspace itself cannot be removed')
    await this.#ask(
      FrameType.FILE_REMOVE,
      options.recursive ? FLAG.RECURSIVE : 0,
      new ByteWriter().text(relative).done(),
      relative,
    )
  }

  async snapshot(): Promise<WorkspaceSnapshot> {
    this.#handles.last += 1
    const handle = new ByteWriter().u32(this.#handles.last).done()
    const seen = await this.#ask(FrameType.FILE_SNAPSHOT, 0, handle, '')
    const files = seen.u32()
    const repositories = Array.from({ length: Math.min(seen.u32(), MOST_REPOSITORIES) }, () => seen.text())
    const changes = async (): Promise<WorkspaceChanges> => {
      const reader = await this.#ask(FrameType.FILE_CHANGES, 0, handle, '')
      const all = reader.u32()
      const listed = Array.from({ length: Math.min(reader.u32(), all) }, () => readChange(reader))
      return { files: listed, more: all - listed.length }
    }
    return { files, repositories, changes }
  }

  watch(paths: readonly string[], signal: AbortSignal): AsyncGenerator<readonly string[], void> {
    return this.#watches.watch(
      paths.map((path) => this.#path(path)),
      signal,
    )
  }

  async rename(from: string, to: string, { isNew = false }: PlaceOptions = {}): Promise<void> {
    const [source, target] = [this.#path(from), this.#path(to)]
    if (source === '' || target === '')
      throw new SandboxError('invalid_arguments', 'The workspace itself cannot be renamed')
    const request = new ByteWriter().text(source).text(target).done()
    // The error names the existing target.
    await this.#ask(FrameType.FILE_RENAME, isNew ? FLAG.NEW : 0, request, isNew ? target : source)
  }

  #path(path: string): string {
    return workspacePath(this.#workspace, path)
  }

  /** A path of a file, hence neither the workspace nor one with a trailing slash. */
  #file(path: string): string {
    const relative = this.#path(path)
    if (relative === '' || path.endsWith('/')) throw fileError(21, relative)
    return relative
  }

  /** Undefined when the file changed between two pieces. */
  async #readOnce(relative: string, offset: number, wanted: number): Promise<Buffer | undefined> {
    const ask = (at: number, length: number): Promise<ByteReader> =>
      this.#ask(FrameType.FILE_READ, 0, new ByteWriter().text(relative).u64(at).u32(length).done(), relative)
    const first = await ask(offset, Math.min(READ_BYTES, wanted))
    const size = first.u64()
    const version = `${first.opaque64()} ${first.opaque64()} ${size}`
    const total = Math.min(wanted, Math.max(0, size - offset))
    if (total > MOST_BYTES) throw tooLarge(relative)
    const pieces = [first.rest()]
    let have = pieces[0]?.length ?? 0
    while (have < total) {
      const reader = await ask(offset + have, Math.min(READ_BYTES, total - have))
      const again = reader.u64()
      if (`${reader.opaque64()} ${reader.opaque64()} ${again}` !== version) return undefined
      const piece = reader.rest()
      if (piece.length === 0) return undefined
      pieces.push(piece)
      have += piece.length
    }
    return Buffer.concat(pieces)
  }

  async #ask(type: FrameType, flags: number, payload: Buffer, path: string): Promise<ByteReader> {
    return (await this.#reply(type, flags, payload, path)).reader
  }

  async #reply(
    type: FrameType,
    flags: number,
    payload: Buffer,
    path: string,
  ): Promise<{ reader: ByteReader; flags: number }> {
    const reply: Reply = await this.#link.request(type, flags | this.#flags, payload)
    if (reply.type !== FrameType.FILE_RESULT)
      throw new SandboxError('protocol', 'sbxd answered a file request with something else')
    const reader = new ByteReader(reply.payload)
    const errno = reader.u32()
    if (errno !== 0) throw fileError(errno, path, this.#flags === FLAG.NO_LINKS)
    return { reader, flags: reply.flags }
  }
}

interface WriterParts {
  handle: number
  path: string
  /** Flags of the first piece. */
  first: number
  send: (flags: number, payload: Buffer) => Promise<unknown>
  link: Link
}

class RemoteWriter implements FileWriter {
  readonly #parts: WriterParts
  /** Answers not awaited yet. */
  readonly #sent: Promise<unknown>[] = []
  #written = 0
  #begun = false
  #ended = false

  constructor(parts: WriterParts) {
    this.#parts = parts
  }

  get written(): number {
    return this.#written
  }

  async write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; at += WRITE_BYTES)
      await this.#put(data.subarray(at, at + WRITE_BYTES), 0)
  }

  async commit(data: Uint8Array = NOTHING): Promise<void> {
    const last = Math.max(0, Math.ceil(data.length / WRITE_BYTES) - 1) * WRITE_BYTES
    await this.write(data.subarray(0, last))
    await this.#put(data.subarray(last), FLAG.COMMIT)
    for (const answer of this.#sent.splice(0)) await answer
  }

  async abort(): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    if (this.#begun) await this.#parts.send(FLAG.ABORT, this.#piece(NOTHING))
  }

  async #put(data: Uint8Array, flags: number): Promise<void> {
    const { first, send, link } = this.#parts
    if (this.#ended) throw new SandboxError('invalid_arguments', 'This write has ended already')
    this.#ended = flags !== 0
    const answer = send(this.#begun ? flags : flags | first, this.#piece(data))
    this.#begun = true
    this.#written += data.length
    // The first refusal has the reason; later pieces only find no such write.
    this.#sent.push(answer)
    answer.catch(() => {})
    if (this.#ended) return
    try {
      if (this.#sent.length >= AHEAD) await this.#sent.shift()
      await link.drained()
    } catch (error) {
      // sbxd has aborted it.
      this.#ended = true
      throw error
    }
  }

  #piece(data: Uint8Array): Buffer {
    const { handle, path } = this.#parts
    const named = this.#begun ? '' : path
    return new ByteWriter().u32(handle).u64(this.#written).text(named).bytes(data).done()
  }
}

const NOTHING = new Uint8Array(0)

function readStat(reader: ByteReader): Omit<FileStat, 'path'> {
  const kind = KINDS[reader.u8()] ?? 'other'
  const mode = reader.u32()
  return { kind, mode, size: reader.u64(), modifiedAt: reader.u64() }
}

function readChange(reader: ByteReader): FileChange {
  const kind = CHANGE_KINDS[reader.u8()] ?? 'changed'
  const size = reader.u64()
  return { kind, size, path: reader.text() }
}

function whole(value: number, name: string): number {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new SandboxError('invalid_arguments', `${name} must be a whole number, 0 or more`)
  return value
}

function tooLarge(path: string): SandboxError {
  return new SandboxError(
    'too_large',
    `"${path}" is larger than ${MOST_BYTES / 1024 / 1024} MiB; read it in ranges`,
  )
}

const PATH_BYTES = 4_096

/**
 * Normalizes a path from a tool or person: relative to the workspace, `/`-separated, `''` for the
 * workspace itself. Throws `invalid_arguments` (NUL, half a surrogate, too long) or `path_outside`
 * before anything is opened. For clear messages only: the kernel confines.
 */
function workspacePath(workspace: string, path: string): string {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  if (path.includes('\0') || !path.isWellFormed())
    throw new SandboxError('invalid_arguments', 'The path contains characters that no path can have')
  if (Buffer.byteLength(path) > PATH_BYTES)
    throw new SandboxError('invalid_arguments', `The path is longer than ${PATH_BYTES} bytes`)
  const outside = (why: string): SandboxError =>
    new SandboxError('path_outside', `"${shown}" ${why}; use a path below ${workspace}`)
  let relative = path
  if (path.startsWith('/')) {
    if (path !== workspace && !path.startsWith(`${workspace}/`)) throw outside('is outside the workspace')
    relative = path.slice(workspace.length)
  }
  const segments = relative.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..')) throw outside('goes upwards with ".."')
  return segments.join('/')
}
