/** Inputs and outputs of one run of the agent loop. */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { Budgets } from '../limits/budgets.ts'
import type { Spent } from '../limits/period-budgets.ts'
import type { RetryRules } from './retry.ts'
import type { Model, ModelTool } from '../model/model.ts'
import type { BatchContext } from '../calls/batch.ts'
import type { RawToolCall } from '../calls/tool-request-adapter.ts'
import type { PollJobs } from '../tools/background/ends.ts'
import type { Job } from '../tools/background/jobs.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import type { PromptSlot } from '../limits/prompt-queue.ts'
import type { Log } from '../log.ts'

/** The session's stored outputs with what providers want back. */
interface ReplayStore {
  /** Returns false where there is no room: the output is not complete then. */
  save(id: string, bytes: Uint8Array): Promise<boolean>
  /** Empty where it was removed. */
  load(id: string): Promise<Uint8Array>
}

export interface LoopContext {
  promptId: string
  /** True when this prompt was begun by an earlier process. */
  resumed: boolean
  /**
   * False when the process that ran it before did not end because of it: a resume that does not
   * count. Default true.
   */
  resumeCounts?: boolean
  /** A step of it blocked the process that ran it before, which was ended for that. */
  blockedAgent: boolean
  /** Every settled event of the prompt's branch, in order, as stored. */
  log: () => readonly SessionEvent[]
  /** Shows a live event in this turn of the event loop, behind what was stored before it. */
  show: (event: SessionEvent) => void
  /** Resolves when a reader that sets the pace has taken what was shown; at once without one. */
  caughtUp: () => Promise<void>
  model: Model
  /** Asked in this order when the one before is overloaded, throttled or has no quota left. */
  fallbacks?: readonly Model[]
  system: string
  /** The same in every request. Empty: the requests have no `tools`. */
  tools: readonly ModelTool[]
  maxTurns: number
  /** Limits of the prompt, and of its user and their teams in a day and a month. */
  budgets?: Budgets
  /** Their use, in all sessions. */
  spent?: Spent
  replays: ReplayStore
  /** State of background commands of this session, as far as known. */
  pollJobs: (jobs: readonly Job[]) => ReturnType<PollJobs>
  retry: RetryRules
  /** The queue in which the prompt waits for its slot. Absent: it always has one. */
  slot?: PromptSlot | undefined
  /** Aborted by Stop. `signal.reason` is `'cancelled'` or `'interrupted'`. */
  signal: AbortSignal
  /** A fixed text for a Stop. */
  stopText?: () => string | undefined
  /** Aborted when the session is released without ending the prompt: closes the model's stream. */
  released: AbortSignal
  /** Announce these calls and run them: the scheduler. */
  runCalls: (calls: RawToolCall[], context: BatchContext) => AsyncGenerator<SessionEvent, ToolOutcome[]>
  batchContext: (turn: number) => BatchContext
  now: () => number
  warn: Log['warn']
}
