/**
 * Finds lines by a pattern that a model wrote, on a thread of its own: such a pattern may take for
 * ever.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { messageOf } from '@sandlot/shared/errors'
import { ToolError } from '../tool-error.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'

export interface LineMatcher extends AsyncDisposable {
  /** Indices of the lines that match. Rejects with the signal's reason when it aborts. */
  match(lines: readonly string[], signal: AbortSignal): Promise<number[]>
}

const WORKER = new URL(
  import.meta.url.endsWith('.ts') ? './line-matcher-worker.ts' : './line-matcher-worker.js',
  import.meta.url,
)

/** `pattern`: a regular expression of JavaScript. @throws ToolError when it is none. */
export function createLineMatcher(pattern: string, ignoreCase: boolean): LineMatcher {
  const flags = ignoreCase ? 'i' : ''
  try {
    RegExp(pattern, flags)
  } catch (error) {
    throw new ToolError('invalid_arguments', `The pattern cannot be used: ${messageOf(error)}`)
  }
  const worker = new Worker(WORKER, { workerData: { source: pattern, flags }, execArgv: [] })
  return {
    async match(lines, signal) {
      if (lines.length === 0) return []
      const answer = once(worker, 'message')
      worker.postMessage(lines)
      const [indices] = (await orAborted(answer, signal)) as [number[]]
      return indices
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate()
    },
  }
}
