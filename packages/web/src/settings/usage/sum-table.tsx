import type { ReactNode } from 'react'
import type { Measure } from './measures.ts'

/** Sums in rows. Scrolls by itself where it is wider than the page. */
export function SumTable<Row>(props: {
  label: string
  /** The heading of the rows' names. */
  head: string
  rows: readonly Row[]
  nameOf: (row: Row) => ReactNode
  measures: readonly Measure<Row>[]
}) {
  if (props.rows.length === 0) return <p className="text-sm text-muted">No usage in this period.</p>
  return (
    // Focusable, or it could not be scrolled by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div
      tabIndex={0}
      role="region"
      aria-label={`${props.label}, as a table`}
      className="overflow-x-auto rounded-lg border border-line"
    >
      <table className="w-full text-sm">
        <thead>
          <tr className="border-b border-line text-xs text-muted">
            <th scope="col" className="px-3 py-2 text-left font-medium">
              {props.head}
            </th>
            {props.measures.map(({ id, name }) => (
              <th key={id} scope="col" className="px-3 py-2 text-right font-medium whitespace-nowrap">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {props.rows.map((row, place) => (
            // Rows of one answer, which stay in their order.
            // oxlint-disable-next-line react/no-array-index-key
            <tr key={place}>
              <th scope="row" className="min-w-32 px-3 py-2 text-left font-normal [overflow-wrap:anywhere]">
                {props.nameOf(row)}
              </th>
              {props.measures.map(({ id, cell }) => (
                <td key={id} className="px-3 py-2 text-right whitespace-nowrap tabular-nums">
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
