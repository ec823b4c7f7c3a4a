/** What the loop gives the scheduler for one turn's calls, beside the calls themselves. */
import type { Mode } from '@sandlot/shared/events'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { CallApproval, ToolLog } from '../tools/tool.ts'

export interface BatchContext {
  sessionId: string
  userId: string
  promptId: string
  /** From 1 within the prompt. */
  turn: number
  /** Aborted by Stop and by shutdown. */
  signal: AbortSignal
  /** Aborted when only this call is cancelled. */
  cancelSignal(callId: string): AbortSignal
  /** The mode now; it may change while a batch runs. */
  mode(): Mode
  /** Acquires (and starts, or wakes) the user's sandbox. */
  sandbox(signal: AbortSignal): Promise<Sandbox>
  approval(callId: string): CallApproval
  allowedForSession(toolName: string): boolean
  /** The attempt of this call that the log has from before a restart. */
  previousAttempt(callId: string): { n: number; boot: string } | undefined
  /** Calls that the log has already announced; they are not announced again. */
  announced(callId: string): boolean
  /** Store raw output bytes of a call; durable when it resolves. */
  appendOutput(callId: string, offset: number, bytes: Uint8Array): Promise<void>
  log: ToolLog
}
