/** Usage as text. Pure. */
import type { Budget, CountedUsage } from '@sandlot/shared/admin/usage'
import { type Spent, costOf } from '@sandlot/shared/transcript/spent'
import { formatCount, formatDuration } from './format.ts'

/** `812`, `1.4 k`, `52 k`, `3.1 M`. */
export function tokenWords(tokens: number): string {
  if (tokens < 1_000) return String(tokens)
  const [value, unit] =
    tokens < 999_500 ? [tokens / 1e3, 'k'] : tokens < 999.5e6 ? [tokens / 1e6, 'M'] : [tokens / 1e9, 'G']
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`
}

/** `$0.0004`, `$0.42`, `$1,204.00`: small amounts with as many digits as say something. */
export function dollarWords(amount: number): string {
  const digits = amount > 0 && amount < 0.01 ? 4 : 2
  return `$${amount.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}

/** `$0.42`, `unknown`, `at least $0.42`. Unknown is never zero. */
export function costWords({ cost, unpriced }: Pick<CountedUsage, 'cost' | 'unpriced'>): string {
  if (cost === null) return 'unknown'
  return unpriced > 0 ? `at least ${dollarWords(cost)}` : dollarWords(cost)
}

/** `83 %`, rounded down. `share`: from 0 to 1. */
export function shareWords(share: number): string {
  return `${Math.floor(share * 100)} %`
}

/** A note next to the tokens in; undefined: nothing was cached as far as it is known. */
export function cachedWords({
  cached,
  cachedShare,
}: Pick<CountedUsage, 'cached' | 'cachedShare'>): string | undefined {
  if (cachedShare !== null) return `${shareWords(cachedShare)} read from cache`
  return cached === 0 ? undefined : `${tokenWords(cached)} cached`
}

/** A note next to a sum with answers of unknown cost; undefined: there are none. */
export function unpricedWords({ unpriced }: Pick<CountedUsage, 'unpriced'>): string | undefined {
  if (unpriced === 0) return undefined
  return `${formatCount(unpriced, 'answer')} of unknown cost`
}

/** `8.2 s · 12 k tokens · $0.04`: what is known of it. */
export function spentLine(spent: Spent, tookMs: number | undefined): string {
  const cost = costOf(spent)
  const tokens = spent.input + spent.output
  return [
    ...(tookMs === undefined ? [] : [formatDuration(tookMs)]),
    ...(tokens === 0 ? [] : [`${tokenWords(tokens)} tokens`]),
    ...(spent.answers === 0 || cost === null ? [] : [costWords({ ...spent, cost })]),
  ].join(' · ')
}

/** Each with its name, in the order in which they are shown. */
export function spentRows(spent: Spent): (readonly [string, string])[] {
  const of = (tokens: number, part: number, name: string): string =>
    `${tokens.toLocaleString('en')}${part === 0 ? '' : `, ${part.toLocaleString('en')} of them ${name}`}`
  const unknown = unpricedWords(spent)
  const cost = costWords({ ...spent, cost: costOf(spent) })
  return [
    ['Tokens in', of(spent.input, spent.cached, 'cached')],
    ['Tokens out', of(spent.output, spent.reasoning, 'reasoning')],
    ['Model answers', spent.answers.toLocaleString('en')],
    ['Cost', unknown === undefined ? cost : `${cost}: ${unknown}`],
  ]
}

/** `Your tokens today`, `US dollars of the team “Data” this month`. */
export function budgetName({ of, name, period, what }: Budget): string {
  const when = period === 'day' ? 'today' : 'this month'
  if (of === 'you') return `Your ${WHAT[what]} ${when}`
  const subject = of === 'team' ? `the team “${name ?? ''}”` : 'everybody'
  return `${capital(WHAT[what])} of ${subject} ${when}`
}

/** `$4.10 of $5.00`. */
export function budgetUse({ what, used, limit }: Budget): string {
  return `${amountWords(what, used)} of ${amountWords(what, limit)}`
}

/** `starts again on 1 December at midnight UTC`. */
export function againWords({ period, startsAgainAt }: Budget): string {
  if (period === 'day') return 'starts again at midnight UTC'
  const day = new Date(startsAgainAt).toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'long',
    timeZone: 'UTC',
  })
  return `starts again on ${day} at midnight UTC`
}

/** Whole percent, rounded down: 100 is used up. */
export function percentUsed({ used, limit }: Budget): number {
  // A quotient of fractions may be a hair too small.
  return Math.min(100, Math.floor((used / limit) * 100 + 1e-9))
}

const WHAT: Record<Budget['what'], string> = {
  turns: 'model answers',
  calls: 'calls',
  tokens: 'tokens',
  cost: 'cost',
  ms: 'running time',
}

function amountWords(what: Budget['what'], amount: number): string {
  if (what === 'cost') return dollarWords(amount)
  if (what === 'ms') return formatDuration(amount)
  return what === 'tokens' ? tokenWords(amount) : amount.toLocaleString('en')
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
