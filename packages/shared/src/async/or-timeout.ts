/**
 * Resolves or rejects as `work` does, or resolves with `late` after `ms` (undefined: it is waited
 * for as long as it takes); then `work` goes on and its outcome is ignored.
 */
export async function orTimeout<T, const L>(
  work: Promise<T>,
  ms: number | undefined,
  late: L,
): Promise<T | L> {
  if (ms === undefined) return work
  const { promise, resolve } = Promise.withResolvers<L>()
  const timer = setTimeout(resolve, ms, late)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
