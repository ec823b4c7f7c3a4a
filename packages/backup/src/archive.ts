/** The file of a backup: an ordinary tar, whose last entry describes the others. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { BackupError } from './backup-error.ts'

const BLOCK = 512
/** The largest size in eleven octal digits; larger ones are binary, as GNU tar writes them. */
const MOST_OCTAL = 8 * 1024 ** 3 - 1
/** Bytes between syncs: larger ones would block other writers. */
const SYNC_BYTES = 8 * 1024 ** 2
/**
 * Longest pause after a sync. A pause is as long as the write, which leaves half of the time to
 * others.
 */
const LONGEST_PAUSE_MS = 500

export interface Entry {
  name: string
  /** Offset of its first byte. */
  at: number
  bytes: number
}

export interface ArchiveWriter {
  /** Appends an entry, whose size is unknown until its source ends. */
  add(name: string, source: AsyncIterable<Uint8Array>): Promise<{ bytes: number; sha256: string }>
  /** Writes the end of the archive and syncs it, under its temporary name. */
  seal(): Promise<void>
  /** Gives it this path, in the same folder. */
  publish(path: string): Promise<void>
  /** Removes the temporary file. Idempotent; no effect after `publish`. */
  abandon(): Promise<void>
}

/**
 * `partial`: its temporary path; no such file may exist. Once `signal` aborts, adding and
 * publishing reject with its reason.
 */
export async function writeArchive(partial: string, signal?: AbortSignal): Promise<ArchiveWriter> {
  const file = await open(partial, 'wx', 0o600)
  const write = pacedWriter(file)
  let end = 0
  let closed = false

  async function close(): Promise<void> {
    if (closed) return
    closed = true
    await file.close()
  }

  return {
    async add(name, source) {
      const header = end
      const hash = createHash('sha256')
      let bytes = 0
      for await (const chunk of source) {
        signal?.throwIfAborted()
        await write(chunk, header + BLOCK + bytes)
        hash.update(chunk)
        bytes += chunk.length
      }
      await write(headerOf(name, bytes), header)
      const padding = (BLOCK - (bytes % BLOCK)) % BLOCK
      await write(Buffer.alloc(padding), header + BLOCK + bytes)
      end = header + BLOCK + bytes + padding
      return { bytes, sha256: hash.digest('hex') }
    },
    async seal() {
      await write(Buffer.alloc(2 * BLOCK), end)
      // A failed attempt to add an entry may have been longer.
      await file.truncate(end + 2 * BLOCK)
      await file.sync()
      await close()
    },
    async publish(path) {
      signal?.throwIfAborted()
      await rename(partial, path)
      const folder = await open(dirname(path))
      try {
        await folder.sync()
      } finally {
        await folder.close()
      }
    },
    async abandon() {
      await close()
      await rm(partial, { force: true })
    },
  }
}

/** Writes at an offset, and pauses after every {@link SYNC_BYTES}. */
function pacedWriter(file: FileHandle): (bytes: Uint8Array, at: number) => Promise<void> {
  let unsynced = 0
  let begun = performance.now()
  return async (bytes, at) => {
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done)
      done += bytesWritten
    }
    unsynced += bytes.length
    if (unsynced < SYNC_BYTES) return
    unsynced = 0
    await file.datasync()
    await sleep(Math.min(performance.now() - begun, LONGEST_PAUSE_MS))
    begun = performance.now()
  }
}

function headerOf(name: string, bytes: number): Buffer {
  const header = Buffer.alloc(BLOCK)
  if (Buffer.byteLength(name) > 100) throw new Error(`${name} is too long for a name in a tar`)
  header.write(name, 0)
  header.write('0000600\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  if (bytes <= MOST_OCTAL) header.write(`${bytes.toString(8).padStart(11, '0')}\0`, 124)
  else {
    header.writeUInt8(0x80, 124)
    header.writeBigUInt64BE(BigInt(bytes), 128)
  }
  header.write(
    `${Math.floor(Date.now() / 1000)
      .toString(8)
      .padStart(11, '0')}\0`,
    136,
  )
  header.write('0', 156)
  header.write('ustar\0', 257)
  header.write('00', 263)
  header.write(`${checksumOf(header).toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

/** The sum of all bytes, with blanks in place of the checksum. */
function checksumOf(header: Buffer): number {
  let sum = 0
  for (const [place, byte] of header.entries()) sum += place >= 148 && place < 156 ? 0x20 : byte
  return sum
}

/**
 * The entries of an archive, by name. Throws `BackupError`: `cut` if the end is missing,
 * `no_backup` for anything else.
 */
export async function readEntries(path: string): Promise<Map<string, Entry>> {
  const file = await opened(path)
  try {
    const { size } = await file.stat()
    const entries = new Map<string, Entry>()
    for (let at = 0; ;) {
      if (at + 2 * BLOCK > size) throw at === 0 ? noBackup(path) : cut(path)
      const header = Buffer.alloc(BLOCK)
      await file.read(header, 0, BLOCK, at)
      if (header.every((byte) => byte === 0)) {
        // An unfinished entry looks like the end.
        if (at + 2 * BLOCK !== size) throw cut(path)
        return entries
      }
      const sum = Number.parseInt(header.toString('latin1', 148, 154), 8)
      if (sum !== checksumOf(header)) throw at === 0 ? noBackup(path) : cut(path)
      const name = header.toString('utf8', 0, header.indexOf(0))
      const bytes = sizeIn(header)
      entries.set(name, { name, at: at + BLOCK, bytes })
      at += BLOCK + Math.ceil(bytes / BLOCK) * BLOCK
    }
  } finally {
    await file.close()
  }
}

async function opened(path: string): Promise<FileHandle> {
  try {
    return await open(path)
  } catch (error) {
    throw new BackupError('no_backup', `Couldn’t read ${path}.`, 'Pass the path of a backup.', {
      cause: error,
    })
  }
}

function sizeIn(header: Buffer): number {
  if (header.readUInt8(124) === 0x80) return Number(header.readBigUInt64BE(128))
  return Number.parseInt(header.toString('latin1', 124, 135), 8)
}

function noBackup(path: string): BackupError {
  return new BackupError('no_backup', `${path} is not a Sandlot backup.`, 'Pass the path of a backup.')
}

function cut(path: string): BackupError {
  return new BackupError(
    'cut',
    `${path} is incomplete: its end is missing. Nothing was restored.`,
    'Copy it again from its source, or use another backup.',
  )
}

/** The raw bytes of an entry. */
export function readEntry(path: string, { at, bytes }: Entry): AsyncIterable<Buffer> {
  if (bytes === 0) return Readable.from([])
  return createReadStream(path, { start: at, end: at + bytes - 1, highWaterMark: 256 * 1024 })
}
