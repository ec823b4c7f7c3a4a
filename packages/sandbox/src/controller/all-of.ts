/**
 * Wait for all of them, whatever becomes of the others; then reject with the first failure, if
 * there is one. Then the process may end without cutting anything off.
 */
export async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
