/**
 * What a failed call means for its prompt. Ordinarily nothing: the model hears of it and goes on. A prompt may ask to stop at
 * the first failure, and a tool may say that nothing goes without it. Pure functions over the log.
 */
import type { OnError } from '@sandlot/shared/sandlot-event'
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf } from '@sandlot/shared/events'

/** The prompt's own wish, as it was submitted. */
function onErrorOf(log: readonly SessionEvent[], promptId: string): OnError {
  for (const event of log) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'prompt_started' && metaOf(event).promptId === promptId)
      return happened.onError ?? 'continue'
  }
  return 'continue'
}

/** The first call of the prompt whose failure ends it: its title and why it failed. */
export function endingFailure(
  log: readonly SessionEvent[],
  promptId: string,
): { title: string; why: string } | undefined {
  const stop = onErrorOf(log, promptId) === 'stop'
  const titles = new Map<string, string>()
  for (const event of log) {
    if (metaOf(event).promptId !== promptId) continue
    if (event.sessionUpdate === 'tool_call') titles.set(event.toolCallId, event.title)
    if (!isOutcome(event) || event.status !== 'failed') continue
    const { fatal, reason } = metaOf(event)
    // Somebody stopped that one call, not the prompt.
    if (reason === 'cancelled' || (!stop && fatal !== true)) continue
    const why = (reason ?? 'tool_error').replaceAll('_', ' ')
    return { title: titles.get(event.toolCallId) ?? 'A call', why }
  }
  return undefined
}

export function failureText({ title, why }: { title: string; why: string }): string {
  return `Stopped because a call failed: ${title} (${why}). What came before it is complete.`
}

/** What the model reads for a call that does not start any more. */
export function notAfterFailure({ title }: { title: string }): string {
  return `The call was not run: ${title} failed, and that ends this prompt.`
}
