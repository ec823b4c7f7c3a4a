/** Our private data on an event: `_meta.sandlot`. */
import { z } from 'zod'
import { exitInfo, outputInfo, outputPiece } from './call.ts'
import { failureReason } from './reasons.ts'
import { sandlotEvent } from './sandlot-event.ts'
import { author } from './shares.ts'

/** Tokens as the provider counted them. Unknown = absent. */
export const tokenUsage = z.object({
  input: z.number().optional(),
  output: z.number().optional(),
  cached: z.number().optional(),
  reasoning: z.number().optional(),
})
export type TokenUsage = z.infer<typeof tokenUsage>

/**
 * What only the model's provider understands, kept so that the next request is the same after a
 * restart.
 */
const forProvider = z.object({
  /**
   * On the first settled event of a turn: fields to send back with the answer (reasoning,
   * signatures).
   */
  answer: z.record(z.string(), z.unknown()).optional(),
  /** On `tool_call`: fields to send back with the call. */
  call: z.record(z.string(), z.unknown()).optional(),
  /** On `tool_call`: why its arguments must not be executed. */
  invalid: z.enum(['truncated', 'malformed', 'not_object']).optional(),
})

/**
 * How long a prompt kept people waiting, in milliseconds. After a restart: what was measured since.
 */
const promptTiming = z.object({
  /**
   * From the prompt's first request that was answered to the first piece of that answer. Absent:
   * none was.
   */
  firstTokenMs: z.number().optional(),
  /**
   * From the last outcome of a turn to the next request, of the turn where it took longest. Absent:
   * no turn went on.
   */
  continuationMs: z.number().optional(),
})
export type PromptTiming = z.infer<typeof promptTiming>

const KINDS: ReadonlySet<unknown> = new Set(
  sandlotEvent.options.flatMap(({ shape }) => [...shape.type.values]),
)

/**
 * A kind that a later version has added is none here: while it is rolled out, both read the same
 * logs.
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
  /** Who wrote the message or the comment, answered, or stopped it. Absent: the chat's owner. */
  author: author.optional(),
  /** From 1 within the prompt. */
  turn: z.number().int().positive().optional(),
  /**
   * On the settled `in_progress` update: which attempt, and the boot it goes to. Logged before
   * START.
   */
  attempt: z.object({ n: z.number().int().positive(), boot: z.string() }).optional(),
  live: z.literal(true).optional(),
  /** Of a live text: UTF-16 code units into the message. */
  offset: z.number().int().nonnegative().optional(),
  output: outputPiece.optional(),
  outputInfo: outputInfo.optional(),
  exit: exitInfo.optional(),
  /**
   * Why a call failed; only with status `failed`. Read with `failureOf`. A reason that a later
   * version has added is an error of the tool.
   */
  reason: failureReason.catch('tool_error').optional(),
  /** The same, where the version before does not know the reason. */
  newReason: failureReason.optional().catch(undefined),
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
  /** On the first settled event of an answer: SHA-256 of its request’s body, as it was sent. */
  requestDigest: z.string().optional(),
  /** The same, as the version before wrote it. */
  request: z.object({ body: z.string() }).optional().catch(undefined),
  /** On `prompt_ended`, where it was measured. */
  promptTiming: promptTiming.optional(),
  event: z.preprocess(knownEvent, sandlotEvent.optional()).optional(),
})
export type SandlotMeta = z.infer<typeof sandlotMeta>

/** What a producer knows about an event; `v` and `at` are added by `sandlotMetaOf`. */
export type MetaFields = Omit<SandlotMeta, 'v' | 'at' | 'seq'>

/** The `_meta` of a new event. */
export function makeMeta(fields: MetaFields, at: number): { sandlot: SandlotMeta } {
  return { sandlot: { v: 1, at, ...fields } }
}
