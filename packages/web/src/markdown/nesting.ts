/**
 * Nesting of Markdown. The time to parse lists and quotes grows with the cube of their depth, and a
 * browser's stack ends somewhere: a text that is nested deeper than people write is shown as it is.
 */

/** Levels of quotes and lists in the source. */
const MOST_CONTAINERS = 32
/** Levels of elements that are drawn, those of inline text included. */
const MOST_ELEMENTS = 100

/** One quote mark, bullet or number at the beginning of the rest of a line. */
const MARKER = /[ \t]*(?:(>)|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$))/my

/** Linear in the length of the text. */
export function isNestedTooDeep(text: string): boolean {
  /** Columns of the list items that a line may lie in. */
  const open: number[] = []
  for (let from = 0; from < text.length;) {
    const { quotes, items } = markersAt(text, from)
    const [first] = items
    if (first !== undefined) while ((open.at(-1) ?? -1) >= first) open.pop()
    open.push(...items)
    if (quotes + (quotes + items.length === 0 ? 0 : open.length) > MOST_CONTAINERS) return true
    const newline = text.indexOf('\n', from)
    if (newline === -1) return false
    from = newline + 1
  }
  return false
}

/** Quote marks and columns of the list items with which a line begins, as far as they matter. */
function markersAt(text: string, from: number): { quotes: number; items: number[] } {
  let quotes = 0
  const items: number[] = []
  MARKER.lastIndex = from
  for (let marker = MARKER.exec(text); marker !== null; marker = MARKER.exec(text)) {
    if (marker[1] === undefined) items.push(MARKER.lastIndex - from)
    else quotes++
    if (quotes + items.length > MOST_CONTAINERS) break
  }
  return { quotes, items }
}

interface Node {
  type: string
  children?: Node[]
}

/** A plugin of rehype: throws where the tree is deeper than a page draws. */
export function limitDepth(): (tree: Node) => void {
  return (tree) => {
    let level = tree.children ?? []
    for (let depth = 1; level.length > 0; depth++) {
      if (depth > MOST_ELEMENTS) throw new Error(`markdown: nested deeper than ${MOST_ELEMENTS} elements`)
      level = level.flatMap(({ children = [] }) => children)
    }
  }
}
