/** How much text the calls of one turn may hand to the model together. */

/** Characters of `forModel` of all calls of a turn. */
const BATCH_CHARACTERS = 200_000

/**
 * What every call may have, whatever the others do: an outcome up to this length is never shortened
 * for the batch.
 */
export function guaranteedShare(calls: number, budget = BATCH_CHARACTERS): number {
  return Math.floor(budget / Math.max(1, calls))
}

/**
 * The largest length such that, when every longer text is shortened to it, all fit into `budget`:
 * the largest are shortened first, and only as far as needed. Infinity when all fit as they are.
 */
export function lengthLimit(lengths: readonly number[], budget = BATCH_CHARACTERS): number {
  let left = budget
  const ascending = lengths.toSorted((a, b) => a - b)
  for (const [index, length] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index))
    if (length > share) return share
    left -= length
  }
  return Number.POSITIVE_INFINITY
}
