/** Expected failures of a call, and the one place where anything thrown becomes an outcome. */
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import { SandboxError } from '@sandlot/sandbox/errors'
import { REASON_OF_SANDBOX_ERROR } from './sandbox-reasons.ts'
import type { ToolOutcome } from './tool.ts'
import type { Log } from '../log.ts'

/**
 * The reason of an abort by shutdown: a runner detaches from its work without ending it,
 * nothing is logged, and the next start adopts it.
 */
export const SHUTDOWN = 'shutdown'

/**
 * A call that cannot go on, for a known reason. `message` is for the model: what happened, and what
 * to do.
 */
export class ToolError extends Error {
  override readonly name = 'ToolError'
  readonly reason: FailureReason
  /** Trying again may help: the policy `retry` does where the tool allows it. */
  readonly transient: boolean
  /** The tool was not asked this time, and the message says so. An earlier process may have. */
  readonly unasked: boolean

  constructor(
    reason: FailureReason,
    message: string,
    options?: ErrorOptions & { transient?: boolean; unasked?: boolean },
  ) {
    super(message, options)
    this.reason = reason
    this.transient = options?.transient ?? false
    this.unasked = options?.unasked ?? false
  }
}

/**
 * Thrown where an abort came before anything was handed to what does the work, although the log
 * says that the call has begun.
 */
export class NotRunError extends Error {
  override readonly name = 'NotRunError'

  constructor() {
    super('Stopped before it was sent.')
  }
}

/**
 * The meaning of an abort for a call. Anything that is not a time-out or an interruption is a
 * person's wish.
 */
export function abortReason(signal: AbortSignal): 'cancelled' | 'timeout' | 'interrupted' {
  const reason: unknown = signal.reason
  if (reason === 'timeout' || (reason instanceof DOMException && reason.name === 'TimeoutError'))
    return 'timeout'
  return reason === 'interrupted' || reason === SHUTDOWN ? 'interrupted' : 'cancelled'
}

export function isShutdown(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason === SHUTDOWN
}

const ABORT_TEXT = {
  cancelled: 'The user cancelled this call before it was finished.',
  timeout: 'The call took too long and was ended.',
  interrupted: 'The call was interrupted before it was finished; whether it had an effect is not known.',
} as const

/** Texts for a call that did not end although its signal was aborted. */
const ABANDONED_TEXT = {
  cancelled: 'The user cancelled this call, and it did not end.',
  timeout: 'The call did not end within its time limit, nor when it was stopped.',
  interrupted: 'The call was interrupted, and it did not end.',
} as const

const NOT_RUN_TEXT = {
  cancelled: 'The command was not run: the user stopped it before it was sent. It had no effect.',
  timeout: 'The command was not run: its time was over before it was sent. It had no effect.',
  interrupted: 'The command was not run: Sandlot was shut down before it was sent. It had no effect.',
} as const

const NOT_STARTED_TEXT = {
  cancelled: 'This call was not started, because the user stopped it first. It had no effect.',
  timeout: 'This call was not started in its time. It had no effect.',
  interrupted: 'This call was not started, because Sandlot was shut down first. It had no effect.',
  tool_error: 'This call was not started, because of an error inside Sandlot. It had no effect.',
} as const

/** For the model, of a call that ended before the log says that it began. */
export function notStartedText(reason: keyof typeof NOT_STARTED_TEXT): string {
  return NOT_STARTED_TEXT[reason]
}

/** The outcome of a call that was aborted. `begun`: the log says that it began to run. */
function abortedOutcome(signal: AbortSignal, begun: boolean): ToolOutcome {
  const reason = abortReason(signal)
  return { status: 'failed', reason, forModel: begun ? ABORT_TEXT[reason] : notStartedText(reason) }
}

/** The outcome of a call whose tool ignored its signal: it may still be running. */
export function abandonedOutcome(signal: AbortSignal): ToolOutcome {
  const reason = abortReason(signal)
  const forModel = `${ABANDONED_TEXT[reason]} It is no longer waited for; its effect is not known.`
  return { status: 'failed', reason, forModel }
}

/**
 * The outcome for anything thrown. An abort explains whatever was thrown after it. An error that
 * was not expected is logged whole and shown without its text, which may hold anything.
 */
export function outcomeOfThrown(thrown: unknown, signal: AbortSignal, log: Log, begun: boolean): ToolOutcome {
  if (signal.aborted && thrown instanceof NotRunError) {
    const reason = abortReason(signal)
    return { status: 'failed', reason, forModel: NOT_RUN_TEXT[reason] }
  }
  if (signal.aborted) return abortedOutcome(signal, begun)
  if (thrown instanceof ToolError)
    return { status: 'failed', reason: thrown.reason, forModel: thrown.message }
  if (thrown instanceof SandboxError) {
    return { status: 'failed', reason: REASON_OF_SANDBOX_ERROR[thrown.code], forModel: thrown.message }
  }
  log.warn({ err: thrown }, 'a tool call threw an unexpected error')
  return {
    status: 'failed',
    reason: 'tool_error',
    forModel: 'The tool failed because of an error inside Sandlot. It was logged; trying once more may help.',
  }
}
