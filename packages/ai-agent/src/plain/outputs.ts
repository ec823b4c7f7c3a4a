/** What calls printed, in memory: that of the newest calls, as far as they fit together. */

/** Of one call. */
export const MAX_OUTPUT_BYTES = 32 * 1024 * 1024
/** Of all calls; the oldest are forgotten first. */
const MAX_BYTES = 2 * MAX_OUTPUT_BYTES

export interface Outputs {
  /** `offset`: where `bytes` begin, which is the end of what there is of this call. */
  append(callId: string, offset: number, bytes: Uint8Array): Promise<undefined>
  /** `[from, to)`; shorter where there is less. */
  read(callId: string, from: number, to: number): Promise<Uint8Array>
}

interface Output {
  parts: Uint8Array[]
  size: number
}

export function createOutputs(): Outputs {
  const outputs = new Map<string, Output>()
  let total = 0
  return {
    append(callId, offset, bytes) {
      const output = outputs.get(callId) ?? { parts: [], size: 0 }
      // It was forgotten while it grew: what comes now would stand at the wrong place.
      if (offset !== output.size) return Promise.resolve(undefined)
      outputs.set(callId, output)
      output.parts.push(bytes.slice())
      output.size += bytes.length
      total += bytes.length
      for (const [oldest, { size }] of outputs) {
        if (total <= MAX_BYTES || oldest === callId) break
        outputs.delete(oldest)
        total -= size
      }
      return Promise.resolve(undefined)
    },
    read(callId, from, to) {
      const output = outputs.get(callId)
      if (output === undefined) return Promise.resolve(new Uint8Array())
      // Joined once: who reads a part reads the next one too.
      if (output.parts.length > 1) output.parts = [Buffer.concat(output.parts)]
      return Promise.resolve((output.parts[0] ?? new Uint8Array()).subarray(from, to))
    },
  }
}
