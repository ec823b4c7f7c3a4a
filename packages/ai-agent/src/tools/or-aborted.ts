/**
 * `what`, or a rejection with the signal's reason as soon as it aborts. Unlike a race with a promise that lives long,
 * nothing stays behind: such a promise keeps every value that it was ever raced with.
 */
export async function orAborted<T>(what: Promise<T>, signal: AbortSignal): Promise<T> {
  // Then nobody waits for it, and that it fails must not end the process as an error that nobody heard.
  if (signal.aborted) void Promise.allSettled([what])
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([what, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
