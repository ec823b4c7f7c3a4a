/**
 * Finds lines by a pattern that a model wrote, on a thread of its own: such a pattern may take for
 * ever.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import { ToolError } from '../tool-error.ts'
import { WorkerPool } from '../worker-pool.ts'

export interface LineMatcher extends AsyncDisposable {
  /** Indices of the lines that match. Rejects with the signal's reason when it aborts. */
  match(lines: readonly string[], signal: AbortSignal): Promise<number[]>
}

const SCRIPT = new URL(
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
  const pool = new WorkerPool<readonly string[], number[]>({
    script: SCRIPT,
    threads: 1,
    workerData: { source: pattern, flags },
  })
  return {
    async match(lines, signal) {
      if (lines.length === 0) return []
      const { answer } = await pool.run(lines, { signal })
      return answer
    },
    [Symbol.asyncDispose]: () => pool.close(),
  }
}
