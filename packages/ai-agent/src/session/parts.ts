/** Dependencies of sessions, built once at start. */
import { SandlotError } from '@sandlot/shared/base/errors'
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
import type { PromptQueue, PromptSlot } from '../limits/prompt-queue.ts'
import type { Ownership } from '../replicas/ownership.ts'
import type { Log } from '../log.ts'

/** Dependencies of a manager of sessions. */
export interface SessionParts extends Omit<RunnerParts, 'ending'> {
  store: SessionStore
  /** Ownership of the users whose sessions are ours. */
  ownership: Ownership
}

/** Dependencies of one session. */
export interface RunnerParts {
  store: SessionRecords
  /** Its members may be others from one moment to the next. */
  models: Models
  prompts: PromptParts
  calls: CallParts
  users: UserParts
  jobs: JobParts
  restarts: RestartParts
  /** Counts prompts. Absent: they are not counted. */
  metrics?: AgentMetrics
  promptQueue: Pick<PromptQueue, 'leave' | 'view'> & {
    /** Undefined: there is always a slot. */
    of: (...asked: Parameters<PromptQueue['of']>) => PromptSlot | undefined
  }
  /**
   * Aborted when the process leaves without ending prompts: nothing is stored any more, the next
   * start resumes.
   */
  leaving: AbortSignal
  /**
   * Aborted when no prompt may take another step: each that begins or is resumed ends as
   * `interrupted`.
   */
  ending: AbortSignal
  /** Epoch milliseconds. */
  now: () => number
  log: Log
}

/** Terms that are the same for every prompt. */
interface PromptParts {
  /** The system prompt's own text, before what tools and people add. */
  system: string
  retry: RetryRules
  /** Chats that people read get a name from their model; else they keep their first words. */
  namesChats: boolean
}

/** Dependencies of the calls of a prompt. */
export interface CallParts {
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
  /** Rules that allow calls without asking. */
  rules: RuleRegistry
  /**
   * External access of this session's commands, as the end of a sentence; undefined: none.
   */
  externalAccess: (sessionId: string, userId: string, rules: readonly Rule[]) => string | undefined
  secrets: Pick<UserSecrets, 'get' | 'set'>
}

/** Secrets where none can be stored. */
export const NO_SECRETS: CallParts['secrets'] = {
  get: () => Promise.resolve(undefined),
  set: (_userId, name) =>
    Promise.reject(
      new SandlotError('bad_request', `The secret “${name}” cannot be kept: this agent keeps none.`),
    ),
}

/** External access where nothing is known about it: mode `auto` asks as `auto-edit` does. */
export const UNKNOWN_ACCESS = 'may reach a network'

/** Settings and limits of each user. */
export interface UserParts {
  /** Standing instructions for this user in this session, loaded when a prompt begins. */
  instructions: (userId: string, sessionId: string) => Promise<Instructions>
  /** True if this user was removed: nothing of theirs begins or is resumed. */
  isRemoved: (userId: string) => boolean
  /** The highest mode that is set for this user. Undefined: all. */
  modeCeilingOf: (userId: string) => Mode | undefined
  /** Names of the models that this user's sessions may choose. Undefined: all. */
  modelsOf: (userId: string) => readonly string[] | undefined
  /** The limits of this user's prompts. */
  limitsOf: (userId: string) => Pick<LoopContext, 'maxTurns' | 'budgets'>
  /** Teams of a user as last known, for users who are not connected. Undefined: unknown. */
  teamsOf: (userId: string) => readonly string[] | undefined
  /** Ids of the users of a team, as far as known. */
  membersOf: (teamId: string) => readonly string[]
}

/** Users of whom nothing is set but their limits. */
export const UNRESTRICTED: Omit<UserParts, 'limitsOf'> = {
  instructions: () => Promise.resolve({ text: '' }),
  isRemoved: () => false,
  modeCeilingOf: () => undefined,
  modelsOf: () => undefined,
  teamsOf: () => undefined,
  membersOf: () => [],
}

/** Background commands. */
interface JobParts {
  /** Polls a user's background commands. */
  poll: PollJobs
  /** The ports on which something listens in the user's sandbox, which is not started for it. */
  portsOf: (userId: string) => Promise<readonly number[]>
  /** Ends background commands of a session that is deleted. */
  end: EndJobs
}

/** Nothing is known of background commands. */
export const NO_JOBS: JobParts = {
  poll: () => Promise.resolve([]),
  portsOf: () => Promise.resolve([]),
  end: () => Promise.resolve(),
}

/** Facts about prompts of earlier processes, and errors that later ones resume from. */
interface RestartParts {
  /** True if resuming this prompt of an earlier process counts towards being given up. */
  resumeCounts: (promptId: string, userId: string) => boolean
  /** True if the previous process was ended because this prompt blocked it. */
  blockedAgent: (promptId: string) => boolean
  /**
   * True if work broken off by this error of the store is resumed automatically later: then the
   * session is released, and commands in the sandbox run on.
   */
  resumesAfter: (error: unknown) => boolean
}

export const PLAIN_RESTARTS: RestartParts = {
  resumeCounts: () => true,
  blockedAgent: () => false,
  resumesAfter: () => false,
}
