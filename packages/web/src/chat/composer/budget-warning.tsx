/** That a limit of a day or a month is nearly used up. */
import type { Budget } from '@sandlot/shared/admin/usage'
import { TriangleAlert, X } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { againWords, budgetName, budgetUse, percentUsed } from '../../lib/usage-text.ts'
import { call } from '../../net/call.ts'
import { IconButton } from '../../ui/button.tsx'
import { useChat } from '../../state/chat-context.ts'

/** The page comes first. */
const LATER_MS = 1_500
/** For a person without limits, a prompt changes nothing about that. */
const RARELY_MS = 10 * 60_000

let known: { of: string; budgets: readonly Budget[]; at: number } | undefined

/** Limits of the person; fetched again when a prompt has ended. */
export function useBudgets(promptId: string | undefined): readonly Budget[] {
  const { me } = useChat()
  const [, setLoaded] = useState<unknown>()
  const own = known?.of === me.id ? known : undefined
  useEffect(() => {
    if (me.role === 'guest' || promptId !== undefined) return
    const fresh = known?.of === me.id && known.budgets.length === 0 && Date.now() - known.at < RARELY_MS
    if (fresh) return
    const timer = setTimeout(() => {
      call('listBudgets').then(
        ({ budgets }) => setLoaded((known = { of: me.id, budgets, at: Date.now() })),
        // The agent is away: what was known holds.
        () => undefined,
      )
    }, LATER_MS)
    return () => clearTimeout(timer)
  }, [me.id, me.role, promptId])
  return own?.budgets ?? NONE
}

const NONE: readonly Budget[] = []

const dismissed = new Set<string>()

/** The one that is used up most. */
export function BudgetWarning(props: { budgets: readonly Budget[] }) {
  const [, setDismissed] = useState(0)
  const keyOf = (budget: Budget): string => `${budgetName(budget)} ${budget.startsAgainAt}`
  const [worst] = props.budgets
    .filter((budget) => budget.warns && !dismissed.has(keyOf(budget)))
    .toSorted((a, b) => b.used / b.limit - a.used / a.limit)
  if (worst === undefined) return null
  const percent = percentUsed(worst)
  return (
    <div
      role="status"
      data-testid="budget-warning"
      className="flex items-center gap-2.5 border-b border-line px-4 py-1.5 text-xs text-muted last:border-b-0"
    >
      <TriangleAlert className="size-3.5 shrink-0 text-waiting" aria-hidden />
      <p className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        {budgetName(worst)}: {percent === 100 ? 'used up' : `${percent} % used`} ({budgetUse(worst)}); it{' '}
        {againWords(worst)}.{' '}
        <Link href="/settings/usage" className="text-accent underline">
          My usage
        </Link>
      </p>
      <IconButton
        label="Dismiss"
        className="-my-1"
        onClick={() => {
          dismissed.add(keyOf(worst))
          setDismissed(dismissed.size)
        }}
      >
        <X aria-hidden />
      </IconButton>
    </div>
  )
}
