/** Dependencies of sessions, built once at start. */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { QueueWait } from '@sandlot/shared/chat/queue-wait'
import type { Rule } from '@sandlot/shared/chat/rules'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { SessionRecords, SessionStore } from '@sandlot/storage/sessions/store'
import type { LoopContext } from '../loop/context.ts'
import type { Models } from '../loop/model-choice.ts'
import type { RetryRules } from '../loop/retry.ts'
import type { AgentMetrics } from '../metrics/agent-metrics.ts'
import type { RuleRegistry } from '../approval/rule-registry.ts'
import type { Instructions } from '../config/instructions.ts'
import type { BatchContext } from '../calls/batch.ts'
import type { RawToolCall } from '../calls/tool-request-adapter.ts'
import type { UserSecrets } from '../people/user-secrets.ts'
import type { EndJobs } from '../tools/background/end-jobs.ts'
import type { PollJobs } from '../tools/background/ends.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import type { PromptQueue } from '../limits/prompt-queue.ts'
import type { Ownership } from '../replicas/ownership.ts'
import type { Log } from '../log.ts'

/** Dependencies of a manager of sessions. */
export interface SessionParts extends RunnerParts {
  store: SessionStore
  /** Ownership of the users whose sessions are ours. Absent: all are. */
  ownership?: Ownership
  /** Teams of a user as last known, for users who are not connected. Absent: unknown. */
  teamsOf?: (userId: string) => readonly string[] | undefined
  /** Ids of the users of a team, as far as known. Absent: none are. */
  membersOf?: (teamId: string) => readonly string[]
}

/** Dependencies of one session. */
export interface RunnerParts {
  store: SessionRecords
  /** Its members may be others from one moment to the next. */
  models: Models
  /** The system prompt's own text, before what tools and people add. */
  system: string
  /**
   * Standing instructions for this user in this session, loaded when a prompt begins. Absent: none.
   */
  instructions?: (userId: string, sessionId: string) => Promise<Instructions>
  /**
   * The user's tools, asked for when a prompt begins (or is taken up again) and the same until it
   * ends; empty with `SANDLOT_TOOLS_ENABLED=false`. Never rejects: a server that does not answer
   * has no tools. At once when the signal aborts.
   */
  tools: (userId: string, signal: AbortSignal, sessionId?: string) => Promise<ToolRegistry>
  /** The scheduler. */
  runCalls: (calls: RawToolCall[], context: BatchContext) => AsyncGenerator<SessionEvent, ToolOutcome[]>
  /**
   * The user's sandbox; rejects with a `SandboxError`. `waiting` is called while the host has no
   * room for it, and with place 0 at the end of that.
   */
  sandbox: (userId: string, signal: AbortSignal, waiting?: (wait: QueueWait) => void) => Promise<Sandbox>
  /** Polls a user's background commands. Absent: unknown. */
  pollJobs?: PollJobs
  /** The ports on which something listens in the user's sandbox, which is not started for it. */
  portsOf?: (userId: string) => Promise<readonly number[]>
  /** Ends background commands of a session that is deleted. Absent: there are none. */
  endJobs?: EndJobs
  /** Rules that allow calls without asking. */
  rules: RuleRegistry
  /**
   * External access of this session's commands, as the end of a sentence; undefined: none. Absent:
   * unknown, and mode `auto` is as `auto-edit`.
   */
  externalAccess?: (sessionId: string, userId: string, rules: readonly Rule[]) => string | undefined
  /** People's secrets. Absent: none can be stored. */
  secrets?: Pick<UserSecrets, 'get' | 'set'>
  /** True if this user was removed: nothing of theirs begins or is resumed. Absent: none was. */
  isRemoved?: (userId: string) => boolean
  /**
   * True if resuming this prompt of an earlier process counts towards being given up. Absent: yes.
   */
  resumeCounts?: (promptId: string, userId: string) => boolean
  /** True if the previous process was ended because this prompt blocked it. Absent: no. */
  blockedAgent?: (promptId: string) => boolean
  /**
   * True if work broken off by this error of the store is resumed automatically later: then the
   * session is released, and commands in the sandbox run on. Absent: no.
   */
  resumesAfter?: (error: unknown) => boolean
  /** Chats that people read get a name from their model. Absent: they keep their first words. */
  namesChats?: boolean
  /** Counts prompts. */
  metrics?: AgentMetrics
  /** The queue of prompts. Absent: there is room for all. */
  promptQueue?: PromptQueue
  maxTurns: number
  /** The highest mode that is set for this user. Absent, or undefined: all. */
  modeCeilingOf?: (userId: string) => Mode | undefined
  /** Names of the models that this user's sessions may choose. Absent, or undefined: all. */
  modelsOf?: (userId: string) => readonly string[] | undefined
  /** The limits of this user's prompts; absent: none but `maxTurns`. */
  limitsOf?: (userId: string) => Pick<LoopContext, 'maxTurns' | 'budgets'>
  retry: RetryRules
  /**
   * Aborted when the process leaves without ending prompts: nothing is stored any more, the next
   * start resumes.
   */
  leaving: AbortSignal
  /**
   * Aborted when no prompt may take another step: each that begins or is resumed ends as
   * `interrupted`. Absent: never.
   */
  ending?: AbortSignal
  /** Epoch milliseconds. */
  now: () => number
  log: Log
}
