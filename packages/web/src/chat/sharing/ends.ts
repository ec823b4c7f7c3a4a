/** When what is shared ends, as it is chosen from a list. */

const DAY_MS = 86_400_000

export type EndChoice = 'never' | 'day' | 'week' | 'month'

export const END_CHOICES: Record<EndChoice, { name: string; ms: number | null }> = {
  never: { name: 'No expiry', ms: null },
  day: { name: 'Tomorrow', ms: DAY_MS },
  week: { name: 'In 7 days', ms: 7 * DAY_MS },
  month: { name: 'In 30 days', ms: 30 * DAY_MS },
}

/** Epoch milliseconds; null: never. */
export function endOf(choice: EndChoice): number | null {
  const { ms } = END_CHOICES[choice]
  return ms === null ? null : Date.now() + ms
}
