/**
 * Yields to other work between parts of long computations. They share one slice per turn of the
 * event loop: ten at once take ten times as long, and block the thread no longer than one.
 */

/** Milliseconds per turn of the event loop for all long computations. */
const SLICE_MS = 3

let since = -Infinity
const waiting: (() => void)[] = []

/**
 * Await between two parts. Resolves at once until the slice is used up, then in a later turn of the
 * event loop.
 */
export async function pauseWhenDue(): Promise<void> {
  if (waiting.length === 0 && performance.now() - since < SLICE_MS) return
  await new Promise<void>((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(resumeFirst)
  })
}

function resumeFirst(): void {
  since = performance.now()
  const [first] = waiting
  first?.()
  // Removed only now: later callers queue after the others, and one timer serves all.
  waiting.shift()
  if (waiting.length > 0) setImmediate(resumeFirst)
}
