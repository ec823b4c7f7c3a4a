/**
 * The other side of line-matcher.ts: a pattern that never ends holds up only this thread, which can
 * be ended.
 */
import { parentPort, workerData } from 'node:worker_threads'

const { source, flags } = workerData as { source: string; flags: string }
const expression = new RegExp(source, flags)

parentPort?.on('message', (lines: readonly string[]) => {
  parentPort?.postMessage(lines.flatMap((line, index) => (expression.test(line) ? [index] : [])))
})
parentPort?.postMessage('loaded')
