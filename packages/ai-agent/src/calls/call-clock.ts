import type { CallClock } from '../tools/tool.ts'

/** A clock that has been waiting since `since` (by `performance.now()`) and starts to run when it is made. */
export function createCallClock(since: number): CallClock {
  const began = performance.now()
  let waited = began - since
  return {
    async wait(what) {
      const from = performance.now()
      try {
        return await what
      } finally {
        waited += performance.now() - from
      }
    },
    timing() {
      const total = performance.now() - since
      return { waitMs: Math.round(waited), runMs: Math.max(0, Math.round(total - waited)) }
    },
  }
}
