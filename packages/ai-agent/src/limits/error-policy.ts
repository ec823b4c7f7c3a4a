/**
 * Consequences of a failed call for its prompt. By default none: the model gets the result and
 * continues. A prompt may ask to stop at the first failure, and a tool may declare that nothing
 * works without it. Pure functions over the log.
 */
import type { OnError } from '@sandlot/shared/chat/sandlot-event'
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { growingFold } from '../history/growing-fold.ts'

interface Failing {
  /** The prompt's own wish, as it was submitted; undefined before it begins. */
  onError: OnError | undefined
  titles: Map<string, string>
  ending?: EndingFailure
}

/** The call that ended a prompt: its title and why it failed. */
interface EndingFailure {
  title: string
  why: string
}

const failingPrompts = growingFold<Map<string, Failing>>(() => new Map(), readFailing)

function readFailing(prompts: Map<string, Failing>, event: SessionEvent): void {
  const { promptId, fatal, reason } = metaOf(event)
  if (promptId === undefined) return
  const prompt: Failing = prompts.get(promptId) ?? { onError: undefined, titles: new Map() }
  prompts.set(promptId, prompt)
  const happened = sandlotEventOf(event)
  if (happened?.type === 'prompt_started') prompt.onError ??= happened.onError ?? 'continue'
  if (event.sessionUpdate === 'tool_call') prompt.titles.set(event.toolCallId, event.title)
  if (prompt.ending !== undefined || !isOutcome(event) || event.status !== 'failed') return
  // The user stopped that one call, not the prompt.
  if (reason === 'cancelled' || (prompt.onError !== 'stop' && fatal !== true)) return
  const why = (reason ?? 'tool_error').replaceAll('_', ' ')
  prompt.ending = { title: prompt.titles.get(event.toolCallId) ?? 'A call', why }
}

/** The first call of the prompt whose failure ends it. */
export function endingFailure(log: readonly SessionEvent[], promptId: string): EndingFailure | undefined {
  return failingPrompts(log).get(promptId)?.ending
}

export function failureText({ title, why }: { title: string; why: string }): string {
  return `Stopped because a call failed: ${title} (${why}). What came before it is complete.`
}

/** The text for the model for a call that is not started any more. */
export function notAfterFailure({ title }: { title: string }): string {
  return `The call was not started: ${title} failed, and that ends this prompt.`
}
