/** What happens in a session and ACP has no kind for. */
import { z } from 'zod'
import { exitInfo } from './call.ts'
import { filesChanged } from './file-changes.ts'
import { messageImage } from './images.ts'
import { mode } from './mode.ts'
import { queueWait } from './queue-wait.ts'
import { question, questionContent } from './question.ts'
import {
  endReason,
  errorCause,
  failureReason,
  internalCause,
  modelErrorClass,
  stopReason,
} from './reasons.ts'
import { remembered, ruleReason } from './rules.ts'
import { author } from './shares.ts'

export const permissionOption = z.object({
  optionId: z.string(),
  name: z.string(),
  kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']),
  /** What this answer makes Sandlot remember, exactly. */
  remembers: remembered.optional(),
})
export type PermissionOption = z.infer<typeof permissionOption>

/**
 * What a failed call means for its prompt: the model reads it and goes on, or the prompt ends.
 */
export const onError = z.enum(['continue', 'stop'])
export type OnError = z.infer<typeof onError>

/** Of a prompt: the id of another, or null for none. */
export const follows = z.string().min(1).max(128).nullable()

/** Why a queued message waits no more: a prompt took it, or its person took it back. */
export const unqueuedWhy = z.enum(['sent', 'withdrawn'])

/** A message that is no message to the model, but something to do. */
const command = z.object({
  name: z.literal('compact'),
  /** What the summary must not lose, in the user's words. */
  focus: z.string().optional(),
})
export type Command = z.infer<typeof command>

