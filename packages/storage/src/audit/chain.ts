/**
 * The hash chain of one audit table: each line's hash covers the previous hash and the line. Lines
 * that were changed, removed or inserted by hand are found and named; a complete rewrite is found
 * by comparing the last hash with one that was noted elsewhere.
 */
import { createHash } from 'node:crypto'

/** The predecessor of the first line. */
export const FIRST_HASH = '0'.repeat(64)

/** A stored row. */
export interface AuditRow {
  seq: number
  at: number
  what: string
  who_id: string
  who_name: string
  who_email: string | null
  address: string | null
  key_name: string | null
  sign_in: string | null
  whom_id: string | null
  whom_name: string | null
  /** JSON. */
  before_json: string | null
  after_json: string | null
  count: number
  hash: string
}

/** A position in the chain. */
export interface ChainPoint {
  seq: number
  hash: string
}

export function hashOf(before: string, row: Omit<AuditRow, 'hash'>): string {
  const fields = [
    row.seq,
    row.at,
    row.what,
    row.who_id,
    row.who_name,
    row.who_email,
    row.address,
    row.key_name,
    row.sign_in,
    row.whom_id,
    row.whom_name,
    row.before_json,
    row.after_json,
    row.count,
  ]
  return createHash('sha256')
    .update(`${before}\n${JSON.stringify(fields)}`)
    .digest('hex')
}

/** Named problems; the rest are counted. */
const MOST_NAMED = 20

export interface ChainState {
  /** Existing lines. */
  lines: number
  /** The last line that retention removed, or the beginning. */
  anchor: ChainPoint
  /** The last written line. */
  head: ChainPoint
  /** Sentences, the first ones; empty: no manual changes. */
  problems: string[]
  problemCount: number
}

/** `rows`: all, in the order of their numbers. */
export async function checkChain(
  anchor: ChainPoint,
  head: ChainPoint,
  rows: AsyncIterable<AuditRow> | Iterable<AuditRow>,
): Promise<ChainState> {
  const problems: string[] = []
  let problemCount = 0
  const found = (problem: string, times = 1): void => {
    problemCount += times
    if (problems.length < MOST_NAMED) problems.push(problem)
  }
  const missing = (from: number, to: number): void => {
    const which = from === to ? `Line ${from} was` : `Lines ${from} to ${to} were`
    found(`${which} removed by hand.`, to - from + 1)
  }
  let before = anchor
  /** The previous line's hash: as stored, and as computed. */
  let hashes = [anchor.hash]
  let lines = 0
  for await (const row of rows) {
    lines += 1
    if (row.seq <= anchor.seq || row.seq > head.seq) {
      found(`Line ${row.seq} was put in by hand.`)
      continue
    }
    const isNext = row.seq === before.seq + 1
    // After a gap the previous hash is unknown, so the line is trusted.
    const expected = isNext ? hashes.map((hash) => hashOf(hash, row)) : [row.hash]
    if (!isNext) missing(before.seq + 1, row.seq - 1)
    if (!expected.includes(row.hash))
      found(`Line ${row.seq} of ${timeOf(row.at)} was changed or put in by hand.`)
    before = { seq: row.seq, hash: row.hash }
    hashes = [row.hash, ...expected]
  }
  if (before.seq < head.seq) missing(before.seq + 1, head.seq)
  else if (before.seq > 0 && before.hash !== head.hash && problemCount === 0)
    found(`The hash of line ${before.seq} is not the one that was written last.`)
  return { lines, anchor, head, problems, problemCount }
}

function timeOf(at: number): string {
  return Number.isFinite(at) && Math.abs(at) < 8.64e15 ? new Date(at).toISOString() : String(at)
}
