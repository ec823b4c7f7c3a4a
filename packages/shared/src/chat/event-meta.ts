/** Private data of Sandlot on an event: `_meta.sandlot`. */
import { z } from 'zod'
import { exitInfo, outputInfo, outputPiece } from './call.ts'
import { failureReason } from './reasons.ts'
import { sandlotEvent } from './sandlot-event.ts'
import { author } from './shares.ts'

/** Tokens as counted by the provider. Absent: unknown. */
export const tokenUsage = z.object({
  input: z.number().optional(),
  output: z.number().optional(),
  /** Part of the input: read from the provider's cache. */
  cached: z.number().optional(),
  /** Part of the input: written to the cache. */
  cacheWritten: z.number().optional(),
  /** Part of `cacheWritten`: kept for an hour instead of minutes. */
  cacheWrittenHour: z.number().optional(),
  reasoning: z.number().optional(),
})
export type TokenUsage = z.infer<typeof tokenUsage>

/**
 * Source of a context window: the configuration, the server about what it has loaded, a published
 * table, requests that did not fit, or none.
 */
const windowFrom = z.enum(['set', 'server', 'table', 'learnt', 'assumed'])
export type WindowFrom = z.infer<typeof windowFrom>

const replayItem = z.object({
  chars: z.int().nonnegative().optional(),
  call: z.int().nonnegative().optional(),
  raw: z.record(z.string(), z.unknown()).optional(),
})

const REPLAY = 'replay:'

/**
 * The id, among the session's stored outputs, of what a provider wants back with an answer, by its
 * digest.
 */
export function replayId(digest: string): string {
  return `${REPLAY}${digest}`
}

/** True for what only the model's provider may see. */
export function isReplayId(outputId: string): boolean {
  return outputId.startsWith(REPLAY)
}

/**
 * Data for the model's provider only, stored so that the next request is the same after a restart.
 */
const forProvider = z.object({
  /**
   * On the first settled event of a turn: the items of the answer, for the wire and the origin that
   * made it. Text and calls are in the events of the turn; an item refers to them.
   */
  replay: z
    .object({
      wire: z.string(),
      origin: z.string().optional(),
      /** Absent: they are the JSON of the stored output of this id. */
      items: z.array(replayItem).optional(),
      output: z.string().optional(),
    })
    .optional(),
  /** The same in logs of before: the members to send back with a Chat Completions message. */
  answer: z.record(z.string(), z.unknown()).optional(),
  /** On `tool_call`: fields to send back with the call. */
  call: z.record(z.string(), z.unknown()).optional(),
  /** On `tool_call`: why its arguments must not be executed. */
  invalid: z.enum(['truncated', 'malformed', 'not_object']).optional(),
  /**
   * On `tool_call`: the names of arguments that the model wrote instead of the true ones, by the
   * path of the true name (`edits.0.old_text`).
   */
  names: z.record(z.string(), z.string()).optional(),
})

/** Waiting times of a prompt, in milliseconds. After a restart: measured since. */
const promptTiming = z.object({
  /**
   * From the prompt's first answered request to the first piece of that answer. Absent: none was.
   */
  firstTokenMs: z.number().optional(),
  /**
   * From the last outcome of a turn to the next request: the maximum of all turns. Absent: there
   * was none.
   */
  continuationMs: z.number().optional(),
})
export type PromptTiming = z.infer<typeof promptTiming>

const KINDS: ReadonlySet<unknown> = new Set(
  sandlotEvent.options.flatMap(({ shape }) => [...shape.type.values]),
)

/**
 * A kind that a later version has added counts as none: during a rolling update both versions read
 * the same logs.
 */
function knownEvent(event: unknown): unknown {
  const type = typeof event === 'object' && event !== null && 'type' in event ? event.type : undefined
  return typeof type === 'string' && !KINDS.has(type) ? undefined : event
}

export const sandlotMeta = z.object({
  v: z.literal(1),
  /** Dense per session from 1; assigned by the store. */
  seq: z.number().int().positive().optional(),
  /** Epoch milliseconds. */
  at: z.number(),
  promptId: z.string().optional(),
  /** The author of the message, comment, answer or stop. Absent: the chat's owner. */
  author: author.optional(),
  /** From 1 within the prompt. */
  turn: z.number().int().positive().optional(),
  /** On the settled `in_progress` update: the attempt and its boot. Logged before START. */
  attempt: z.object({ n: z.number().int().positive(), boot: z.string() }).optional(),
  live: z.literal(true).optional(),
  /** UTF-16 code units into the message, of a live text. */
  offset: z.number().int().nonnegative().optional(),
  output: outputPiece.optional(),
  outputInfo: outputInfo.optional(),
  exit: exitInfo.optional(),
  /**
   * The reason of a failure; only with status `failed`. Read with `failureOf`. A reason of a later
   * version counts as an error of the tool.
   */
  reason: failureReason.catch('tool_error').optional(),
  /** The same, if the previous version does not know the reason. */
  newReason: failureReason.optional().catch(undefined),
  /** A running call's own progress text. */
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
      /** Number of retries. */
      retries: z.int().optional(),
    })
    .optional(),
  usage: tokenUsage.optional(),
  /** On `usage_update`: the model that counted. */
  model: z.string().optional(),
  /** On `usage_update`: the source of its `size`. */
  windowFrom: windowFrom.optional().catch(undefined),
  /** On `usage_update`: US dollars of this answer; absent if no price is known. */
  cost: z.number().optional(),
  /** On a failed outcome: the tool says that the prompt cannot continue. */
  fatal: z.literal(true).optional(),
  forProvider: forProvider.optional(),
  /** On the first settled event of an answer: SHA-256 of its request’s body as sent. */
  requestDigest: z.string().optional(),
  /**
   * The same, in logs of the previous version, which refuses an event if a member of it is missing:
   * kept whole.
   */
  request: z.looseObject({ body: z.string() }).optional().catch(undefined),
  /** On `prompt_ended`, if measured. */
  promptTiming: promptTiming.optional(),
  event: z.preprocess(knownEvent, sandlotEvent.optional()).optional(),
})
export type SandlotMeta = z.infer<typeof sandlotMeta>

/** A producer's facts about an event; `makeMeta` adds `v` and `at`. */
export type MetaFields = Omit<SandlotMeta, 'v' | 'at' | 'seq'>

/** The `_meta` of a new event. */
export function makeMeta(fields: MetaFields, at: number): { sandlot: SandlotMeta } {
  return { sandlot: { v: 1, at, ...fields } }
}
