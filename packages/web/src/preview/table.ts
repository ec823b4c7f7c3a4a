/** CSV and TSV as a table: read, sorted and filtered. Runs in a worker. */
import Papa from 'papaparse'

export interface Table {
  columns: string[]
  /** True if most cells of a column are numbers. */
  numeric: boolean[]
  rows: string[][]
  /** The file has more rows or columns than are read. */
  cut: boolean
  /** Sentences about what is shown otherwise than it is in the file. */
  notes: string[]
}

export interface Arrangement {
  sort: { column: number; down: boolean } | null
  /** Rows with this in any cell; empty: all. */
  filter: string
}

export const MOST_ROWS = 200_000
export const MOST_COLUMNS = 500
/** UTF-16 units of a cell. */
const MOST_CHARS = 2000
/** Rows that determine the type of a column. */
const SAMPLE = 500
/** UTF-16 units of a cell that the end of a part of a file cuts. */
const OPEN_CHARS = 64 * 1024
/** In no text. */
const NO_QUOTE = '\0'

/** Null: no columns were found. `whole` false: the text ends in the middle. */
export function parseTable(text: string, options: { tabs: boolean; whole: boolean }): Table | null {
  const rows: string[][] = []
  let cut = false
  const delimiter = options.tabs ? '\t' : delimiterOf(text)
  if (delimiter === undefined) return null
  const { data, notes } = readRows(text, delimiter, options.whole)
  let isCellCut = false
  for (const row of data) {
    if (row.length > MOST_COLUMNS) cut = true
    isCellCut ||= row.some((cell) => cell.length > MOST_CHARS)
    rows.push(row.slice(0, MOST_COLUMNS).map((cell) => cell.slice(0, MOST_CHARS)))
  }
  if (isCellCut)
    notes.push(`Of long cells the first ${MOST_CHARS.toLocaleString('en')} characters are shown.`)
  if (!options.whole) rows.pop()
  if (rows.length > MOST_ROWS + 1) {
    cut = true
    rows.length = MOST_ROWS + 1
  }
  const names = rows.shift() ?? []
  const width = rows.reduce((most, row) => Math.max(most, row.length), names.length)
  const columns = Array.from({ length: width }, (_, at) => names[at]?.trim() || `Column ${at + 1}`)
  return {
    columns,
    numeric: columns.map((_, at) => isNumeric(rows, at)),
    rows,
    cut: cut || !options.whole,
    notes,
  }
}

/**
 * With quotation marks as text where one is wrong: the rest of the file would be in its cell. One
 * that is open near the end of a part of a file may be closed in the rest.
 */
function readRows(text: string, delimiter: string, whole: boolean): { data: string[][]; notes: string[] } {
  const options = { delimiter, skipEmptyLines: 'greedy', preview: MOST_ROWS + 2 } as const
  const { data, errors } = Papa.parse<string[]>(text, options)
  const wrong = errors.find(
    ({ type, code, index = 0 }) =>
      type === 'Quotes' && (whole || code !== 'MissingQuotes' || text.length - index > OPEN_CHARS),
  )
  if (wrong === undefined) return { data, notes: [] }
  const row = (wrong.row ?? 0).toLocaleString('en')
  const fault = wrong.code === 'MissingQuotes' ? 'is not closed' : 'is in the wrong place'
  const notes = [`A quotation mark in row ${row} ${fault}, so all of them are shown as text.`]
  return { data: Papa.parse<string[]>(text, { ...options, quoteChar: NO_QUOTE }).data, notes }
}

/** By the first lines: the one that cuts most of them into equally many. */
function delimiterOf(text: string): string | undefined {
  const head = text.slice(0, 64 * 1024)
  const counts = [',', ';', '\t', '|'].map((delimiter) => {
    const { data } = Papa.parse<string[]>(head, { delimiter, preview: 20, skipEmptyLines: 'greedy' })
    const width = data[0]?.length ?? 0
    const alike = data.filter((row) => row.length === width).length / Math.max(1, data.length)
    return { delimiter, width, alike }
  })
  const best = counts
    .filter(({ width, alike }) => width > 1 && alike > 0.5)
    .toSorted((a, b) => b.alike - a.alike || b.width - a.width)[0]
  if (best !== undefined) return best.delimiter
  // A list of one column has short lines; a text has not.
  const lines = head.split('\n', 20)
  return lines.every((line) => line.length < 200 && line.trim().split(/\s+/).length <= 4) ? ',' : undefined
}

function isNumeric(rows: readonly string[][], column: number): boolean {
  const cells = rows.slice(0, SAMPLE).flatMap((row) => (row[column] ?? '').trim() || [])
  const numbers = cells.filter((cell) => !Number.isNaN(numberOf(cell))).length
  return numbers > 0 && numbers >= cells.length * 0.9
}

/** `1,234.5`, `12 %`, `€ 3`; NaN for what is none. */
function numberOf(cell: string): number {
  const bare = cell.replaceAll(/^[\s$€£¥]+|[\s%€$£]+$|(?<=\d)[,\u00A0' ](?=\d{3})/g, '')
  return bare === '' ? Number.NaN : Number(bare)
}

/** Places of the rows to show, in their order. */
export function arrange({ rows, numeric }: Table, { sort, filter }: Arrangement): Uint32Array {
  const wanted = filter.trim().toLowerCase()
  const all = Array.from(rows.keys())
  const found =
    wanted === '' ? all : all.filter((at) => rows[at]?.some((cell) => cell.toLowerCase().includes(wanted)))
  if (sort === null) return Uint32Array.from(found)
  const { column, down } = sort
  const turn = down ? -1 : 1
  const cell = (at: number) => rows[at]?.[column] ?? ''
  if (numeric[column] === true) {
    const keys = new Map(found.map((at) => [at, numberOf(cell(at))]))
    // Cells that are no numbers come last, either way.
    const rank = (at: number) => keys.get(at) ?? Number.NaN
    return Uint32Array.from(
      found.toSorted((a, b) => {
        const [x, y] = [rank(a), rank(b)]
        if (Number.isNaN(x) || Number.isNaN(y))
          return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b
        return (x - y) * turn || a - b
      }),
    )
  }
  const { compare } = new Intl.Collator('en', { numeric: true, sensitivity: 'base' })
  return Uint32Array.from(
    found.toSorted((a, b) => {
      const [x, y] = [cell(a), cell(b)]
      if (x === '' || y === '') return Number(x === '') - Number(y === '') || a - b
      return compare(x, y) * turn || a - b
    }),
  )
}
