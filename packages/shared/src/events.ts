/**
 * The vocabulary of Sandlot. An event is something that happened in a session, as an ACP v1 `SessionUpdate`,
 * with our private data in `_meta.sandlot`. The same object travels from the tool to the screen; nobody
 * renames it on the way.
 *
 * Settled events carry the whole value under their id, are stored before they are sent, and are numbered:
 * `seq` is dense per session and the only cursor. Live events (`live: true`) are never stored, have no `seq`,
 * and carry the id they belong to and their offset there.
 */
import { z } from 'zod'
import { question, questionContent } from './question.ts'
import { remembered, ruleReason } from './rules.ts'

// ── Closed lists ────────────────────────────────────────────────────────────────────────────────────────

/** Why a call failed. A command that ran to its end is `completed`, whatever its exit code. */
export const FAILURE_REASONS = [
  'invalid_arguments',
  'unknown_tool',
  'unavailable',
  'denied',
  'cancelled',
  'timeout',
  'interrupted',
  'sandbox_unavailable',
  'sandbox_lost',
  'out_of_memory',
  'disk_quota',
  'pids_exhausted',
  'output_limit',
  'path_outside',
  'rate_limited',
  'no_progress',
  'unknown_effect',
  'needs_auth',
  'invalid_output',
  'tool_error',
] as const
export const failureReason = z.enum(FAILURE_REASONS)
export type FailureReason = z.infer<typeof failureReason>

/** Why a prompt ended. */
export const END_REASONS = [
  'completed',
  'cancelled',
  'interrupted',
  'max_turns',
  'budget',
  'loop',
  'length',
  'refusal',
  'error',
] as const
export const endReason = z.enum(END_REASONS)
export type EndReason = z.infer<typeof endReason>

export const stopReason = z.enum(['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled'])
/** ACP's stop reasons. */
export type StopReason = z.infer<typeof stopReason>

/** Ours → ACP's. */
export const STOP_REASON_OF: Record<EndReason, StopReason> = {
  completed: 'end_turn',
  cancelled: 'cancelled',
  interrupted: 'cancelled',
  max_turns: 'max_turn_requests',
  budget: 'max_turn_requests',
  loop: 'max_turn_requests',
  length: 'max_tokens',
  refusal: 'refusal',
  error: 'end_turn',
}

export const MODES = ['manual', 'auto-edit', 'yolo'] as const
export const mode = z.enum(MODES)
/** `manual`: reads run, the rest asks. `auto-edit`: file edits run too. `yolo`: everything runs that no rule denies. */
export type Mode = z.infer<typeof mode>

export const toolKind = z.enum([
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'execute',
  'think',
  'fetch',
  'switch_mode',
  'other',
])
export type ToolKind = z.infer<typeof toolKind>

export const callStatus = z.enum(['pending', 'in_progress', 'completed', 'failed'])
export type CallStatus = z.infer<typeof callStatus>

export const exitInfo = z.union([z.object({ code: z.number().int() }), z.object({ signal: z.string() })])
export type ExitInfo = z.infer<typeof exitInfo>

// ── What ACP has no kind for ────────────────────────────────────────────────────────────────────────────

export const permissionOption = z.object({
  optionId: z.string(),
  name: z.string(),
  kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']),
  /** What this answer makes Sandlot remember, exactly. */
  remembers: remembered.optional(),
})
export type PermissionOption = z.infer<typeof permissionOption>

