/**
 * Computes at the first call, for all callers. A failure is not remembered: the next call tries
 * again.
 */
export function once<T>(compute: () => Promise<T>): () => Promise<T> {
  let value: Promise<T> | undefined
  return () => {
    value ??= compute().catch((error: unknown) => {
      value = undefined
      throw error
    })
    return value
  }
}
