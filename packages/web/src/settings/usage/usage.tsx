/** My usage: by day and model, and what is left of each limit. */
import type { Budget, CountedUsage } from '@sandlot/shared/admin/usage'
import { useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { cn } from '../../lib/cn.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Part } from '../part.tsx'
import { Choice } from '../people/setting-fields.tsx'
import { ByDay } from './by-day.tsx'
import { DaysChoice, daysOf } from './days.tsx'
import { USAGE_MEASURES } from './measures.ts'
import { SumTable } from './sum-table.tsx'
import {
  againWords,
  budgetName,
  budgetUse,
  cachedWords,
  costWords,
  percentUsed,
  tokenWords,
  unpricedWords,
} from '../../lib/usage-text.ts'

const ALL_MODELS = ''

export function OwnUsage() {
  const [days, setDays] = useState(() => daysOf('30', Date.now()))
  const [model, setModel] = useState(ALL_MODELS)
  const query = { ...days, model: model === ALL_MODELS ? undefined : model }
  const { data: view, problem } = useResource(
    JSON.stringify(query),
    (signal) => call('getUsage', { query, signal }),
    { keep: true },
  )
  const models = view?.models.map((one) => one.model) ?? []
  return (
    <>
      <div className="flex flex-wrap items-end gap-3">
        <DaysChoice days={days} onChange={setDays} />
        {(models.length > 1 || model !== ALL_MODELS) && (
          <div className="min-w-0 flex-1 basis-44">
            <Choice
              label="Model"
              value={model}
              choices={[
                [ALL_MODELS, 'All models'],
                ...[...new Set([...models, ...(model === ALL_MODELS ? [] : [model])])].map(
                  (name) => [name, name] as const,
                ),
              ]}
              onChange={setModel}
            />
          </div>
        )}
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      {view !== null && (
        <>
          <Totals total={view.total} />
          <Part title="Limits" text="Set by an administrator.">
            <Budgets budgets={view.budgets} />
          </Part>
          <Part title="By day" text="Days are UTC.">
            <ByDay days={days} rows={view.days} measures={USAGE_MEASURES} />
          </Part>
          <Part title="By model">
            <SumTable
              label="By model"
              head="Model"
              rows={view.models}
              nameOf={(row) => row.model}
              measures={USAGE_MEASURES}
            />
          </Part>
        </>
      )}
    </>
  )
}

/** The sum of the days that are shown. */
export function Totals(props: { total: CountedUsage }) {
  const { total } = props
  const all = [
    { name: 'Cost', value: costWords(total), more: unpricedWords(total) },
    { name: 'Tokens in', value: tokenWords(total.input), more: cachedWords(total) },
    { name: 'Tokens out', value: tokenWords(total.output), more: `${tokenWords(total.reasoning)} reasoning` },
    {
      name: 'Answers',
      value: total.answers.toLocaleString('en'),
      more: `${total.calls.toLocaleString('en')} calls`,
    },
  ]
  return (
    <dl aria-label="In all" className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      {all.map(({ name, value, more }) => (
        <div key={name} className="rounded-lg border border-line px-3 py-2.5">
          <dt className="text-xs text-muted">{name}</dt>
          <dd className="mt-0.5 text-lg font-semibold tabular-nums">{value}</dd>
          {more !== undefined && <dd className="text-xs text-muted tabular-nums">{more}</dd>}
        </div>
      ))}
    </dl>
  )
}

/** Null: not known now. */
function Budgets(props: { budgets: readonly Budget[] | null }) {
  const { budgets } = props
  if (budgets === null)
    return <p className="text-sm text-muted">The agent isn’t responding, so your limits are unknown.</p>
  if (budgets.length === 0) return <p className="text-sm text-muted">No daily or monthly limits.</p>
  return (
    <ul aria-label="Limits" className="divide-y divide-line rounded-lg border border-line">
      {budgets.map((budget) => {
        const name = budgetName(budget)
        const percent = percentUsed(budget)
        return (
          <li key={name} className="flex flex-col gap-1.5 px-3 py-2.5 text-sm">
            <div className="flex flex-wrap justify-between gap-x-3">
              <span className="font-medium">{name}</span>
              <span className="text-muted tabular-nums">{budgetUse(budget)}</span>
            </div>
            <div
              role="meter"
              aria-label={name}
              aria-valuemin={0}
              aria-valuemax={100}
              aria-valuenow={percent}
              aria-valuetext={`${percent} % used: ${budgetUse(budget)}`}
              className="h-1.5 overflow-hidden rounded-full bg-active"
            >
              <div
                className={cn(
                  'h-full rounded-full',
                  percent === 100 ? 'bg-failed' : budget.warns ? 'bg-waiting' : 'bg-accent',
                )}
                style={{ width: `${percent}%` }}
              />
            </div>
            <p className={cn('text-xs', budget.warns ? 'text-waiting' : 'text-muted')}>
              {percent === 100 ? 'Used up. It ' : `${percent} % used; it `}
              {againWords(budget)}.
            </p>
          </li>
        )
      })}
    </ul>
  )
}
