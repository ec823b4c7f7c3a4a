/**
 * A line diff: Myers' shortest edit script between the common head and tail, in hunks with three
 * lines of context.
 */

export interface DiffLine {
  readonly type: 'same' | 'add' | 'del'
  readonly text: string
  /** From 1; absent on the side without the line. */
  readonly oldNo?: number
  readonly newNo?: number
}

interface LineDiff {
  readonly hunks: readonly (readonly DiffLine[])[]
  readonly added: number
  readonly removed: number
}

const CONTEXT = 3
/**
 * Above this number of edits the middle is shown as replaced: correct, only longer, and never slow.
 */
const MAX_EDITS = 600

/** `oldText` null: the file is new. */
export function lineDiff(oldText: string | null | undefined, newText: string): LineDiff {
  const before = linesOf(oldText ?? '')
  const after = linesOf(newText)
  const lines = editScript(before, after)
  return {
    hunks: hunksOf(lines),
    added: lines.filter((line) => line.type === 'add').length,
    removed: lines.filter((line) => line.type === 'del').length,
  }
}

/** A last line without a newline is a line; the empty rest after a final newline is not. */
function linesOf(text: string): string[] {
  if (text === '') return []
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function editScript(before: string[], after: string[]): DiffLine[] {
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head++
  let tail = 0
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  ) {
    tail++
  }
  const middle = myers(before.slice(head, before.length - tail), after.slice(head, after.length - tail))
  const types = [...Array.from({ length: head }, same), ...middle, ...Array.from({ length: tail }, same)]
  return numbered(types, before, after)
}

const same = (): DiffLine['type'] => 'same'

function numbered(types: DiffLine['type'][], before: string[], after: string[]): DiffLine[] {
  let oldAt = 0
  let newAt = 0
  return types.map((type) => {
    if (type === 'del') return { type, text: before[oldAt] ?? '', oldNo: ++oldAt }
    if (type === 'add') return { type, text: after[newAt] ?? '', newNo: ++newAt }
    return { type, text: after[newAt] ?? '', oldNo: ++oldAt, newNo: ++newAt }
  })
}

function replaced(before: string[], after: string[]): DiffLine['type'][] {
  return [...before.map((): DiffLine['type'] => 'del'), ...after.map((): DiffLine['type'] => 'add')]
}

function myers(before: string[], after: string[]): DiffLine['type'][] {
  const n = before.length
  const m = after.length
  if (n === 0 || m === 0) return replaced(before, after)
  const limit = Math.min(n + m, MAX_EDITS)
  const size = 2 * limit + 1
  const furthest = new Int32Array(size + 1)
  const trace: Int32Array[] = []
  const get = (values: Int32Array, k: number) => values[k + limit] ?? 0
  for (let edits = 0; edits <= limit; edits++) {
    trace.push(furthest.slice())
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && get(furthest, k - 1) < get(furthest, k + 1))
      let x = down ? get(furthest, k + 1) : get(furthest, k - 1) + 1
      while (x < n && x - k < m && before[x] === after[x - k]) x++
      furthest[k + limit] = x
      if (x >= n && x - k >= m) return walkBack(trace, edits, n, m, get)
    }
  }
  return replaced(before, after)
}

function walkBack(
  trace: Int32Array[],
  edits: number,
  n: number,
  m: number,
  get: (values: Int32Array, k: number) => number,
): DiffLine['type'][] {
  const types: DiffLine['type'][] = []
  let x = n
  let y = m
  for (let d = edits; d >= 0; d--) {
    const furthest = trace[d]
    if (furthest === undefined) break
    const k = x - y
    const down = k === -d || (k !== d && get(furthest, k - 1) < get(furthest, k + 1))
    const previousX = d === 0 ? 0 : get(furthest, down ? k + 1 : k - 1)
    const previousY = d === 0 ? 0 : previousX - (down ? k + 1 : k - 1)
    while (x > previousX && y > previousY) {
      types.push('same')
      x--
      y--
    }
    if (d === 0) break
    types.push(down ? 'add' : 'del')
    x = previousX
    y = previousY
  }
  return types.toReversed()
}

function hunksOf(lines: DiffLine[]): DiffLine[][] {
  const hunks: DiffLine[][] = []
  let from = -1
  let until = -1
  lines.forEach((line, index) => {
    if (line.type === 'same') return
    if (from !== -1 && index - CONTEXT > until) {
      hunks.push(lines.slice(from, until))
      from = -1
    }
    if (from === -1) from = Math.max(0, index - CONTEXT)
    until = Math.min(lines.length, index + CONTEXT + 1)
  })
  if (from !== -1) hunks.push(lines.slice(from, until))
  return hunks
}
