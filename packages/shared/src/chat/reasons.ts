/**
 * Reasons of failed calls and ended prompts: closed lists, because people and programs act on each.
 */
import { z } from 'zod'

/**
 * Reasons of a failed call. A command that ran to its end is `completed`, whatever its exit code.
 */
const FAILURE_REASONS = [
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
  'schema_too_slow',
  'tool_error',
] as const
export const failureReason = z.enum(FAILURE_REASONS)
export type FailureReason = z.infer<typeof failureReason>

/**
 * Reasons that the previous version cannot read, each with one that it can. An event has both
 * (`failureFields`), since both versions read the same logs during a rolling update. A reason
 * leaves this table one version later.
 */
const REASON_BEFORE: Partial<Record<FailureReason, FailureReason>> = { schema_too_slow: 'unavailable' }

/** The members of an event's `_meta` with the reason of its failure. */
export function failureFields(reason: FailureReason): { reason: FailureReason; newReason?: FailureReason } {
  const before = REASON_BEFORE[reason]
  return before === undefined ? { reason } : { reason: before, newReason: reason }
}

/** The reason of a failed outcome, by its `_meta`. */
export function failureOf(meta: {
  reason?: FailureReason | undefined
  newReason?: FailureReason | undefined
}): FailureReason | undefined {
  return meta.newReason ?? meta.reason
}

/** Reasons for the end of a prompt. */
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

/**
 * The kind of an incomplete end: it failed, or work remains. Undefined: it is complete, or a user
 * stopped it.
 */
export function shortOfItsEnd(reason: EndReason): 'failed' | 'unfinished' | undefined {
  if (reason === 'error' || reason === 'refusal') return 'failed'
  return reason === 'completed' || reason === 'cancelled' ? undefined : 'unfinished'
}

/** Classes of model errors. */
const MODEL_ERROR_CLASSES = [
  'rate_limit',
  'quota',
  'auth',
  'invalid_request',
  'invalid_history',
  /** The reasoning of earlier answers, which it wanted back. */
  'replay_refused',
  'context_overflow',
  'request_too_large',
  'content_filter',
  'overloaded',
  'server_error',
  'provider_error',
  'timeout',
  'stream_interrupted',
  'protocol',
  'malformed_tool_call',
  'tool_use_failed',
  'unreachable',
] as const
export const modelErrorClass = z.enum(MODEL_ERROR_CLASSES)
export type ModelErrorClass = z.infer<typeof modelErrorClass>

/** The place where a model's endpoint is set: the page, or the operator's files and variables. */
export const setIn = z.enum(['page', 'configuration'])
export type SetIn = z.infer<typeof setIn>

/** Causes of an end with `error`. */
export const errorCause = z.enum([
  ...MODEL_ERROR_CLASSES,
  /** A call failed, and the prompt or its tool required a stop in that case. */
  'failed_call',
  /** The limit of resumes was reached. */
  'given_up',
  /** A bug of ours, or a store failure. */
  'internal',
])
export type ErrorCause = z.infer<typeof errorCause>

/** Details of an `internal` end, if known. Older versions read newer members as absent. */
export const internalCause = z.enum([
  /** The store refused an event of the prompt, which is not in the log. */
  'store_failed',
])
export type InternalCause = z.infer<typeof internalCause>

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
