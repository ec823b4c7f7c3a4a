/** The context of one turn's calls, from the loop to the scheduler. */
import type { NoRoom } from '@sandlot/storage/tables/records'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { CallsBefore } from '../history/read-log.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { CallApproval, CallIds, JudgedBy, Ruling, ToolCall } from '../tools/tool.ts'
import type { Log } from '../log.ts'

/** The session, prompt and turn of the calls. */
type BatchIds = Omit<CallIds, 'callId'>

/** Decides whether a call runs. */
interface BatchApprovals {
  of(callId: string): CallApproval
  /** By the rules that hold now, and the mode. Rejects when they cannot be read. */
  judge(call: ToolCall, by?: JudgedBy): Promise<Ruling>
  /** Why this call must not start any more. Asked right before it would. */
  refusal?(callId: string): Promise<{ reason: FailureReason; message: string } | undefined>
}

/** The stored outputs of the session. */
export interface BatchOutputs {
  /** Store raw output bytes of a call; durable when it resolves, or only counted, and why. */
  append(callId: string, offset: number, bytes: Uint8Array): Promise<NoRoom | undefined>
  /**
   * Stored output bytes `[from, to)` of a call; shorter where fewer are stored, none when there are
   * none.
   */
  read(callId: string, from: number, to: number): Promise<Uint8Array>
}

export interface BatchContext {
  ids: BatchIds
  /** The prompt's tools. */
  tools: Pick<ToolRegistry, 'getTool' | 'listTools'>
  /**
   * Aborted by Stop (reason `cancelled`, or `interrupted`): every unfinished call gets its outcome.
   * Aborted by shutdown (reason `SHUTDOWN` of tools/tool-error.ts): `run` throws that reason,
   * commands go on, and nothing more is logged, so that the next start adopts what runs.
   */
  signal: AbortSignal
  /** Aborted when only this call is cancelled. */
  cancelSignal(callId: string): AbortSignal
  /** Acquires (and starts, or wakes) the user's sandbox. `readOnly`: the call changes nothing. */
  sandbox(signal: AbortSignal, readOnly: boolean): Promise<Sandbox>
  approvals: BatchApprovals
  /** State of the calls in the log when the batch began. */
  before: CallsBefore
  outputs: BatchOutputs
  /** Every settled event of the session so far, also of this batch. */
  events(): readonly SessionEvent[]
  /** The user's secret of that name, if they have set one. */
  secret(name: string): Promise<string | undefined>
  /** Epoch milliseconds. */
  now: () => number
  log: Log
}

/** Characters of `forModel` that the calls of one turn may hand to the model together. */
const BATCH_CHARACTERS = 200_000

/**
 * The guaranteed share of a call, whatever the others do: an outcome up to this length is never
 * shortened for the batch.
 */
export function guaranteedShare(calls: number, budget = BATCH_CHARACTERS): number {
  return Math.floor(budget / Math.max(1, calls))
}

/**
 * The largest length such that, when every longer text is shortened to it, all fit into `budget`:
 * the largest are shortened first, and only as far as needed. Infinity when all fit as they are.
 */
export function lengthLimit(lengths: readonly number[], budget = BATCH_CHARACTERS): number {
  let left = budget
  const ascending = lengths.toSorted((a, b) => a - b)
  for (const [index, length] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index))
    if (length > share) return share
    left -= length
  }
  return Number.POSITIVE_INFINITY
}
