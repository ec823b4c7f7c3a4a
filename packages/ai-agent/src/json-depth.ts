/** Whether a JSON value is nested deeper than so many levels. Looks no deeper itself, so that no nesting is too deep for it. */
export function deeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => deeperThan(member, levels - 1))
}
