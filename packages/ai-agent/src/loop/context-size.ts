/**
 * The size of the context at the next request: the provider's last count, and an estimate of what
 * is new.
 */
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { modelMessages, type Reader } from '../history/model-messages.ts'
import { messagesTokens, toolsTokens } from '../model/tokens.ts'
import type { Model, ModelTool } from '../model/model.ts'

export function readerOf({ name, wire, origin, window }: Model): Reader {
  return { model: name, wire, origin, contextWindow: window.tokens }
}

/** Tokens of the next request, computed from the log. */
export function contextSize(
  log: readonly SessionEvent[],
  system: string,
  tools: readonly ModelTool[],
  reader: Reader,
): number {
  const all = messagesTokens(modelMessages(log, system, reader))
  const counted = lastCount(log, reader.model)
  if (counted === undefined) return all + toolsTokens(tools)
  const before = messagesTokens(modelMessages(log.slice(0, counted.end), system, reader))
  return counted.tokens + Math.max(0, all - before)
}

/**
 * The last count of this model's provider, if nothing was left out since: tokens, and the position
 * in the log of the end of the counted answer (its calls stand after the count).
 */
function lastCount(
  log: readonly SessionEvent[],
  model: string | undefined,
): { tokens: number; end: number } | undefined {
  for (let at = log.length - 1; at >= 0; at--) {
    const event = log[at]
    if (event === undefined) continue
    const happened = sandlotEventOf(event)?.type
    if (happened === 'compacted' || happened === 'history_mended') return undefined
    if (event.sessionUpdate !== 'usage_update') continue
    const { usage, model: counter, turn } = metaOf(event)
    // A failed summary is not in the conversation.
    if (usage !== undefined && turn === undefined) continue
    if (usage?.input === undefined || (counter !== undefined && counter !== model)) return undefined
    let end = at + 1
    while (log[end]?.sessionUpdate === 'tool_call') end++
    return { tokens: usage.input + (usage.output ?? 0), end }
  }
  return undefined
}
