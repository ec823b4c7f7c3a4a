/**
 * Whether a JSON value is nested deeper than so many levels: what contains itself is. Goes level by level and looks at each part
 * once on each, so that no nesting is too deep for it and no number of ways to the same part too many.
 */
export function deeperThan(value: unknown, levels: number): boolean {
  let level = new Set([value].filter(hasMembers))
  for (let depth = 0; depth < levels && level.size > 0; depth++)
    level = new Set([...level].flatMap((part) => Object.values(part)).filter(hasMembers))
  return level.size > 0
}

function hasMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
