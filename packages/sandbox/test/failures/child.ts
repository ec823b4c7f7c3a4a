import type { ChildProcess } from 'node:child_process'

/** It has started and not ended. */
export function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

/** Resolves when it has ended; at once when it has already, or never started. */
export async function ended(child: ChildProcess): Promise<void> {
  if (isRunning(child)) await new Promise((resolve) => child.once('exit', resolve))
}
