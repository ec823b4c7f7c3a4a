/** Outputs of calls in memory: bounded, the oldest are removed first. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { OutputRows } from '@sandlot/storage/sessions/outputs'
import type { Effects, OutputRow } from '@sandlot/storage/tables/records'

/** The most output of one call, in bytes. */
export const MAX_OUTPUT_BYTES = 32 * 1024 * 1024
/** The most output of all calls; the oldest are forgotten first. */
const MAX_BYTES = 2 * MAX_OUTPUT_BYTES

interface Output {
  row: OutputRow
  parts: Uint8Array[]
  /** Its bytes had to make room. */
  forgotten: boolean
}

export class MemoryOutputs implements Pick<OutputRows, 'append' | 'get' | 'missingRoom' | 'read'> {
  readonly #outputs = new Map<string, Output>()
  #bytes = 0

  async append(sessionId: string, callId: string, offset: number, bytes: Uint8Array): Promise<undefined> {
    const output = this.#outputOf(sessionId, callId)
    // Later output would be at the wrong offset.
    if (output.forgotten) return undefined
    const { storedBytes } = output.row
    if (offset > storedBytes)
      throw new SandlotError('bad_request', `Output of ${callId} ends at ${storedBytes}, not at ${offset}.`)
    // A copy, also of a Buffer: the caller may use its memory again.
    const more = new Uint8Array(bytes.subarray(storedBytes - offset))
    output.parts.push(more)
    output.row.storedBytes += more.length
    output.row.totalBytes = Math.max(output.row.totalBytes, output.row.storedBytes)
    this.#bytes += more.length
    for (const oldest of this.#outputs.values()) {
      if (this.#bytes <= MAX_BYTES || oldest === output) break
      this.#forget(oldest)
    }
    return undefined
  }

  async read(sessionId: string, callId: string, from: number, to: number): Promise<Uint8Array> {
    const output = this.#outputs.get(keyOf(sessionId, callId))
    if (output === undefined) return new Uint8Array()
    // Joined once: who reads a part reads the next one too.
    if (output.parts.length > 1) output.parts = [new Uint8Array(Buffer.concat(output.parts))]
    return (output.parts[0] ?? new Uint8Array()).slice(from, to)
  }

  async get(sessionId: string, callId: string): Promise<OutputRow | undefined> {
    const output = this.#outputs.get(keyOf(sessionId, callId))
    return output && { ...output.row }
  }

  missingRoom(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  complete(sessionId: string, { callId, ...counts }: NonNullable<Effects['output']>): void {
    Object.assign(this.#outputOf(sessionId, callId).row, counts, { complete: true })
  }

  removeAll(sessionId: string): void {
    for (const [key, output] of this.#outputs) {
      if (output.row.sessionId !== sessionId) continue
      this.#forget(output)
      this.#outputs.delete(key)
    }
  }

  #outputOf(sessionId: string, callId: string): Output {
    const key = keyOf(sessionId, callId)
    const known = this.#outputs.get(key)
    if (known !== undefined) return known
    const row = { sessionId, callId, storedBytes: 0, totalBytes: 0, lines: 0, complete: false }
    const output = { row, parts: [], forgotten: false }
    this.#outputs.set(key, output)
    return output
  }

  #forget(output: Output): void {
    this.#bytes -= output.parts.reduce((sum, { length }) => sum + length, 0)
    output.parts = []
    output.forgotten = true
  }
}

function keyOf(...ids: [string, string]): string {
  return JSON.stringify(ids)
}
