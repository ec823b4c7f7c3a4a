/** A text as rows that a window can show: a line, or a part of one that is very long. */

export interface TextRow {
  text: string
  /** From 1; undefined: a continuation of the row before it. */
  no?: number
}

/** UTF-16 units of a row. A file of one line would be one row that no browser lays out in time. */
const ROW_CHARS = 2000

export function textRows(text: string): TextRow[] {
  const rows: TextRow[] = []
  const lines = text.split(/\r\n|[\n\r]/)
  if (lines.length > 1 && lines.at(-1) === '') lines.pop()
  for (const [index, line] of lines.entries()) {
    rows.push({ text: line.slice(0, ROW_CHARS), no: index + 1 })
    for (let at = ROW_CHARS; at < line.length; at += ROW_CHARS)
      rows.push({ text: line.slice(at, at + ROW_CHARS) })
  }
  return rows
}