/** Of a message that is not the owner's. */
const onBehalf = {
  /** The highest mode that its prompt runs in. Absent: as the chat's mode says. */
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
    /** What a failed call means for this prompt; absent: `continue`. */
    onError: onError.optional(),
    /** The prompt's message is this command. */
    command: command.optional(),
    /** The prompt that it follows, null: none; absent: the one before it in the log. */
    follows: follows.optional(),
    ...onBehalf,
  }),
  /**
   * The prompt was begun by an earlier process and is taken up, for the n-th time. Stored before
   * anything else is done.
   */
  z.object({ type: z.literal('prompt_resumed'), times: z.number().int().positive() }),
  /** Every call of the turn has its outcome. `callIds` in the model's order. */
  z.object({ type: z.literal('turn_ended'), callIds: z.array(z.string()) }),
  /**
   * The text shown live under this id was the first part of an answer that broke off; the model
   * never reads it.
   */
  z.object({
    type: z.literal('message_withdrawn'),
    messageId: z.string(),
    why: z.string(),
    /**
     * What people had read of it, which stays on the screen. Absent where nothing was shown or a
     * crash lost it.
     */
    shown: z.object({ role: z.enum(['assistant', 'thought']), text: z.string() }).optional(),
  }),
  /** Only live: a request to the model failed and is made again. */
  z.object({
    type: z.literal('model_waited'),
    why: modelErrorClass,
    /** Milliseconds from the event's time until the next request. */
    waitMs: z.number().nonnegative(),
    /** Which retry that is, from 1, and the most there are. */
    retry: z.number().int().positive(),
    of: z.number().int().positive(),
  }),
  /** Only live: the prompt waits for its turn, or with place 0 goes on. */
  queueWait.extend({ type: z.literal('line_waited') }),
  /**
   * Only live: a call that the model is writing. Nothing of it runs before it is announced as a
   * `tool_call`.
   */
  z.object({
    type: z.literal('call_drafted'),
    /** The message that it is a part of: withdrawn with it. */
    messageId: z.string(),
    /** Which of the message's calls, from 0. */
    place: z.number().int().nonnegative(),
    /** The tool's name as the model knows it. */
    name: z.string(),
    /** Characters of arguments so far. */
    chars: z.number().int().nonnegative(),
    /** The arguments so far, the model's own text; of long ones the beginning and the end. */
    text: z.string(),
  }),
  z.object({
    type: z.literal('approval_asked'),
    toolCallId: z.string(),
    options: z.array(permissionOption),
    expiresAt: z.number(),
    /** The call asks the user for something, not for approval to run. */
    question: question.optional(),
    /**
     * Why this call asks: its parts that made it so, the rules that decided. Absent in logs of
     * before.
     */
    why: z.array(ruleReason).optional(),
    /**
     * Paths of the call from which symbolic links lead elsewhere in the workspace: the answer is
     * about where they led then.
     */
    links: z.array(z.object({ path: z.string(), leadsTo: z.string() })).optional(),
  }),
  z.object({
    type: z.literal('approval_answered'),
    toolCallId: z.string(),
    /** Absent without an answer: expired, cancelled, or unattended. */
    optionId: z.string().optional(),
    allowed: z.boolean(),
    /**
     * Who or what answered: `user`, `rule` (remembered with another answer), `expiry`, `cancel`,
     * `unattended`.
     */
    by: z.string(),
    /** What the person told the model. */
    reason: z.string().optional(),
    /** What the person filled in, of a question. */
    content: questionContent.optional(),
    /** The call's arguments as the person changed them: with these it runs. */
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
    /** As of `prompt_started`, should it become a prompt of its own. */
    unattended: z.boolean().optional(),
    onError: onError.optional(),
    ...onBehalf,
  }),
  z.object({
    type: z.literal('message_unqueued'),
    messageId: z.string(),
    why: unqueuedWhy,
  }),
  /** A person stopped the running prompt. Its end follows, also after a restart. */
  z.object({ type: z.literal('stop_asked') }),
  /**
   * What people have told the agent beside the conversation, from here on; empty: nothing any more.
   */
  z.object({ type: z.literal('instructions'), text: z.string() }),
  /** From here on the model reads less; what it was stays in the log. */
  z.object({
    type: z.literal('compacted'),
    /**
     * Stands for everything up to `upTo`. Empty: nothing was summarised, only old results were left
     * out.
     */
    summary: z.string(),
    /** Number of the last event that the summary stands for; 0 without one. */
    upTo: z.number(),
    /** Number of the last event whose call's result is left out. */
    prunedUpTo: z.number().optional(),
    /**
     * `window`: the next request would have come near the window; `overflow`: the provider said
     * that it was over it; `asked`: `/compact`.
     */
    why: z.enum(['window', 'overflow', 'asked']).optional(),
  }),
  /** What the session's prompts ask from the next one on. `thoughtLevel` as of `prompt_started`. */
  z.object({ type: z.literal('model_chosen'), model: z.string(), thoughtLevel: z.string().optional() }),
  /** This prompt goes on with another model. */
  z.object({ type: z.literal('model_changed'), model: z.string(), why: z.string().optional() }),
  /** More tools than a request may have: some of these servers are left out from here on. */
  z.object({ type: z.literal('tools_left_out'), servers: z.array(z.string()) }),
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
  /** For people; the model never reads it. `mentions`: user ids. */
  z.object({
    type: z.literal('comment'),
    commentId: z.string(),
    text: z.string(),
    mentions: z.array(z.string()),
  }),
  /**
   * Only live: the ports on which something listens in the owner's sandbox, while background
   * commands of this chat run.
   */
  z.object({ type: z.literal('ports_open'), ports: z.array(z.number().int()) }),
  /** Only live: who sees a shared chat now, and who is writing. */
  z.object({
    type: z.literal('presence'),
    people: z.array(author.extend({ typing: z.boolean().optional() })),
  }),
  /** What changed in the workspace since the prompt's first call that could change something. */
  filesChanged.extend({ type: z.literal('files_changed') }),
  z.object({ type: z.literal('gap'), after: z.number(), until: z.number() }),
  /** The end of a prompt. The JSON-RPC answer only repeats it. */
  z.object({
    type: z.literal('prompt_ended'),
    stopReason,
    reason: endReason,
    /** What the user reads when the model said nothing. */
    text: z.string().optional(),
    /** With `error`. Absent in logs of before. */
    cause: errorCause.optional(),
    /** With `internal`. */
    internal: internalCause.optional().catch(undefined),
    /** The provider's own name for the request that failed last: what its support asks for. */
    requestId: z.string().optional(),
    /** What became of the command that the prompt was. */
    command: z.object({ name: z.literal('compact'), did: z.enum(['done', 'nothing', 'failed']) }).optional(),
  }),
])
export type SandlotEvent = z.infer<typeof sandlotEvent>
