/** CSV by RFC 4180, also safe for spreadsheets. */

/** Characters at which a spreadsheet begins a formula. */
const FORMULA = /^[=+\-@\t\r]/

/**
 * Lines of cells. Text that begins like a formula gets a leading apostrophe, because users choose
 * their own names. Null: an empty cell.
 */
export function csvOf(rows: readonly (readonly (string | number | null)[])[]): string {
  return rows.map((row) => `${row.map(cellOf).join(',')}\r\n`).join('')
}

function cellOf(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const safe = FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
