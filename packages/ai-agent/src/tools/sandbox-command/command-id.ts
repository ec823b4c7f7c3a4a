import { createHash } from 'node:crypto'
import type { CommandId } from '@sandlot/sandbox/sandbox'

/**
 * The id under which an attempt of a call runs in the sandbox: the first 128 bits of SHA-256, as 32
 * hex digits. The same attempt has the same id in every process, which is how a restart finds what
 * still runs.
 */
export function commandId(of: {
  sessionId: string
  promptId: string
  turn: number
  callId: string
  attempt: number
}): CommandId {
  // JSON: no two different lists have the same text, whatever the ids contain.
  const text = JSON.stringify([of.sessionId, of.promptId, of.turn, of.callId, of.attempt])
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
