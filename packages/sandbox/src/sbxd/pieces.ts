/** As much memory as small pieces share. */
const SHARED_BYTES = 4_096

/** Bytes that wait to be read, in order. */
interface Pieces {
  readonly count: number
  /** Copies them. */
  push(bytes: Buffer): void
  shift(): Buffer | undefined
}

/**
 * Small pieces are put together: a byte with a buffer of its own would cost a hundred times what
 * was granted for it.
 */
export function createPieces(): Pieces {
  const pieces: Buffer[] = []
  /** The memory behind the last piece. */
  let room: Buffer = Buffer.alloc(0)
  return {
    get count() {
      return pieces.length
    },
    push(bytes) {
      const last = pieces.at(-1)
      if (last && bytes.length <= room.length) {
        bytes.copy(room)
        room = room.subarray(bytes.length)
        pieces[pieces.length - 1] = Buffer.from(last.buffer, last.byteOffset, last.length + bytes.length)
        return
      }
      // The only one is about to be read, as a rule; room is made when a second one comes.
      const memory = Buffer.allocUnsafeSlow(Math.max(bytes.length, last ? SHARED_BYTES : 0))
      bytes.copy(memory)
      pieces.push(memory.subarray(0, bytes.length))
      room = memory.subarray(bytes.length)
    },
    shift: () => pieces.shift(),
  }
}
