/**
 * The last events of a prompt, and the sentences that a person reads where the model wrote nothing.
 */
import {
  STOP_REASON_OF,
  type EndReason,
  type ErrorCause,
  type InternalCause,
  type SetIn,
  failureOf,
} from '@sandlot/shared/chat/reasons'
import { makeSandlotEvent, metaOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { failurePattern, patternSentence } from '@sandlot/shared/transcript/failure-pattern'
import { callsBefore } from '../history/read-log.ts'
import { turnsOf, type Turn } from '../history/model-messages.ts'
import { notStartedText } from '../tools/tool-error.ts'

/** `prompt_ended`. `text` only where the model said nothing in its last turn. */
export function endEvent(
  promptId: string,
  reason: Exclude<EndReason, 'error'>,
  text: string | undefined,
  at: number,
): SessionEvent {
  const end = { type: 'prompt_ended', stopReason: STOP_REASON_OF[reason], reason } as const
  return makeSandlotEvent(text === undefined ? end : { ...end, text }, { promptId }, at)
}

export interface ErrorAbout {
  cause: ErrorCause
  setIn?: SetIn | undefined
  internal?: InternalCause | undefined
  requestId?: string | undefined
}

/** `prompt_ended` with `error`. */
export function errorEvent(
  promptId: string,
  { cause, setIn, internal, requestId }: ErrorAbout,
  text: string,
  at: number,
): SessionEvent {
  const end = { type: 'prompt_ended', stopReason: STOP_REASON_OF.error, reason: 'error' } as const
  const known = { ...(setIn && { setIn }), ...(internal && { internal }), ...(requestId && { requestId }) }
  return makeSandlotEvent({ ...end, text, cause, ...known }, { promptId }, at)
}

/** `prompt_ended` in place of what the store refused. */
export function storeFailedEnd(promptId: string, at: number): SessionEvent {
  return errorEvent(promptId, { cause: 'internal', internal: 'store_failed' }, STORE_FAILED_TEXT, at)
}

const LOST = {
  cancelled: 'The user cancelled this call.',
  tool_error: 'The call was lost because of an error inside Sandlot.',
  interrupted: 'The call was interrupted before it was finished; whether it had an effect is not known.',
} as const

/**
 * Outcomes for the calls of a prompt that have none and will get none. One that never began had no
 * effect.
 */
export function missingOutcomes(
  log: readonly SessionEvent[],
  promptId: string,
  reason: keyof typeof LOST,
  at: number,
): SessionEvent[] {
  const { begunBefore } = callsBefore(log)
  return turnsOf(log, promptId).flatMap(({ number: turn, calls }) =>
    calls
      .filter(({ outcome }) => outcome === undefined)
      .map(({ call: { toolCallId } }) => {
        const begun = begunBefore(toolCallId)
        const forModel = begun ? LOST[reason] : notStartedText(reason)
        const why = begun || reason !== 'tool_error' ? reason : 'interrupted'
        return {
          sessionUpdate: 'tool_call_update' as const,
          toolCallId,
          status: 'failed' as const,
          rawOutput: { forModel },
          _meta: makeMeta({ promptId, turn, reason: why }, at),
        }
      }),
  )
}

/**
 * The model gave no answer, also when asked again. Names what failed, if something did. `isLong`:
 * the conversation may be longer than the model holds.
 */
export function noAnswerText(log: readonly SessionEvent[], promptId: string, isLong: boolean): string {
  const turns = turnsOf(log, promptId)
  const calls = turns.flatMap((turn) => turn.calls)
  if (calls.length === 0) {
    return isLong
      ? 'The model returned nothing, also when asked again. The conversation is probably longer than the model can hold: send /compact to have it summarised, or begin a new chat.'
      : 'The model returned nothing, twice. Try rephrasing.'
  }
  const failed = failuresOf(turns)
  if (failed.length > 0) {
    const pattern = failurePattern(log, promptId)
    const again = pattern === undefined ? '' : ` ${patternSentence(pattern)}`
    return `The model gave no answer after its last step. What failed: ${failed.join('; ')}.${again} The results above are complete; ask for a summary or try again.`
  }
  const steps = calls.length === 1 ? 'one step' : `${calls.length} steps`
  return `The model did ${steps} and then gave no answer. The results above are complete; ask for a summary if you need one.`
}

/** One phrase per tool and cause, for the calls of the last turn that had any. */
function failuresOf(turns: readonly Turn[]): string[] {
  const last = turns.findLast((turn) => turn.calls.length > 0)
  const phrases = new Map<string, number>()
  for (const { call, outcome } of last?.calls ?? []) {
    if (outcome?.status !== 'failed') continue
    const phrase = `${call.title === '' ? call.name : call.title} (${(failureOf(metaOf(outcome)) ?? 'tool_error').replaceAll('_', ' ')})`
    phrases.set(phrase, (phrases.get(phrase) ?? 0) + 1)
  }
  return [...phrases].map(([phrase, times]) => (times === 1 ? phrase : `${phrase}, ${times} times`))
}

export function maxTurnsText(maxTurns: number): string {
  return `Reached the limit of ${maxTurns} steps. Nothing is lost; say “go on” to continue.`
}

/** `problems`: what is wrong with the messages, in words. */
export function brokenHistoryText(problems: readonly string[]): string {
  return `This conversation could not be sent to the model, because it is not in order (${problems.slice(0, 3).join('; ')}). Begin a new chat, or continue this one from an earlier message.`
}

export function poisonText(times: number): string {
  return `Sandlot had to be started again ${times} times while this was running, so it was given up. What was done before is complete. If it happens again with the same message, the log has the details.`
}

/** The window leaves no room beside the instructions. */
export function tooSmallText(model: string, { tokens }: { tokens: number }): string {
  return `The context window of ${model} (${tokens.toLocaleString('en')} tokens) is too small for the instructions and a message. Choose another model, or ask your administrator for a larger context window.`
}

/** `tool`: what was called. */
export function writtenCallText(tool: string): string {
  return `The model wrote its call of ${tool} as text, twice, so nothing was run. The model’s server didn’t recognise the call.`
}

export const BLOCKED_TEXT =
  'A step of this blocked Sandlot for everybody, so Sandlot was restarted and this was ended. What was done before is complete, and nothing is run again. The log has the details.'
export const CHANT_TEXT =
  'Stopped: the model said the same words again and again and would not have ended. Try rephrasing.'
export const CANCELLED_TEXT = 'You stopped this.'
export const ADMINISTRATOR_TEXT = 'An administrator stopped this.'
export const LEFT_LINE_TEXT = 'Stopped while it waited in line: nothing of it was begun.'
export const INTERRUPTED_TEXT = 'Sandlot was shut down while this was running.'
export const LOOP_TEXT =
  'Stopped: the model made the same calls again and again with the same results, also after it was told. The results above are complete; say what it should do differently.'
export const LENGTH_TEXT = 'The model reached its limit of tokens before it said anything.'
export const REFUSAL_TEXT = 'The model’s provider refused to answer this.'
const STORE_FAILED_TEXT =
  'This ended early, because what came next could not be saved. What stands above is saved; nothing was run again.'
export const NOT_SAVED_TEXT =
  'This ended early and is not saved: the database refuses it. It is saved first when the database accepts it again; until then nothing new begins here.'
export const BUG_TEXT = 'Something went wrong on our side. The log has the details.'
