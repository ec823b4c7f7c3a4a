/** Display texts of a call's state. Closed lists, so that no new reason can be forgotten here. */
import type { FailureReason } from '../chat/reasons.ts'
import type { CallEntry } from './entries.ts'

/**
 * A card's state. `stopped`: denied or stopped, or it never started. `missed`: its target was not
 * found. `failed`: includes commands with a failing exit code.
 */
export type CallPhase = 'queued' | 'waiting' | 'running' | 'done' | 'stopped' | 'missed' | 'failed'

/** Decided by a user or the agent; no error. */
const STOPPED: ReadonlySet<FailureReason> = new Set(['denied', 'cancelled', 'no_progress'])

export function phaseOf(call: CallEntry): CallPhase {
  if (call.status === 'failed') {
    const reason = call.reason ?? 'tool_error'
    if (neverBegan(call) || STOPPED.has(reason)) return 'stopped'
    return call.kind === 'execute' ? 'failed' : 'missed'
  }
  // The agent ended its background command.
  if (call.backgroundEnd?.reason === 'cancelled') return 'stopped'
  if (call.status === 'completed') return isCleanExit(call.backgroundEnd ?? call) ? 'done' : 'failed'
  if (call.approval !== undefined && call.approval.answer === undefined) return 'waiting'
  return call.status === 'in_progress' ? 'running' : 'queued'
}

/** Stopped before its start was logged: it had no effect. */
function neverBegan({ status, reason, startedAt }: CallEntry): boolean {
  return (
    status === 'failed' && startedAt === undefined && (reason === 'cancelled' || reason === 'interrupted')
  )
}

/**
 * Expanded by default: running calls, those that wait for the user, failed commands, and those to
 * check.
 */
export function opensItself(call: CallEntry): boolean {
  const phase = phaseOf(call)
  if (phase === 'running' || phase === 'waiting' || phase === 'failed') return true
  return call.reason === 'needs_auth' || call.reason === 'unknown_effect'
}

function isCleanExit({ exit, reason }: NonNullable<CallEntry['backgroundEnd']> | CallEntry): boolean {
  return reason === undefined && (exit === undefined || ('code' in exit && exit.code === 0))
}

const SHORT: Record<FailureReason, string> = {
  invalid_arguments: 'Invalid arguments',
  unknown_tool: 'No such tool',
  unavailable: 'Unavailable',
  denied: 'Denied',
  cancelled: 'Cancelled',
  timeout: 'Timed out',
  interrupted: 'Interrupted',
  sandbox_unavailable: 'No sandbox',
  sandbox_lost: 'Sandbox lost',
  out_of_memory: 'Out of memory',
  disk_quota: 'Disk full',
  pids_exhausted: 'Too many processes',
  output_limit: 'Too much output',
  path_outside: 'Outside the workspace',
  rate_limited: 'Rate limited',
  no_progress: 'No progress',
  unknown_effect: 'Effect unknown',
  needs_auth: 'Needs sign-in',
  invalid_output: 'Invalid output',
  schema_too_slow: 'Schema too slow',
  tool_error: 'Failed',
}

const LONG: Record<FailureReason, string> = {
  invalid_arguments: 'The arguments don’t match this tool. The model received the error.',
  unknown_tool: 'The model asked for a tool that does not exist.',
  unavailable: 'This tool isn’t available right now.',
  denied: 'This was denied. Nothing ran.',
  cancelled: 'Stopped before it was finished.',
  timeout: 'It hit its time limit.',
  interrupted: 'Sandlot stopped, or the process was killed, while this ran.',
  sandbox_unavailable: 'The sandbox couldn’t be started; the result says why.',
  sandbox_lost: 'The sandbox went away while this ran.',
  out_of_memory: 'It ran out of memory and was stopped.',
  disk_quota: 'The workspace is full.',
  pids_exhausted: 'The sandbox has reached its process limit.',
  output_limit: 'It exceeded the output limit and was stopped.',
  path_outside: 'The path is outside the workspace.',
  rate_limited: 'Too many calls in a short time.',
  no_progress: 'The model repeated the same call without making progress.',
  unknown_effect: 'The connection was lost while it ran. It may or may not have taken effect.',
  needs_auth: 'Sign in to this tool’s server first.',
  invalid_output: 'The tool’s result doesn’t match its own schema.',
  schema_too_slow:
    'Checking this call against its server’s schema took too long. The server is disabled until it’s added again.',
  tool_error: 'The tool reported an error.',
}

