/** A sum by day as a chart, and as a table beside it. */
import { Suspense, lazy, useMemo, useState } from 'react'
import type { Days } from './days.tsx'
import { Choice } from '../people/setting-fields.tsx'
import { everyDay } from './days.tsx'
import { SumTable } from './sum-table.tsx'
import type { Measure } from './measures.ts'

const Chart = lazy(() => import('./chart.tsx'))

export function ByDay<Row extends { day: string }>(props: {
  days: Days
  rows: readonly Row[]
  measures: readonly [Measure<Row>, ...Measure<Row>[]]
}) {
  const { days, rows, measures } = props
  // Without prices there is no cost to see, but there may be tokens, or answers.
  const [chosen, setChosen] = useState(
    () => measures.find(({ of }) => rows.some((row) => (of(row) ?? 0) > 0))?.id ?? measures[0].id,
  )
  const measure = measures.find(({ id }) => id === chosen) ?? measures[0]
  const bars = useBars(days, rows, measure)
  return (
    <div className="flex flex-col gap-3">
      <div className="max-w-56">
        <Choice
          label="Shown by day"
          value={measure.id}
          choices={measures.map(({ id, name }) => [id, name] as const)}
          onChange={setChosen}
        />
      </div>
      <div className="min-h-[190px] rounded-lg border border-line p-2">
        <Suspense fallback={null}>
          <Chart
            label={`${measure.name} by day, from ${days.from} to ${days.to}. The table below has the same data.`}
            bars={bars}
            words={measure.words}
          />
        </Suspense>
      </div>
      {bars.values.includes(null) && (
        <p className="text-xs text-muted">
          <span className="font-semibold text-waiting">?</span> marks days without data.
        </p>
      )}
      <details className="text-sm">
        <summary className="cursor-pointer py-1 text-muted hover:text-ink pointer-coarse:py-3">
          Show as table
        </summary>
        <SumTable
          label={`By day, from ${days.from} to ${days.to}`}
          head="Day"
          rows={rows.toReversed()}
          nameOf={({ day }) => day}
          measures={measures}
        />
      </details>
    </div>
  )
}

/** Zero for a day without a row, null for a row without a value. */
function useBars<Row extends { day: string }>(days: Days, rows: readonly Row[], measure: Measure<Row>) {
  return useMemo(() => {
    const known = new Map(rows.map((row) => [row.day, row]))
    const all = everyDay(days)
    return {
      days: all.map((day) => Date.parse(day)),
      values: all.map((day) => {
        const row = known.get(day)
        return row === undefined ? 0 : measure.of(row)
      }),
    }
  }, [days, rows, measure])
}
