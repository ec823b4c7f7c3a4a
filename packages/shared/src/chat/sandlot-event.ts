/** Session events that ACP has no kind for. */
import { z } from 'zod'
import { exitInfo } from './call.ts'
import { filesChanged } from './file-changes.ts'
import { messageImage } from './images.ts'
import { instructionFile } from './instruction-files.ts'
import { mode } from './mode.ts'
import { queueWait } from './queue-wait.ts'
import { question, questionContent } from './question.ts'
import {
  endReason,
  errorCause,
  failureReason,
  internalCause,
  modelErrorClass,
  setIn,
  stopReason,
} from './reasons.ts'
import { remembered, ruleReason } from './rules.ts'
import { author } from './shares.ts'

export const permissionOption = z.object({
  optionId: z.string(),
  name: z.string(),
  kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']),
  /** The exact rule that this answer creates. */
  remembers: remembered.optional(),
})
export type PermissionOption = z.infer<typeof permissionOption>

/**
 * The effect of a failed call on its prompt: the model reads it and continues, or the prompt ends.
 */
export const onError = z.enum(['continue', 'stop'])
export type OnError = z.infer<typeof onError>

/** The id of the previous prompt, or null for none. */
export const follows = z.string().min(1).max(128).nullable()

/** The end of a queued message: a prompt took it, or its user withdrew it. */
export const unqueuedWhy = z.enum(['sent', 'withdrawn'])

/** A message to Sandlot instead of the model. */
const command = z.object({
  name: z.literal('compact'),
  /** Facts that the summary must contain, in the user's words. */
  focus: z.string().optional(),
})
export type Command = z.infer<typeof command>

/** On a message of a user other than the owner. */
const onBehalf = {
  /** The highest mode of its prompt. Absent: the chat's mode. */
  modeCeiling: mode.optional(),
  /** The user whose limits and usage it counts for. Absent: the chat's owner. */
  chargedTo: z.string().optional(),
}

/** Characters of a call's arguments as a person changed them, as JSON. */
const MAX_INPUT_CHARS = 500_000
/** A call's arguments as a person changed them. */
export const editedInput = z
  .record(z.string(), z.unknown())
  .refine(
    (input) => JSON.stringify(input).length <= MAX_INPUT_CHARS,
    `a changed call may have ${MAX_INPUT_CHARS} characters`,
  )