/** Carried by a `session_info_update` without title. Foreign clients ignore it. */
export const sandlotEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('prompt_started'),
    requestId: z.string().optional(),
    model: z.string().optional(),
    /** Nobody can answer an approval of this prompt, so it is denied at once; also after a restart. */
    unattended: z.boolean().optional(),
    /** What a failed call means for this prompt; absent: `continue`. */
    onError: z.enum(['continue', 'stop']).optional(),
  }),
  /** The prompt was begun by an earlier process and is taken up, for the n-th time. Stored before anything else is done. */
  z.object({ type: z.literal('prompt_resumed'), times: z.number().int().positive() }),
  /** Every call of the turn has its outcome. `callIds` in the model's order. */
  z.object({ type: z.literal('turn_ended'), callIds: z.array(z.string()) }),
  /** The text shown live under this id was the first part of an answer that broke off; it is asked again. */
  z.object({ type: z.literal('message_withdrawn'), messageId: z.string(), why: z.string() }),
  z.object({
    type: z.literal('approval_asked'),
    toolCallId: z.string(),
    options: z.array(permissionOption),
    expiresAt: z.number(),
    /** The call asks the user for something, not for leave to run. */
    question: question.optional(),
    /** Why this call asks: its parts that made it so, the rules that decided. Absent in logs of before. */
    why: z.array(ruleReason).optional(),
  }),
  z.object({
    type: z.literal('approval_answered'),
    toolCallId: z.string(),
    /** Absent when nobody answered: expired, cancelled, or nobody could. */
    optionId: z.string().optional(),
    allowed: z.boolean(),
    /** Who or what answered: `user`, `rule` (remembered with another answer), `expiry`, `cancel`, `unattended`. */
    by: z.string(),
    /** What the person told the model. */
    reason: z.string().optional(),
    /** What the person filled in, of a question. */
    content: questionContent.optional(),
  }),
  z.object({
    type: z.literal('message_queued'),
    messageId: z.string(),
    text: z.string(),
    /** `steer`: joins the running prompt before its next request. `queue`: becomes a prompt of its own. */
    as: z.enum(['steer', 'queue']),
    /** As of `prompt_started`, should it become a prompt of its own. */
    unattended: z.boolean().optional(),
  }),
  z.object({
    type: z.literal('message_unqueued'),
    messageId: z.string(),
    why: z.enum(['sent', 'withdrawn']),
  }),
  /** A person stopped the running prompt. Its end follows, also after a restart. */
  z.object({ type: z.literal('stop_asked') }),
  /** What people have told the agent beside the conversation, from here on; empty: nothing any more. */
  z.object({ type: z.literal('instructions'), text: z.string() }),
  /** From here on the model reads less; what it was stays in the log. */
  z.object({
    type: z.literal('compacted'),
    /** Stands for everything up to `upTo`. Empty: nothing was summarised, only old results were left out. */
    summary: z.string(),
    /** Number of the last event that the summary stands for; 0 without one. */
    upTo: z.number(),
    /** Number of the last event whose call's result is left out. */
    prunedUpTo: z.number().optional(),
    /** `window`: the next request would have come near the window; `overflow`: the provider said that it was over it. */
    why: z.enum(['window', 'overflow']).optional(),
  }),
  /** This prompt goes on with another model. */
  z.object({ type: z.literal('model_changed'), model: z.string(), why: z.string().optional() }),
  /** The provider refused the history; from here on it is sent in its plainest form. */
  z.object({ type: z.literal('history_mended'), why: z.string() }),
  /** A command that this call left running in the background has ended. */
  z.object({
    type: z.literal('background_ended'),
    toolCallId: z.string(),
    /** What the model reads about it; absent when a result has told it already. */
    text: z.string().optional(),
    exit: exitInfo.optional(),
    /** Why it did not come to its own end. */
    reason: failureReason.optional(),
  }),
  z.object({ type: z.literal('gap'), after: z.number(), until: z.number() }),
  /** The end of a prompt. The JSON-RPC answer only repeats it. */
  z.object({
    type: z.literal('prompt_ended'),
    stopReason,
    reason: endReason,
    /** What the user reads when the model said nothing. */
    text: z.string().optional(),
  }),
])
export type SandlotEvent = z.infer<typeof sandlotEvent>

// ── _meta.sandlot ───────────────────────────────────────────────────────────────────────────────────────

/** A piece of a call's live output. Offsets are raw bytes of the output; `data` is their text. */
export const outputPiece = z.object({
  offset: z.number().int().nonnegative(),
  end: z.number().int().nonnegative(),
  data: z.string(),
})
export type OutputPiece = z.infer<typeof outputPiece>

/** What a call produced in all, on its settled outcome. */
export const outputInfo = z.object({
  bytes: z.number().int().nonnegative(),
  lines: z.number().int().nonnegative(),
  /** The text in the event (and what the model saw) is not all of it. */
  truncated: z.boolean(),
  /** Path in the sandbox of a copy that the ordinary tools can read. */
  file: z.string().optional(),
  /** Path on the service of the full output: `/api/sessions/:session/outputs/:call`. */
  url: z.string(),
})
export type OutputInfo = z.infer<typeof outputInfo>

