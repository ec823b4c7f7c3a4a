/**
 * Waits for all, then rejects with the first failure, if any: the process may then exit without
 * interrupting one.
 */
export async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
