/** Why calls fail and why prompts end: closed lists, because people and programs act on each. */
import { z } from 'zod'

/** Why a call failed. A command that ran to its end is `completed`, whatever its exit code. */
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
 * Reasons that the version before cannot read, each with one that it can. An event has both
 * (`failureFields`), since the two versions read the same logs while one is rolled out. A reason
 * leaves this table one version later.
 */
const REASON_BEFORE: Partial<Record<FailureReason, FailureReason>> = { schema_too_slow: 'unavailable' }

/** The members of an event's `_meta` that say why its call failed. */
export function failureFields(reason: FailureReason): { reason: FailureReason; newReason?: FailureReason } {
  const before = REASON_BEFORE[reason]
  return before === undefined ? { reason } : { reason: before, newReason: reason }
}

/** Why the call of an outcome failed, by its `_meta`. */
export function failureOf(meta: {
  reason?: FailureReason | undefined
  newReason?: FailureReason | undefined
}): FailureReason | undefined {
  return meta.newReason ?? meta.reason
}

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

/**
 * Whether a prompt that ended so has not come to its own end: it failed, or something is left to
 * do. Undefined: it has, or a person stopped it.
 */
export function shortOfItsEnd(reason: EndReason): 'failed' | 'unfinished' | undefined {
  if (reason === 'error' || reason === 'refusal') return 'failed'
  return reason === 'completed' || reason === 'cancelled' ? undefined : 'unfinished'
}

/** What kept a model from answering. */
const MODEL_ERROR_CLASSES = [
  'rate_limit',
  'quota',
  'auth',
  'invalid_request',
  'invalid_history',
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

/** Why a prompt ended with `error`. */
export const errorCause = z.enum([
  ...MODEL_ERROR_CLASSES,
  /** A call failed, and the prompt or its tool asked to stop then. */
  'failed_call',
  /** Resumed as often as it may be. */
  'given_up',
  /** A mistake of our own, or a store that failed. */
  'internal',
])
export type ErrorCause = z.infer<typeof errorCause>

/**
 * What an `internal` end was, where more is known. A later version may have more of them, which an
 * older one reads as absent.
 */
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
