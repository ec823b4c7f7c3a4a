/** Limits of the heaps of threads. */
import { setFlagsFromString } from 'node:v8'

/**
 * Lets the `resourceLimits` of threads that start later hold: flags that limit the heap of this
 * process replace them (https://github.com/nodejs/node/issues/43991). Its own limit stays.
 */
export function keepThreadLimits(): void {
  setFlagsFromString('--max-old-space-size=0')
  setFlagsFromString('--max-semi-space-size=0')
}
