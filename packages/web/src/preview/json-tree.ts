/** A JSON value as the rows of a tree, of which only what is open exists. */

/** A number that JavaScript would round; its digits are kept. */
export class ExactNumber {
  readonly digits: string

  constructor(digits: string) {
    this.digits = digits
  }
}

export interface JsonRow {
  /** Unique in the tree: the keys that lead there. */
  id: string
  depth: number
  /** The name or index in its parent; null at the root. */
  key: string | null
  value: unknown
  /** The number of members of an object or array; undefined: neither. */
  members?: number
  open: boolean
  /** Members of a large one that are not listed. */
  left?: number
}

/** Members of one object or array that are listed. */
const MOST_MEMBERS = 10_000
/** Small values near the root are open from the start. */
const OPEN_DEPTH = 2
const OPEN_MEMBERS = 50

/** One value, or one a line (`.jsonl`) as a list. Throws `SyntaxError`. */
export function parseJson(text: string, lines: boolean): unknown {
  // Without one, nothing is rounded, and a reviver would be called for every value.
  const parse = /\d{16}/.test(text) ? (one: string): unknown => JSON.parse(one, exactly) : JSON.parse
  if (!lines) return parse(text)
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => parse(line) as unknown)
}

function exactly(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source
  return typeof value === 'number' &&
    source !== undefined &&
    !Number.isSafeInteger(value) &&
    /^-?\d{16,}$/.test(source)
    ? new ExactNumber(source)
    : value
}

/** `toggled`: ids of rows that are the other way than they are from the start. */
export function jsonRows(root: unknown, toggled: ReadonlySet<string>): JsonRow[] {
  const rows: JsonRow[] = []
  // No recursion: a file may nest deeper than a stack.
  const todo: { id: string; depth: number; key: string | null; value: unknown }[] = [
    { id: '', depth: 0, key: null, value: root },
  ]
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const members = membersOf(next.value)
    if (members === undefined) {
      rows.push({ ...next, open: false })
      continue
    }
    const itself = next.depth < OPEN_DEPTH && members.length <= OPEN_MEMBERS
    const open = (itself || next.depth === 0) !== toggled.has(next.id)
    const left = Math.max(0, members.length - MOST_MEMBERS)
    rows.push({ ...next, members: members.length, open, left: open && left > 0 ? left : undefined })
    if (!open) continue
    const { id, depth } = next
    for (const [key, value] of members.slice(0, MOST_MEMBERS).toReversed())
      todo.push({ id: `${id}/${key.replaceAll('/', '~')}`, depth: depth + 1, key, value })
  }
  return rows
}

function membersOf(value: unknown): [key: string, value: unknown][] | undefined {
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return undefined
  return Array.isArray(value)
    ? value.map((one: unknown, place) => [String(place), one])
    : Object.entries(value)
}
