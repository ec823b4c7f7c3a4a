/**
 * Live output of one running call: pieces of text with raw byte offsets. A fast command skips
 * ahead, so there may be gaps; they are fetched by range from the stored output. Offsets are bytes
 * and `data` is text, so a piece is never cut: a partially overlapping one replaces every piece
 * that it touches.
 */
import type { OutputPiece } from '../chat/call.ts'

export interface LiveOutput {
  /** Ascending, not overlapping, each with at least one byte. */
  readonly pieces: readonly OutputPiece[]
  /** One past the last byte seen. */
  readonly end: number
}

export const EMPTY_OUTPUT: LiveOutput = { pieces: [], end: 0 }

/** Retained characters. Older pieces are dropped whole; the store has everything. */
const MAX_CHARS = 256 * 1024

/** Adds a piece. One that ends at or before the end returns the same object. */
export function addPiece(output: LiveOutput, piece: OutputPiece): LiveOutput {
  if (piece.end <= output.end || piece.end <= piece.offset) return output
  const remaining = output.pieces.filter((old) => old.end <= piece.offset)
  return { pieces: dropOldest([...remaining, piece]), end: piece.end }
}

function dropOldest(pieces: OutputPiece[]): OutputPiece[] {
  let chars = pieces.reduce((sum, piece) => sum + piece.data.length, 0)
  let first = 0
  while (chars > MAX_CHARS && first < pieces.length - 1) {
    chars -= pieces[first]?.data.length ?? 0
    first++
  }
  return first === 0 ? pieces : pieces.slice(first)
}

interface ByteRange {
  from: number
  /** Exclusive. */
  to: number
}

/** The byte ranges between 0 and `end` that no piece holds, in order. */
export function gapsOf(output: LiveOutput): ByteRange[] {
  const gaps: ByteRange[] = []
  let at = 0
  for (const piece of output.pieces) {
    if (piece.offset > at) gaps.push({ from: at, to: piece.offset })
    at = piece.end
  }
  return gaps
}
