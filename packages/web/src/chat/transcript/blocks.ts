/** The rows of a conversation in blocks: a block is drawn, or only keeps its place, as a whole. */
import type { Entry } from '@sandlot/shared/transcript/entries'
import { promptOf } from '@sandlot/shared/transcript/transcript'
import type { CallRun } from '../calls/call-runs.ts'

export type Row = Entry | CallRun

export interface Block {
  /** That of its first row. */
  readonly id: string
  readonly rows: readonly Row[]
  /** The row before its first. */
  readonly before: Row | undefined
  /** The type of the row behind its last. */
  readonly behind: Row['type'] | undefined
  /** The prompt of the rows before it. */
  readonly promptBefore: string | undefined
}

/** Rows of a block. More are drawn needlessly, fewer are more to keep in mind. */
const ROWS = 10

/** A run takes the place of its first call. */
function rowKey(row: Row): string {
  return `${row.type === 'run' ? 'call' : row.type} ${row.id}`
}

/** The prompt that a row belongs to; undefined: none. */
export function promptOfRow(row: Row): string | undefined {
  const entry = row.type === 'run' ? row.calls[0] : row
  // A note may stand before the words with which its prompt begins.
  return entry === undefined || entry.type === 'note' ? undefined : promptOf(entry)
}

/**
 * Cuts rows into blocks. Where a block began, it begins again, whatever becomes of the rows before
 * it, and a block in which nothing changed is the same object.
 */
export class Blocks {
  #known: ReadonlyMap<string, Block> = new Map()
  #last: readonly Block[] = []

  cut(rows: readonly Row[]): readonly Block[] {
    const blocks = this.#unchanged(rows)
    let from = blocks.reduce((sum, block) => sum + block.rows.length, 0)
    let promptBefore = promptBehind(blocks.at(-1))
    for (let to = from + 1; to <= rows.length; to++) {
      const next = rows[to]
      const ends = next === undefined || to - from >= ROWS || this.#known.has(rowKey(next))
      const first = rows[from]
      if (!ends || first === undefined) continue
      const block: Block = {
        id: rowKey(first),
        rows: rows.slice(from, to),
        before: rows[from - 1],
        behind: next?.type,
        promptBefore,
      }
      const known = this.#known.get(block.id)
      blocks.push(known !== undefined && isSame(known, block) ? known : block)
      promptBefore = promptBehind(block)
      from = to
    }
    this.#known = new Map(blocks.map((block) => [block.id, block]))
    this.#last = blocks
    return blocks
  }

  /** Blocks at the beginning in which nothing has changed, and behind which there is another. */
  #unchanged(rows: readonly Row[]): Block[] {
    let from = 0
    const changed = this.#last.findIndex((block, at) => {
      const next = this.#last[at + 1]
      if (next === undefined || !block.rows.every((row, place) => isSameRow(row, rows[from + place])))
        return true
      from += block.rows.length
      const first = rows[from]
      return first === undefined || rowKey(first) !== next.id
    })
    return this.#last.slice(0, Math.max(changed, 0))
  }
}

function promptBehind(block: Block | undefined): string | undefined {
  return block?.rows.map(promptOfRow).findLast((id) => id !== undefined) ?? block?.promptBefore
}

function isSame(one: Block, other: Block): boolean {
  return (
    one.before === other.before &&
    one.behind === other.behind &&
    one.promptBefore === other.promptBefore &&
    one.rows.length === other.rows.length &&
    one.rows.every((row, at) => isSameRow(row, other.rows[at]))
  )
}

/** Each reading makes new runs. */
function isSameRow(one: Row, other: Row | undefined): boolean {
  if (one === other) return true
  if (one.type !== 'run' || other?.type !== 'run' || one.calls.length !== other.calls.length) return false
  return one.calls.every((call, at) => call === other.calls[at])
}
