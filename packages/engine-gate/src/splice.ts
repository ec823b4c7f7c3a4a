import type { Duplex } from 'node:stream'

/**
 * Join two open streams until both directions have ended. Each direction waits for its slower end, and ends alone: a
 * half-close on one side is a half-close on the other. A side that breaks takes the other with it. Settles when both
 * are gone; never rejects.
 */
export async function splice(a: Duplex, b: Duplex): Promise<void> {
  a.pipe(b)
  b.pipe(a)
  await Promise.all([follow(a, b), follow(b, a)])
}

/** When `one` is gone, `other` goes too: at once after a failure, else after what it still has to write. */
function follow(one: Duplex, other: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const gone = (): void => {
      // Gone before its end was read: something was lost, and the other side must not take this for an end.
      if (!one.readableEnded || !one.writableFinished) other.destroy()
      else finish(other)
      resolve()
    }
    // The error itself is the peer's affair; `close` follows it.
    one.on('error', () => {})
    if (one.destroyed) gone()
    else one.once('close', gone)
  })
}

/** Let it write what it has; then it goes even if its peer never closes. */
function finish(stream: Duplex): void {
  if (stream.destroyed) return
  if (stream.writableFinished) stream.destroy()
  else stream.end(() => stream.destroy())
}
