/**
 * Resolves or rejects like `work`, or resolves with `late` after `ms` (undefined: no time-out);
 * then `work` continues and its outcome is ignored.
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