/** Tokens as the provider counted them. Unknown = absent. */
export const tokenUsage = z.object({
  input: z.number().optional(),
  output: z.number().optional(),
  cached: z.number().optional(),
  reasoning: z.number().optional(),
})
export type TokenUsage = z.infer<typeof tokenUsage>

/** What only the model's provider understands, kept so that the next request is the same after a restart. */
export const forProvider = z.object({
  /** On the first settled event of a turn: fields to send back with the answer (reasoning, signatures). */
  answer: z.record(z.string(), z.unknown()).optional(),
  /** On `tool_call`: fields to send back with the call. */
  call: z.record(z.string(), z.unknown()).optional(),
  /** On `tool_call`: why its arguments must not be executed. */
  invalid: z.enum(['truncated', 'malformed', 'not_object']).optional(),
})

/** Which request an answer was given to, so that a replay can prove that it makes the same one. */
export const requestMark = z.object({
  /** Number of the last event that the request was made from. */
  upTo: z.number().int().nonnegative(),
  /** SHA-256 of its system prompt, tools and wire options, stored once under this name. */
  frame: z.string(),
  /** SHA-256 of its body. */
  body: z.string(),
  /** So many of its messages are those of the marked request before; `digests` are of the others, shortened. */
  from: z.number().int().nonnegative(),
  digests: z.array(z.string()),
})
export type RequestMark = z.infer<typeof requestMark>

export const sandlotMeta = z.object({
  v: z.literal(1),
  /** Dense per session from 1; assigned by the store. */
  seq: z.number().int().positive().optional(),
  /** Epoch milliseconds. */
  at: z.number(),
  promptId: z.string().optional(),
  /** From 1 within the prompt. */
  turn: z.number().int().positive().optional(),
  /** On the settled `in_progress` update: which attempt, and the boot it goes to. Logged before START. */
  attempt: z.object({ n: z.number().int().positive(), boot: z.string() }).optional(),
  live: z.literal(true).optional(),
  /** Of a live text: UTF-16 code units into the message. */
  offset: z.number().int().nonnegative().optional(),
  output: outputPiece.optional(),
  outputInfo: outputInfo.optional(),
  exit: exitInfo.optional(),
  /** Why a call failed; only with status `failed`. */
  reason: failureReason.optional(),
  /** A running call's own words about what it is doing. */
  progress: z
    .object({ message: z.string(), done: z.number().optional(), total: z.number().optional() })
    .optional(),
  /** Milliseconds a call waited (approval, queue) and ran. */
  timing: z
    .object({
      waitMs: z.number(),
      runMs: z.number(),
      /** Answered from the cache. */
      cached: z.boolean().optional(),
      /** How often it was tried again. */
      retries: z.int().optional(),
    })
    .optional(),
  usage: tokenUsage.optional(),
  /** On `usage_update`: the model that counted. */
  model: z.string().optional(),
  /** On `usage_update`: US dollars of this one answer; absent where no price is known. */
  cost: z.number().optional(),
  /** On an outcome that failed: its tool says that the prompt cannot go on without it. */
  fatal: z.literal(true).optional(),
  forProvider: forProvider.optional(),
  /** On the first settled event of an answer. */
  request: requestMark.optional(),
  event: sandlotEvent.optional(),
})
export type SandlotMeta = z.infer<typeof sandlotMeta>

const meta = z.looseObject({ sandlot: sandlotMeta })

// ── The kinds we emit ───────────────────────────────────────────────────────────────────────────────────

export const contentBlock = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({
    type: z.literal('resource_link'),
    uri: z.string(),
    name: z.string(),
    mimeType: z.string().optional(),
    size: z.number().optional(),
  }),
  z.object({ type: z.literal('image'), data: z.string(), mimeType: z.string() }),
])
export type ContentBlock = z.infer<typeof contentBlock>

export const toolCallContent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('content'), content: contentBlock }),
  z.object({ type: z.literal('diff'), path: z.string(), oldText: z.string().nullish(), newText: z.string() }),
])
export type ToolCallContent = z.infer<typeof toolCallContent>

export const toolLocation = z.object({ path: z.string(), line: z.number().optional() })
export type ToolLocation = z.infer<typeof toolLocation>

/** What the model and the screen get of an outcome. `forModel` is the text of the model's tool message. */
export const rawOutput = z.object({ forModel: z.string(), data: z.unknown().optional() })
export type RawOutput = z.infer<typeof rawOutput>