/** Carried by a `session_info_update` without title. Foreign clients ignore it. */
export const sandlotEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('prompt_started'),
    requestId: z.string().optional(),
    model: z.string().optional(),
    /** The thought level sent to the model; absent: its default. */
    thoughtLevel: z.string().optional(),
    /**
     * No client can answer an approval of this prompt, so it is denied at once; also after a
     * restart.
     */
    unattended: z.boolean().optional(),
    /** The effect of a failed call on this prompt; absent: `continue`. */
    onError: onError.optional(),
    /** The prompt's message is this command. */
    command: command.optional(),
    /** The previous prompt, null: none; absent: the one before it in the log. */
    follows: follows.optional(),
    ...onBehalf,
  }),
  /**
   * A prompt of an earlier process is resumed, for the n-th time. Stored before anything else is
   * done.
   */
  z.object({ type: z.literal('prompt_resumed'), times: z.number().int().positive() }),
  /** Every call of the turn has its outcome. `callIds` in the model's order. */
  z.object({ type: z.literal('turn_ended'), callIds: z.array(z.string()) }),
  /**
   * The text shown live under this id was the start of an interrupted answer; the model never reads
   * it.
   */
  z.object({
    type: z.literal('message_withdrawn'),
    messageId: z.string(),
    why: z.string(),
    /**
     * The part that users had read, which stays on the screen. Absent if nothing was shown or a
     * crash lost it.
     */
    shown: z.object({ role: z.enum(['assistant', 'thought']), text: z.string() }).optional(),
  }),
  /** Only live: a request to the model failed and is retried. */
  z.object({
    type: z.literal('model_waited'),
    why: modelErrorClass,
    /** Milliseconds from the event's time until the next request. */
    waitMs: z.number().nonnegative(),
    /** The number of this retry, from 1, and the maximum. */
    retry: z.number().int().positive(),
    of: z.number().int().positive(),
  }),
  /** Only live: the prompt is queued, or with position 0 starts. */
  queueWait.extend({ type: z.literal('line_waited') }),
  /** Only live: a call that the model is writing. It runs only after its `tool_call`. */
  z.object({
    type: z.literal('call_drafted'),
    /** Its message: withdrawn together. */
    messageId: z.string(),
    /** Index among the message's calls, from 0. */
    place: z.number().int().nonnegative(),
    /** The tool's name as the model knows it. */
    name: z.string(),
    /** Characters of arguments so far. */
    chars: z.number().int().nonnegative(),
    /** The arguments so far, in the model's own text; of long ones the beginning and the end. */
    text: z.string(),
  }),
  z.object({
    type: z.literal('approval_asked'),
    toolCallId: z.string(),
    options: z.array(permissionOption),
    expiresAt: z.number(),
    /** The call asks the user a question, not for approval to run. */
    question: question.optional(),
    /** The reasons to ask: parts of the call, and the deciding rules. Absent in older logs. */
    why: z.array(ruleReason).optional(),
    /**
     * Paths in the call that symbolic links redirect within the workspace: the answer applies to
     * the targets at that time.
     */
    links: z.array(z.object({ path: z.string(), leadsTo: z.string() })).optional(),
  }),
  z.object({
    type: z.literal('approval_answered'),
    toolCallId: z.string(),
    /** Absent without an answer: expired, cancelled, or unattended. */
    optionId: z.string().optional(),
    allowed: z.boolean(),
    /** `user`, `rule` (created by another answer), `expiry`, `cancel`, or `unattended`. */
    by: z.string(),
    /** The user's message to the model. */
    reason: z.string().optional(),
    /** The user's answer to a question. */
    content: questionContent.optional(),
    /** The call's arguments as changed by the user: it runs with these. */
    input: editedInput.optional(),
  }),
  z.object({
    type: z.literal('message_queued'),
    messageId: z.string(),
    text: z.string(),
    /**
     * `steer`: joins the running prompt before its next request. `queue`: becomes a prompt of its
     * own.
     */
    as: z.enum(['steer', 'queue']),
    images: z.array(messageImage).optional(),
    /** See `prompt_started`, in case it becomes a prompt of its own. */
    unattended: z.boolean().optional(),
    onError: onError.optional(),
    ...onBehalf,
  }),
  z.object({
    type: z.literal('message_unqueued'),
    messageId: z.string(),
    why: unqueuedWhy,
  }),
  /** A user stopped the running prompt. Its end follows, also after a restart. */
  z.object({ type: z.literal('stop_asked') }),
  /**
   * Standing instructions to the agent, from here on; empty: none. `files`: those of the workspace
   * in it, the nearest to the chat's folder last. Absent in older logs.
   */
  z.object({
    type: z.literal('instructions'),
    text: z.string(),
    files: z.array(instructionFile).optional(),
  }),
  /** From here on the model reads a shorter history; the log keeps the original. */
  z.object({
    type: z.literal('compacted'),
    /**
     * Replaces everything up to `upTo`. Empty: nothing was summarised, only old results were
     * dropped.
     */
    summary: z.string(),
    /** Number of the last summarised event; 0 without a summary. */
    upTo: z.number(),
    /** Number of the last event with a dropped call result. */
    prunedUpTo: z.number().optional(),
    /**
     * `window`: the next request would have come near the window; `overflow`: the provider reported
     * an overflow; `asked`: `/compact`.
     */
    why: z.enum(['window', 'overflow', 'asked']).optional(),
  }),
  /**
   * The model of the session's prompts from the next one on. `thoughtLevel` as of `prompt_started`.
   */
  z.object({ type: z.literal('model_chosen'), model: z.string(), thoughtLevel: z.string().optional() }),
  /** This prompt continues with another model. */
  z.object({ type: z.literal('model_changed'), model: z.string(), why: z.string().optional() }),
  /**
   * The model holds less than was taken for its window: it counted no more (`counted`), or refused
   * a request and named its limit (`refused`). `tokens`: its window from here on.
   */
  z.object({
    type: z.literal('window_learnt'),
    model: z.string(),
    tokens: z.number(),
    why: z.enum(['counted', 'refused']),
  }),
  /** More tools than a request may have: some of these servers' tools are dropped from here on. */
  z.object({ type: z.literal('tools_left_out'), servers: z.array(z.string()) }),
  /**
   * The provider refused the history; from here on it is sent in its plainest form. `origin`: it
   * refused only the reasoning of this origin, which is left out from here on.
   */
  z.object({ type: z.literal('history_mended'), why: z.string(), origin: z.string().optional() }),
  /** A background command of this call has ended. */
  z.object({
    type: z.literal('background_ended'),
    toolCallId: z.string(),
    /** The model's text about it; absent if a result already contained it. */
    text: z.string().optional(),
    exit: exitInfo.optional(),
    /** The reason why it did not exit by itself. */
    reason: failureReason.optional(),
  }),
  /** For people; the model never reads it. `mentions`: user ids. */
  z.object({
    type: z.literal('comment'),
    commentId: z.string(),
    text: z.string(),
    mentions: z.array(z.string()),
  }),
  /**
   * Only live: listening ports in the owner's sandbox, while background commands of this chat run.
   */
  z.object({ type: z.literal('ports_open'), ports: z.array(z.number().int()) }),
  /** Only live: current viewers of a shared chat, and who is typing. */
  z.object({
    type: z.literal('presence'),
    people: z.array(author.extend({ typing: z.boolean().optional() })),
  }),
  /** Workspace changes since the prompt's first call that could change something. */
  filesChanged.extend({ type: z.literal('files_changed') }),
  z.object({ type: z.literal('gap'), after: z.number(), until: z.number() }),
  /** The end of a prompt. The JSON-RPC answer only repeats it. */
  z.object({
    type: z.literal('prompt_ended'),
    stopReason,
    reason: endReason,
    /** Shown to the user when the model wrote nothing. */
    text: z.string().optional(),
    /** With `error`. Absent in older logs. */
    cause: errorCause.optional(),
    /** The place of the setting that may have caused the error. */
    setIn: setIn.optional().catch(undefined),
    /** With `internal`. */
    internal: internalCause.optional().catch(undefined),
    /** The provider's own id of the last failed request: its support asks for it. */
    requestId: z.string().optional(),
    /** The result of the command. */
    command: z.object({ name: z.literal('compact'), did: z.enum(['done', 'nothing', 'failed']) }).optional(),
  }),
])
export type SandlotEvent = z.infer<typeof sandlotEvent>
