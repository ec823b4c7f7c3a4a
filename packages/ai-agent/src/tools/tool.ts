/**
 * Tools, and the two shapes of everything that wraps one. Generators throughout: the yield is what
 * the user may see, the return is what the caller needs; cancellation is only ever an
 * `AbortSignal`.
 */
import type { NoRoom } from '@sandlot/storage/tables/records'
import type {
  ExitInfo,
  OutputInfo,
  OutputPiece,
  ToolCallContent,
  ToolKind,
  ToolLocation,
} from '@sandlot/shared/chat/call'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { Question, QuestionContent } from '@sandlot/shared/chat/question'
import type { Remembered, RuleReason, Verdict } from '@sandlot/shared/chat/rules'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { z } from 'zod'
import type { ResolvedPaths, RuleRequest } from '../approval/request.ts'
import type { Loss } from '../approval/shell/loss.ts'
import type { ResultLimits } from './output/truncate-output.ts'
import type { JsonSchemaInput } from './tool-schema.ts'
import type { Log } from '../log.ts'

/** The one shape behind the adapter: policies, tools and executors see nothing else. */
export interface NormalizedToolRequest {
  callId: string
  name: string
  args: Record<string, unknown>
}

/**
 * One use of a tool, as the scheduler hands it on. `tool` is the registered tool; `args` are
 * validated by `validate`.
 */
export interface ToolCall extends NormalizedToolRequest {
  tool: Tool
  /** Why it cannot run, when that was clear from the request itself. `validate` says so. */
  refusal?: { reason: FailureReason; message: string }
}

/**
 * Updates of a running call. The scheduler stamps the call id and turns each into a live or settled
 * event.
 */
export type ToolUpdate =
  /** A live piece of output. */
  | { type: 'output'; piece: OutputPiece }
  | { type: 'progress'; message: string; done?: number; total?: number }
  /**
   * Settled: the call runs now. With `attempt`, it is stored before the command is sent: which
   * attempt, and the boot of the sandbox that gets it. A tool that never says so gets one without
   * `attempt`.
   */
  | { type: 'started'; attempt?: { n: number; boot: string } }
  | { type: 'title'; title: string; locations?: ToolLocation[] }
  /** Asks the user; stored (event and row) before it is shown. Then wait on `ctx.ask()`. */
  | {
      type: 'approval_asked'
      options: ApprovalOption[]
      expiresAt: number
      why: RuleReason[]
      /** The call asks for something, not for approval to run. */
      question?: Question
      /** Targets of the call's symbolic links: the answer is about them. */
      links?: ApprovedLink[]
    }
  /** The plan, complete each time. */
  | {
      type: 'plan'
      entries: {
        content: string
        priority: 'high' | 'medium' | 'low'
        status: 'pending' | 'in_progress' | 'completed'
      }[]
    }

/** A path of a call, and where a symbolic link led from it when it was judged. */
export interface ApprovedLink {
  path: string
  leadsTo: string
}

export interface ApprovalOption {
  optionId: string
  name: string
  kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always'
  /** The rules that this answer makes Sandlot remember, exactly. */
  remembers?: Remembered | undefined
}

/** The verdict on a call, by the current rules and the mode. */
export interface Ruling {
  verdict: Verdict
  /** Why it asks or is denied. */
  why: RuleReason[]
  /** The answers to choose from when it asks. */
  options: ApprovalOption[]
  /** See `Judgement`. */
  atRisk: readonly Loss[]
}

/** Facts about a call that were found before it is judged. */
export interface JudgedBy {
  /** Targets of its paths. */
  paths?: ResolvedPaths | undefined
  /** See `ExternalAccess`. */
  lost?: ReadonlySet<string> | undefined
}

/** The end of a call. `forModel` is always there; `data` and `content` are for the screen. */
export type ToolOutcome = {
  forModel: string
  data?: unknown
  content?: ToolCallContent[]
  exit?: ExitInfo
  outputInfo?: OutputInfo
  /** Set by the cache policy: from an earlier call with the same arguments. */
  cached?: boolean
  /** Set by the retry policy: how often it was tried again. */
  retries?: number
  /** Set by the metrics policy. */
  timing?: CallTiming
} & ({ status: 'completed' } | { status: 'failed'; reason: FailureReason })

/** The answer to an approval: the first one that was stored. */
export interface ApprovalAnswer {
  allowed: boolean
  optionId?: string
  /** `user`, `rule`, `expiry`, `cancel`, `unattended`. */
  by: string
  /** The person's reason, for the model. */
  reason?: string
  /** The person's answers to a question. */
  content?: QuestionContent
  /** The call's arguments as the person changed them. */
  input?: Record<string, unknown>
}

