/**
 * The live view of a running command's output: at most 20 pieces a second of at most 64 KiB, each
 * on character borders. A faster command skips ahead, to its last 16 KiB; the store has what was
 * skipped.
 */
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import type { OutputPiece } from '@sandlot/shared/chat/call'
import { characterStart } from './utf8.ts'

const MAX_PIECE_BYTES = 64 * 1024
const AFTER_GAP_BYTES = 16 * 1024
const NOTHING = Buffer.alloc(0)
/** 18 pieces a second, so that the last one, which does not wait, is within the 20. */
const GAP_MS = 55

export interface LiveOutput {
  /** `offset`: of `bytes[0]` in the output. Pieces follow one another; a jump ahead is a gap. */
  push(offset: number, bytes: Uint8Array): void
  /** No more comes; `pieces` ends after the rest. */
  end(): void
  /** May be iterated once. */
  pieces(): AsyncGenerator<OutputPiece, void>
}

export function createLiveOutput(): LiveOutput {
  /** Raw bytes that were not shown yet, at most one piece's worth. */
  let pending = Buffer.alloc(0)
  let start = 0
  let ended = false
  let changed = Promise.withResolvers<void>()
  const finished = Promise.withResolvers<void>()

  /** The whole characters of what is pending; at the end, everything. */
  const take = (): OutputPiece | undefined => {
    const size = ended ? pending.length : wholeCharacters(pending)
    if (size === 0) return undefined
    const piece = {
      offset: start,
      end: start + size,
      data: new TextDecoder('utf-8', { ignoreBOM: true }).decode(pending.subarray(0, size)),
    }
    pending = pending.subarray(size)
    start += size
    return piece
  }

  return {
    push(offset, bytes) {
      const end = offset + bytes.length
      const follows = offset === start + pending.length
      // A copy of what can be shown, not of all that came.
      const joined = Buffer.concat([follows ? pending : NOTHING, bytes.subarray(-MAX_PIECE_BYTES)])
      const isLong = joined.length > MAX_PIECE_BYTES || bytes.length > MAX_PIECE_BYTES
      const skipped = isLong ? characterStart(joined, joined.length - AFTER_GAP_BYTES) : 0
      pending = joined.subarray(skipped)
      start = end - pending.length
      changed.resolve()
    },
    end() {
      ended = true
      changed.resolve()
      finished.resolve()
    },
    async *pieces() {
      let shownAt = Number.NEGATIVE_INFINITY
      for (;;) {
        await changed.promise
        if (!ended) changed = Promise.withResolvers()
        const gap = shownAt + GAP_MS - performance.now()
        if (gap > 0) await orTimeout(finished.promise, gap, undefined)
        const piece = take()
        if (piece !== undefined) {
          shownAt = performance.now()
          yield piece
        } else if (ended) {
          return
        }
      }
    },
  }
}

/**
 * The number of bytes at the beginning of `bytes` that are whole UTF-8 characters (broken ones
 * count as whole).
 */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) break
    if (byte >= 0xc0) return sequenceLength(byte) > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return 4
  return lead >= 0xe0 ? 3 : 2
}
