/** Start events of a prompt, and the queued messages that become the next one. */
import { type EventGroup, type SessionEvent, makeSandlotEvent, metaOf } from '@sandlot/shared/chat/events'
import { type QueuedMessage, promptEndOf, queuedMessages, sentBehindStop } from '../../history/read-log.ts'
import { type PromptStart, promptIdOf, promptStarted, sentMessage } from '../../history/session-messages.ts'
import { chosenIn, replacedChoice } from '../../loop/model-choice.ts'
import { type OnBehalf, lowestCeiling } from '../access.ts'
import type { SessionCore } from '../core.ts'

type ChoiceSource = Pick<SessionCore, 'log' | 'parts' | 'models'>

/** A prompt whose beginning is in the log, or about to be stored. */
export interface BegunPrompt extends OnBehalf {
  promptId: string
  /** No client can answer an approval. */
  unattended: boolean
}

/** The prompt that these messages become: the last of them, with those before it. */
export function promptOf(
  waited: readonly QueuedMessage[],
  source: ChoiceSource,
): (BegunPrompt & { events: EventGroup }) | undefined {
  const last = waited.at(-1)
  if (last === undefined) return undefined
  const { messageId, unattended = false, onError, author, chargedTo } = last
  const modeCeiling = lowestCeiling(waited)
  const promptId = promptIdOf(messageId)
  const at = source.parts.now()
  const start = { unattended, onError, author, chargedTo, modeCeiling }
  const begun = promptBeginning(messageId, source, start, at)
  const sent = waited.flatMap((message) => sentMessage(message, promptId, at))
  return { promptId, unattended, modeCeiling, chargedTo, events: [...begun, ...sent] }
}

/**
 * The prompt of this message with the model that was chosen, or where that may not be chosen any
 * more, with the first that may.
 */
export function promptBeginning(
  messageId: string,
  { log, parts, models }: ChoiceSource,
  start: Omit<PromptStart, 'model' | 'thoughtLevel'>,
  at: number,
): [SessionEvent, ...SessionEvent[]] {
  const instead = replacedChoice(log, parts.models, models)
  if (instead === undefined) return [promptStarted(messageId, { ...chosenIn(log, models), ...start }, at)]
  const { model } = instead
  return [
    makeSandlotEvent({ type: 'model_chosen', ...instead }, {}, at),
    promptStarted(messageId, { ...instead, ...start }, at),
    makeSandlotEvent(
      { type: 'model_changed', model, why: 'not_allowed' },
      { promptId: promptIdOf(messageId) },
      at,
    ),
  ]
}

/**
 * Queued messages that continue after this end: the last of them is the next prompt, with those
 * before it. After a Stop those are only messages sent after it; after a shutdown none.
 */
export function messagesAfter(log: readonly SessionEvent[], end: SessionEvent): QueuedMessage[] {
  const { promptId = '' } = metaOf(end)
  const reason = promptEndOf([end], promptId)?.reason
  if (reason === 'interrupted') return []
  const waiting = queuedMessages(log)
  if (reason !== 'cancelled') return waiting.slice(0, 1)
  const behind = sentBehindStop(log, promptId)
  return waiting.slice(0, waiting.findIndex(({ messageId }) => messageId === behind?.messageId) + 1)
}