/** The approval of one call as the log knows it. Kept by the session; survives restarts. */
export interface CallApproval {
  state: 'none' | 'pending' | 'answered'
  /** The call itself asks for something: that is the tool's own business. */
  readonly question?: boolean
  /** Targets of its paths when it was asked. */
  readonly links?: readonly ApprovedLink[]
  /**
   * Resolves with the stored answer; on expiry, cancel or an unattended prompt with a refusal that
   * says so.
   */
  answer(): Promise<ApprovalAnswer>
}

/** Milliseconds a call waited (its turn, an approval, the sandbox to wake) and ran. */
interface CallTiming {
  waitMs: number
  runMs: number
  cached?: boolean
  retries?: number
}

/** So many calls of one user in so many milliseconds, all of them at once if need be. */
export interface RateLimit {
  calls: number
  perMs: number
}

/** Keeps waiting apart from running. Started by the scheduler when the call is announced. */
export interface CallClock {
  /** Counts the time until `what` settles as waiting. */
  wait<T>(what: Promise<T>): Promise<T>
  timing(): CallTiming
}

/** Ids of a call. */
export interface CallIds {
  sessionId: string
  userId: string
  promptId: string
  /** From 1 within the prompt. */
  turn: number
  callId: string
  /** The chat's folder, where its shell begins; absent: the workspace. */
  folder?: string | undefined
}

/** The time limit of a call. Waiting for the sandbox or for an answer does not use it up. */
interface CallDeadline {
  /** Milliseconds, for messages. */
  limitMs: number
  remainingMs(): number
}

/** The raw output of a call, and what the model reads of its result. */
export interface CallOutput {
  limits: ResultLimits
  /** The model has a tool that reads stored outputs: then a result that is cut may say so. */
  readable: boolean
  /** Durable when the promise resolves, or only counted, and why. Not copied before. */
  save(offset: number, bytes: Uint8Array): Promise<NoRoom | undefined>
  /**
   * Stored bytes `[from, to)` of this call, or of another one of the session; shorter where fewer
   * are stored.
   */
  read(from: number, to: number, callId?: string): Promise<Uint8Array>
  /**
   * Resolves when the outcome of this call is stored: the sandbox may forget how it ended only
   * then.
   */
  stored: Promise<void>
}

/** The context of a running call. A policy passes on a changed copy. */
export interface CallContext {
  ids: CallIds
  /**
   * Aborted by Stop, by a cancel of this call, or at the deadline. Its reason: `cancelled`,
   * `timeout`, `interrupted`, or `SHUTDOWN` (see tool-error.ts), at which a tool detaches from what
   * it runs without ending it.
   */
  signal: AbortSignal
  /** Set by the timeout policy. */
  deadline?: CallDeadline
  /** Acquires (and starts, or wakes) the user's sandbox. */
  sandbox(): Promise<Sandbox>
  output: CallOutput
  /** Resolves with the answer to what the call asked by `approval_asked`. */
  ask(): Promise<ApprovalAnswer>
  /**
   * A secret of the user by name; rejects with `needs_auth` when they have not set it. Its value is
   * taken out of whatever the call says afterwards, and must not go into a sandbox.
   */
  secret(name: string): Promise<string>
  log: Log
  /** Every settled event of the session so far: for tools that look back. */
  events(): readonly SessionEvent[]
  /** A saved attempt of this call before a restart, when there was one. */
  previous?: { n: number; boot: string }
  /** Set by the approve policy. */
  judged?: JudgedCall
  /** Epoch milliseconds, as in the log. */
  now: () => number
}

/** A call as it was let run. */
interface JudgedCall {
  /** Targets of its paths; the others have no symbolic link. */
  paths?: ResolvedPaths | undefined
  /** No person was asked about it: git that only reads starts no program then. */
  unasked?: boolean
}

/** A call with what only policies need of it. */
export interface PolicyCall extends ToolCall {
  clock: CallClock
  approval: CallApproval
  /**
   * The current verdict on the call with these arguments. Rejects when the rules cannot be read:
   * then nothing may run.
   */
  judge(args: Record<string, unknown>, by?: JudgedBy): Promise<Ruling>
  /**
   * Why the call must not start any more, as the loop says: a budget, or a failure that ends the
   * prompt.
   */
  refusalNow(): Promise<{ reason: FailureReason; message: string } | undefined>
  /**
   * Resolves when every call that the model made earlier in this turn and that comes first is over,
   * and there is room. Before that only questions are asked.
   */
  inOrder(): Promise<void>
  /** The log says that this call had begun in an earlier process, which died before it ended. */
  begunBefore: boolean
  /**
   * The log says that this call has begun: in an earlier process, or by a `started` of this one.
   */
  hasBegun(): boolean
}

