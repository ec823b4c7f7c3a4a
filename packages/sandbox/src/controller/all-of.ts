/**
 * Wait for all of them, whatever becomes of the others; then reject with the first failure, if there is one. So nobody
 * who ends the process afterwards cuts off what was still to be done.
 */
export async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
