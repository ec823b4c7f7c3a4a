/** CSV and TSV as a table: read, sorted and filtered. Runs in a worker. */
import Papa from 'papaparse'

export interface Table {
  columns: string[]
  /** True if most cells of a column are numbers. */
  numeric: boolean[]
  rows: string[][]
  /** The file has more rows or columns than are read. */
  cut: boolean
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

/** Null: no columns were found. `whole` false: the text ends in the middle. */
export function parseTable(text: string, options: { tabs: boolean; whole: boolean }): Table | null {
  const rows: string[][] = []
  let cut = false
  const delimiter = options.tabs ? '\t' : delimiterOf(text)
  if (delimiter === undefined) return null
  const parser = Papa.parse<string[]>(text.replace(/^\uFEFF/, ''), {
    delimiter,
    skipEmptyLines: 'greedy',
    preview: MOST_ROWS + 2,
  })
  for (const row of parser.data) {
    if (row.length > MOST_COLUMNS) cut = true
    rows.push(row.slice(0, MOST_COLUMNS).map((cell) => cell.slice(0, MOST_CHARS)))
  }
  if (!options.whole) rows.pop()
  if (rows.length > MOST_ROWS + 1) {
    cut = true
    rows.length = MOST_ROWS + 1
  }
  const names = rows.shift() ?? []
  const width = rows.reduce((most, row) => Math.max(most, row.length), names.length)
  const columns = Array.from({ length: width }, (_, at) => names[at]?.trim() || `Column ${at + 1}`)
  return { columns, numeric: columns.map((_, at) => isNumeric(rows, at)), rows, cut: cut || !options.whole }
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
