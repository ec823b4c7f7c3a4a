/** Files that people upload, in pieces that come with one request each. */
import type { FileWriter } from '@sandlot/sandbox/files'
import { createKeyedLock } from '@sandlot/shared/async/keyed-lock'
import { SandlotError } from '@sandlot/shared/base/errors'

/** Under way at once for one person; a sandbox has places for 32. */
const MOST_UPLOADS = 8
const IDLE_MS = 120_000

interface Upload {
  readonly userId: string
  readonly path: string
  readonly writer: FileWriter
  /** Gives the upload up when no piece comes. */
  timer: NodeJS.Timeout | undefined
}

interface UploadPiece {
  userId: string
  upload: string
  path: string
  offset: number
  data: Uint8Array
}

export class Uploads {
  readonly #open = new Map<string, Upload>()
  readonly #lock = createKeyedLock()
  readonly #idleMs: number

  constructor(idleMs = IDLE_MS) {
    this.#idleMs = idleMs
  }

  /** Pieces of one upload, one after the other. */
  inOrder<T>(userId: string, upload: string, work: () => Promise<T>): Promise<T> {
    return this.#lock.run(keyOf(userId, upload), work)
  }

  /**
   * Takes the bytes that were not there yet. Returns how many are. `begin` is called for the first
   * piece. Throws `conflict` for a piece behind a gap, also of an upload that was given up.
   */
  async take(piece: UploadPiece, begin: () => FileWriter): Promise<number> {
    const open = this.#find(piece) ?? this.#begin(piece, begin)
    clearTimeout(open.timer)
    try {
      await open.writer.write(missing(piece, open.writer))
    } catch (error) {
      await this.abort(piece.userId, piece.upload)
      throw error
    }
    this.#wait(piece, open)
    return open.writer.written
  }

  /**
   * The file is at its path when this resolves. `check` is called right before, and may reject.
   * Throws `conflict` for an upload that was given up.
   */
  async commit(userId: string, upload: string, check: () => Promise<void>): Promise<void> {
    const open = this.#open.get(keyOf(userId, upload))
    if (open === undefined) throw gone()
    clearTimeout(open.timer)
    this.#open.delete(keyOf(userId, upload))
    try {
      await check()
      await open.writer.commit()
    } catch (error) {
      await open.writer.abort()
      throw error
    }
  }

  /** Idempotent. */
  async abort(userId: string, upload: string): Promise<void> {
    const open = this.#open.get(keyOf(userId, upload))
    if (open === undefined) return
    clearTimeout(open.timer)
    this.#open.delete(keyOf(userId, upload))
    await open.writer.abort()
  }

  #find({ userId, upload, path }: UploadPiece): Upload | undefined {
    const open = this.#open.get(keyOf(userId, upload))
    if (open !== undefined && open.path !== path)
      throw new SandlotError('bad_request', 'This upload is of another file.')
    return open
  }

  #begin(piece: UploadPiece, begin: () => FileWriter): Upload {
    const { userId, upload, path, offset } = piece
    if (offset !== 0) throw gone()
    const own = [...this.#open.values()].filter((open) => open.userId === userId)
    if (own.length >= MOST_UPLOADS)
      throw new SandlotError('rate_limited', `${MOST_UPLOADS} uploads are under way. Wait for one to end.`)
    const open = { userId, path, writer: begin(), timer: undefined }
    this.#open.set(keyOf(userId, upload), open)
    return open
  }

  #wait({ userId, upload }: UploadPiece, open: Upload): void {
    const giveUp = (): Promise<void> => this.inOrder(userId, upload, () => this.abort(userId, upload))
    // If the cancellation cannot be sent, the rest ends with its connection.
    open.timer = setTimeout(() => void giveUp().catch(() => undefined), this.#idleMs)
    open.timer.unref()
  }
}

/** A piece that is sent again may begin before what is there. */
function missing({ offset, data }: UploadPiece, { written }: FileWriter): Uint8Array {
  if (offset > written) throw gone()
  return data.subarray(written - offset)
}

function gone(): SandlotError {
  return new SandlotError('conflict', 'A part of this upload is missing. Start the upload again.')
}

const keyOf = (userId: string, upload: string): string => `${upload} ${userId}`