/** One or two words for the header of a card. */
export function statusWord(call: CallEntry): string {
  switch (phaseOf(call)) {
    case 'queued':
      return call.progress === undefined ? 'Queued' : 'Getting ready'
    case 'waiting':
      return call.approval?.question === undefined ? 'Needs approval' : 'Needs an answer'
    case 'running':
      return 'Running'
    case 'done':
      return backgroundWord(call) ?? (call.exit === undefined ? 'Done' : 'Exit 0')
    case 'stopped':
    case 'missed':
    case 'failed':
      return failureWord(call)
  }
}

function failureWord(call: CallEntry): string {
  if (call.status === 'failed') {
    if (neverBegan(call)) return 'Not started'
    return rejection(call)?.short ?? SHORT[call.reason ?? 'tool_error']
  }
  if (call.backgroundEnd !== undefined) return backgroundWord(call) ?? 'Ended'
  return call.exit !== undefined && 'signal' in call.exit
    ? call.exit.signal
    : `Exit ${call.exit?.code ?? '?'}`
}

/** For a command that ran on after its call. */
function backgroundWord(call: CallEntry): string | undefined {
  if (!ranOn(call)) return undefined
  const end = call.backgroundEnd
  if (end === undefined) return isElsewhere(call) ? 'In another chat' : 'In the background'
  if (end.reason === 'sandbox_lost') return 'Ended with its sandbox'
  if (end.reason !== undefined) return SHORT[end.reason]
  if (end.exit === undefined) return 'Ended'
  return 'signal' in end.exit ? end.exit.signal : `Exit ${end.exit.code}`
}

/** Its background command belongs to the chat from which this one was forked. */
function isElsewhere(call: CallEntry): boolean {
  const data = call.rawOutput?.data
  if (typeof data !== 'object' || data === null || !('background' in data)) return false
  const { background } = data
  return typeof background === 'object' && background !== null && 'elsewhere' in background
}

/** It started a background command, according to the tool's content. */
export function ranOn(call: CallEntry): boolean {
  const data = call.rawOutput?.data
  if (typeof data !== 'object' || data === null || !('background' in data)) return false
  const { background } = data
  return typeof background === 'object' && background !== null && 'command' in background
}

/** A sentence about a failed call, or the end of its background command; undefined for others. */
export function failureSentence(call: CallEntry, who = 'You'): string | undefined {
  if (call.backgroundEnd?.reason !== undefined)
    return BACKGROUND[call.backgroundEnd.reason] ?? BACKGROUND_ENDED
  if (call.status !== 'failed') return undefined
  if (neverBegan(call)) return NOT_STARTED[call.reason === 'interrupted' ? 'interrupted' : 'cancelled']
  return rejection(call, who)?.long ?? LONG[call.reason ?? 'tool_error']
}

const NOT_STARTED = {
  cancelled: 'Stopped before it started, so nothing changed.',
  interrupted: 'Sandlot stopped before this started, so nothing changed.',
}
const BACKGROUND: Partial<Record<FailureReason, string>> = {
  sandbox_lost: 'It ended when its sandbox stopped or restarted. Its exit code is unknown.',
  out_of_memory: 'Stopped in the background: the sandbox ran out of memory.',
  disk_quota: 'Stopped in the background: the workspace is full.',
  cancelled: 'Stopped in the background.',
  timeout: 'Stopped in the background: it hit its time limit.',
}
const BACKGROUND_ENDED = 'Killed in the background from outside.'

/**
 * The answer to its question, in the labels of the buttons; undefined without question or answer.
 */
export function answerWords({ approval }: CallEntry): string | undefined {
  const answer = approval?.answer
  if (approval?.question === undefined || answer === undefined) return undefined
  if (!answer.allowed) return answer.by === 'user' ? 'Skipped' : 'Not answered'
  const values = Object.values(answer.content ?? {})
    .map((value) => (typeof value === 'boolean' ? (value ? 'yes' : 'no') : [value].flat().join(', ')))
    .filter((text) => text !== '')
  if (values.length > 0) return values.join(' · ')
  return approval.options.find(({ optionId }) => optionId === answer.optionId)?.name
}

function rejection(call: CallEntry, who = 'You'): { short: string; long: string } | undefined {
  const answer = call.approval?.answer
  if (call.reason !== 'denied' || answer === undefined || answer.allowed) return undefined
  const why =
    answer.reason === undefined || answer.reason === '' ? '' : ` ${who} told the model: “${answer.reason}”`
  switch (answer.by) {
    case 'user':
      return { short: 'Denied', long: `${who} denied this. Nothing ran.${why}` }
    case 'expiry':
      return { short: 'Approval expired', long: 'Nobody answered in time. Nothing ran.' }
    case 'unattended':
      return { short: 'Denied', long: 'It needed an approval, and nobody could give one. Nothing ran.' }
    default:
      return undefined
  }
}
