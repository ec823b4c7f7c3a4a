/**
 * The one file of a backup: an ordinary tar, whose last file describes the others.
 * What is read of it is checked first: it may have been cut, or be something else.
 */
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
/** Written bytes after which the disk must have them: many at once would hold other writers up. */
const SYNC_BYTES = 8 * 1024 ** 2
/** After each of these a rest as long as it took, so that half of the time is left to others. */
const LONGEST_REST_MS = 500

export interface Entry {
  name: string
  /** Of its first byte in the file. */
  at: number
  bytes: number
}

export interface ArchiveWriter {
  /** Appends an entry; its size is known when its source has ended. */
  add(name: string, source: AsyncIterable<Uint8Array>): Promise<{ bytes: number; sha256: string }>
  /** The end of the file, all of it on the disk, still under its temporary name. */
  seal(): Promise<void>
  /** Gives it its name. */
  publish(): Promise<void>
  /** Removes what was written. Idempotent, and does nothing after `publish`. */
  abandon(): Promise<void>
}

/** Writes `path` under the name `<path>.partial`, which must not exist. */
export async function writeArchive(path: string): Promise<ArchiveWriter> {
  const partial = `${path}.partial`
  const file = await open(partial, 'wx', 0o600)
  let end = 0
  let unsynced = 0
  let begun = performance.now()
  let closed = false

  async function write(bytes: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done)
      done += bytesWritten
    }
    unsynced += bytes.length
    if (unsynced < SYNC_BYTES) return
    unsynced = 0
    await file.datasync()
    await sleep(Math.min(performance.now() - begun, LONGEST_REST_MS))
    begun = performance.now()
  }

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
      await file.sync()
      await close()
    },
    async publish() {
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

/** The sum of all bytes, those of the checksum itself counted as blanks. */
function checksumOf(header: Buffer): number {
  let sum = 0
  for (const [place, byte] of header.entries()) sum += place >= 148 && place < 156 ? 0x20 : byte
  return sum
}

/**
 * The entries of an archive, by name. Throws `BackupError`: `cut` where the end is missing,
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
        // The place of an entry that was never finished looks like the end.
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
    throw new BackupError('no_backup', `${path} cannot be read.`, 'Give the path of a backup.', {
      cause: error,
    })
  }
}

function sizeIn(header: Buffer): number {
  if (header.readUInt8(124) === 0x80) return Number(header.readBigUInt64BE(128))
  return Number.parseInt(header.toString('latin1', 124, 135), 8)
}

function noBackup(path: string): BackupError {
  return new BackupError('no_backup', `${path} is no backup of Sandlot.`, 'Give the path of a backup.')
}

function cut(path: string): BackupError {
  return new BackupError(
    'cut',
    `${path} is not complete: its end is missing. Nothing was restored.`,
    'Copy it again from where it was made, or take another backup.',
  )
}

/** The bytes of an entry as they are in the file. */
export function readEntry(path: string, { at, bytes }: Entry): AsyncIterable<Buffer> {
  if (bytes === 0) return Readable.from([])
  return createReadStream(path, { start: at, end: at + bytes - 1, highWaterMark: 256 * 1024 })
}
