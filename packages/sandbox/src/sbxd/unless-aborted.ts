/**
 * What `work` comes to. Rejects with `reason`, default that of the signal, when the signal ends first; the work is then
 * left to itself, and nobody hears if it fails.
 */
export async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  reason: () => unknown = () => signal.reason,
): Promise<T> {
  const over = Promise.withResolvers<never>()
  const stop = (): void => over.reject(reason())
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    return await Promise.race([work, over.promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
