/** What the loop gives the scheduler for one turn's calls, beside the calls themselves. */
import type { NoRoom } from '@sandlot/storage/sessions/store-room'
import type { FailureReason } from '@sandlot/shared/reasons'
import type { Mode } from '@sandlot/shared/mode'
import type { SessionEvent } from '@sandlot/shared/events'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { ResolvedPaths } from '../approval/request.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { CallApproval, Ruling, ToolCall, ToolLog } from '../tools/tool.ts'

export interface BatchContext {
  sessionId: string
  userId: string
  promptId: string
  /** From 1 within the prompt. */
  turn: number
  /** The prompt's tools. */
  tools: Pick<ToolRegistry, 'getTool' | 'listTools'>
  /**
   * Aborted by Stop (reason `cancelled`, or `interrupted`): every unfinished call gets its outcome. Aborted by shutdown
   * (reason `SHUTDOWN` of tools/tool-error.ts): `run` throws that reason, commands go on, and nothing more is logged,
   * so that the next start adopts what runs.
   */
  signal: AbortSignal
  /** Aborted when only this call is cancelled. */
  cancelSignal(callId: string): AbortSignal
  /** The mode now; it may change while a batch runs. */
  mode(): Mode
  /** Acquires (and starts, or wakes) the user's sandbox. */
  sandbox(signal: AbortSignal): Promise<Sandbox>
  approval(callId: string): CallApproval
  /** By the rules that hold now, and the mode. Rejects when they cannot be read. */
  judge(call: ToolCall, paths?: ResolvedPaths): Promise<Ruling>
  /** The attempt of this call that the log has from before a restart. */
  previousAttempt(callId: string): { n: number; boot: string } | undefined
  /** Calls that the log says had begun when the batch did: an earlier process died while they ran. */
  begunBefore(callId: string): boolean
  /** Calls that the log has already announced; they are not announced again. */
  announced(callId: string): boolean
  /** Store raw output bytes of a call; durable when it resolves, or only counted, and why. */
  appendOutput(callId: string, offset: number, bytes: Uint8Array): Promise<NoRoom | undefined>
  /** Stored output bytes `[from, to)` of a call; shorter where fewer are stored, none when there are none. */
  readOutput(callId: string, from: number, to: number): Promise<Uint8Array>
  /** Why this call must not start any more. Asked right before it would. */
  refusal?(callId: string): Promise<{ reason: FailureReason; message: string } | undefined>
  /** Every settled event of the session so far, also of this batch. */
  events(): readonly SessionEvent[]
  /** The user's secret of that name, if they have set one. Absent: nobody keeps any. */
  secret?(name: string): Promise<string | undefined>
  /** Epoch milliseconds. */
  now: () => number
  log: ToolLog
}
