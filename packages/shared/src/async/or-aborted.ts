/**
 * Resolves or rejects like `work`. Rejects with `reason()`, default the signal's reason, when the
 * signal aborts first: `work` continues and its outcome is ignored. Leaves no listener, unlike a
 * race with a long-lived promise, which would retain every value that it was raced with.
 */
export async function orAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  reason: () => unknown = () => signal.reason,
): Promise<T> {
  if (signal.aborted) {
    // A rejection without a handler would end the process.
    void Promise.allSettled([work])
    throw reason()
  }
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(reason())
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
