/**
 * Detects calls of a prompt that fail one after another for the same cause. A pure function over
 * the log: the end of a prompt shows it; nothing is stored.
 */
import type { ExitInfo } from '../chat/call.ts'
import { type FailureReason, failureOf } from '../chat/reasons.ts'
import { type SessionEvent, isOutcome, metaOf } from '../chat/events.ts'

/**
 * `missing_file`: of the workspace. `auth`: a sign-in is required, or our credentials were refused.
 */
const FAILURE_CAUSES = ['missing_file', 'denied', 'auth', 'timeout'] as const
type FailureCause = (typeof FAILURE_CAUSES)[number]

export interface FailurePattern {
  cause: FailureCause
  /** In the order of their announcement; at least two. */
  callIds: string[]
}

/** An ended call and its failure. */
interface EndedCall {
  callId: string
  failed: boolean
  reason?: FailureReason | undefined
  exit?: ExitInfo | undefined
  /** The model's text. */
  text: string
}

/** Display text after "the last three calls failed:". */
const CAUSE_WORDS: Record<FailureCause, string> = {
  missing_file: 'a file or folder that is not there',
  denied: 'it was not allowed',
  auth: 'it is not signed in, or the sign-in was refused',
  timeout: 'it took too long',
}

/** The prompt's last calls, if at least two failed in a row for one cause; else undefined. */
export function failurePattern(log: readonly SessionEvent[], promptId: string): FailurePattern | undefined {
  const outcomes = new Map(log.filter(isOutcome).map((event) => [event.toolCallId, event]))
  const ended = log.flatMap((event) => {
    if (event.sessionUpdate !== 'tool_call' || metaOf(event).promptId !== promptId) return []
    const outcome = outcomes.get(event.toolCallId)
    if (outcome === undefined) return []
    const meta = metaOf(outcome)
    const [reason, exit] = [failureOf(meta), meta.exit]
    const text = outcome.rawOutput?.forModel ?? ''
    return [{ callId: event.toolCallId, failed: outcome.status === 'failed', reason, exit, text }]
  })
  return patternOf(ended)
}

/** The same for ended calls, in the order of their announcement. */
export function patternOf(calls: readonly EndedCall[]): FailurePattern | undefined {
  const ended = calls.map((call) => ({ callId: call.callId, cause: causeOf(call) }))
  const cause = ended.at(-1)?.cause
  if (cause === undefined) return undefined
  const from = ended.findLastIndex((one) => one.cause !== cause) + 1
  const callIds = ended.slice(from).map(({ callId }) => callId)
  return callIds.length < 2 ? undefined : { cause, callIds }
}

/** One sentence for people. */
export function patternSentence({ cause, callIds }: FailurePattern): string {
  return `The last ${callIds.length} calls failed for the same reason: ${CAUSE_WORDS[cause]}.`
}

function causeOf({ failed, reason, exit, text }: EndedCall): FailureCause | undefined {
  // A command that ran to its end is completed, whatever its exit code; for the pattern it failed.
  const wentWrong = exit !== undefined && (!('code' in exit) || exit.code !== 0)
  if (!failed && !wentWrong) return undefined
  if (reason === 'denied' || reason === 'timeout') return reason
  if (reason === 'needs_auth') return 'auth'
  if (reason !== undefined && reason !== 'tool_error') return undefined
  if (/\bENOENT\b|no such file or directory|^There is no (?:file|directory) /im.test(text))
    return 'missing_file'
  if (/\b401\b|\bunauthori[sz]ed\b|authentication (?:failed|required)|could not read Username/i.test(text))
    return 'auth'
  return undefined
}