export type Execute = (call: PolicyCall, ctx: CallContext) => AsyncGenerator<ToolUpdate, ToolOutcome>
/** One concern wrapped round every call. */
export type Policy = (next: Execute) => Execute

/** Name, offer, approval and run of a tool, where they are not the default. */
export interface ToolRuns {
  /** The server's tool that it is. Absent: its id, in rules, settings and metrics, is its name. */
  as?: {
    /** `server::tool`. */
    id: string
    /**
     * In place of the id in rules that allow: where the id may be another program's next time.
     * Those that deny or ask know both.
     */
    ruleId?: string
  }
  /**
   * False for users who have nothing of it; absent: it is for everybody. Asked at each prompt's
   * start.
   */
  offeredTo?: (userId: string) => boolean
  /** One line for the system prompt, where the tool is there. */
  hint?: string
  /**
   * It reads what earlier calls printed: what a result left out can be had where there is such a
   * tool.
   */
  readsOutputs?: true
  /**
   * It may change something, but only what its session was allowed before: it runs alone, in order,
   * and no approval is asked for.
   */
  needsApproval?: false
  /**
   * Milliseconds; absent: the configured default. The model may ask for less, or more up to the
   * maximum, by `timeout_ms` where the tool has it.
   */
  timeoutMs?: number
  rateLimit?: RateLimit
  /** Calls of it that run at once, of everybody together; absent: as many as come. */
  concurrency?: number
  /**
   * Only for a read-only tool: the same arguments give the same result for this long (default
   * 300,000 ms). `version` changes when results do.
   */
  cache?: { ttlMs?: number; version?: string }
  /**
   * A restart that finds it begun, without a logged attempt, begins it again: made twice it leaves
   * the same, or it logs an attempt before it does anything. Reads are so without saying it.
   */
  repeatable?: true
  /** A second call does no harm: it is tried again (default once) when its failure may pass. */
  idempotent?: { retries?: number }
  /** The prompt ends when a call of it fails: nothing goes without it. */
  fatal?: boolean
}

/** The title of a call: one line, and the files it concerns, as absolute paths. */
export interface ToolTitle {
  title: string
  locations?: ToolLocation[]
}

export interface Tool<Input extends z.ZodObject = z.ZodObject> {
  /** The name the model uses: `[A-Za-z0-9_-]{1,64}`. */
  name: string
  description: string
  kind: ToolKind
  /** Its arguments. A server's tool has the JSON Schema that the server gave. */
  input: Input | JsonSchemaInput
  /**
   * The `data` of a completed call, as JSON; one that does not fit ends `invalid_output`. Absent:
   * anything. A failure's `data` is its own.
   */
  output?: z.ZodType
  /**
   * It changes nothing: it runs together with other reads, needs no approval, and leaves what is
   * cached as it is.
   */
  readOnly: boolean
  /** For people, from the arguments (which may be incomplete or invalid). */
  title(args: Record<string, unknown>): string | ToolTitle
  /**
   * Requests to judge before it runs, from checked arguments: command lines, files, hosts. Absent:
   * the tool itself.
   */
  requests?(args: z.infer<Input>): RuleRequest[]
  /**
   * Arguments that are paths, with what stands for one that is absent: relative ones begin in the
   * folder of the chat.
   */
  pathArgs?: Readonly<Record<string, string | undefined>>
  execute(args: z.infer<Input>, ctx: CallContext): AsyncGenerator<ToolUpdate, ToolOutcome>
  runs?: ToolRuns
}

/** The id in rules, settings and metrics: `name` for our own, `server::tool` for a server's. */
export function idOf({ name, runs }: Pick<Tool, 'name' | 'runs'>): string {
  return runs?.as?.id ?? name
}

/** Checks a tool against its own input type and forgets that type: a list of tools has many. */
export function defineTool<Input extends z.ZodObject>(tool: Tool<Input>): Tool {
  return tool
}

/** An argument for a title, when it is usable text. */
export function textArg(args: Record<string, unknown>, name: string): string | undefined {
  const value = args[name]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** The first line of a text, for a title. */
export function firstLine(text: string): string {
  const line = text.split('\n', 1)[0] ?? ''
  return line.length < text.length || line.length > 200 ? `${line.slice(0, 200)} …` : line
}