export const planEntry = z.object({
  content: z.string(),
  priority: z.enum(['high', 'medium', 'low']),
  status: z.enum(['pending', 'in_progress', 'completed']),
})
export type PlanEntry = z.infer<typeof planEntry>

const chunk = { content: contentBlock, messageId: z.string(), _meta: meta }

export const sessionEvent = z.discriminatedUnion('sessionUpdate', [
  z.object({ sessionUpdate: z.literal('user_message_chunk'), ...chunk }),
  z.object({ sessionUpdate: z.literal('agent_message_chunk'), ...chunk }),
  z.object({ sessionUpdate: z.literal('agent_thought_chunk'), ...chunk }),
  z.object({
    sessionUpdate: z.literal('tool_call'),
    toolCallId: z.string(),
    title: z.string(),
    /** The tool's name as the model knows it. */
    name: z.string(),
    kind: toolKind,
    status: callStatus,
    /** The arguments: an object, or the model's own text where it was not one. */
    rawInput: z.unknown(),
    locations: z.array(toolLocation).optional(),
    content: z.array(toolCallContent).optional(),
    _meta: meta,
  }),
  z.object({
    sessionUpdate: z.literal('tool_call_update'),
    toolCallId: z.string(),
    title: z.string().optional(),
    status: callStatus.optional(),
    content: z.array(toolCallContent).optional(),
    locations: z.array(toolLocation).optional(),
    /** On an outcome, always. */
    rawOutput: rawOutput.optional(),
    _meta: meta,
  }),
  z.object({ sessionUpdate: z.literal('plan'), entries: z.array(planEntry), _meta: meta }),
  z.object({
    sessionUpdate: z.literal('available_commands_update'),
    availableCommands: z.array(z.object({ name: z.string(), description: z.string() })),
    _meta: meta,
  }),
  z.object({ sessionUpdate: z.literal('current_mode_update'), currentModeId: mode, _meta: meta }),
  z.object({
    sessionUpdate: z.literal('session_info_update'),
    title: z.string().nullish(),
    updatedAt: z.string().nullish(),
    _meta: meta,
  }),
  z.object({
    sessionUpdate: z.literal('usage_update'),
    used: z.number(),
    size: z.number(),
    cost: z.object({ amount: z.number(), currency: z.string() }).optional(),
    _meta: meta,
  }),
])

/** One event of a session, live or settled. */
export type SessionEvent = z.infer<typeof sessionEvent>
export type EventKind = SessionEvent['sessionUpdate']
export type EventOf<K extends EventKind> = Extract<SessionEvent, { sessionUpdate: K }>

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────

export function metaOf(event: SessionEvent): SandlotMeta {
  return event._meta.sandlot
}

export function isLive(event: SessionEvent): boolean {
  return event._meta.sandlot.live === true
}

/** The event's number, or undefined for a live or not yet stored one. */
export function seqOf(event: SessionEvent): number | undefined {
  return event._meta.sandlot.seq
}

/** The text of a chunk whose content is text, else the empty string. */
export function textOf(
  event: EventOf<'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'>,
): string {
  return event.content.type === 'text' ? event.content.text : ''
}

/** The settled update that ends a call. */
export type OutcomeEvent = EventOf<'tool_call_update'> & { status: 'completed' | 'failed' }

/** True for the settled update that ends a call. */
export function isOutcome(event: SessionEvent): event is OutcomeEvent {
  return (
    event.sessionUpdate === 'tool_call_update' &&
    !isLive(event) &&
    (event.status === 'completed' || event.status === 'failed')
  )
}

/** The Sandlot event that a `session_info_update` carries, if any. */
export function sandlotEventOf(event: SessionEvent): SandlotEvent | undefined {
  return event._meta.sandlot.event
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────

/** What a producer knows about an event; `v` and `at` are added by `sandlotMetaOf`. */
export type MetaFields = Omit<SandlotMeta, 'v' | 'at' | 'seq'>

/** The `_meta` of a new event. */
export function makeMeta(fields: MetaFields, at: number): { sandlot: SandlotMeta } {
  return { sandlot: { v: 1, at, ...fields } }
}

/** An event that ACP has no kind for. */
export function makeSandlotEvent(
  event: SandlotEvent,
  fields: MetaFields,
  at: number,
): EventOf<'session_info_update'> {
  return { sessionUpdate: 'session_info_update', _meta: makeMeta({ ...fields, event }, at) }
}
