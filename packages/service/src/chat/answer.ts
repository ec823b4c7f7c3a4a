/** The answer of `POST /api/chat`: a fold of the log of one prompt. */
import type { ChatResponse, ToolResult } from '@sandlot/shared/chat/chat-api'
import { isLive, isOutcome, metaOf, sandlotEventOf, textOf } from '@sandlot/shared/chat/events'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { type EndReason, failureOf, type StopReason } from '@sandlot/shared/chat/reasons'
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'

/** A message that waited, and was withdrawn before a prompt took it. */
const TAKEN_BACK = {
  stopReason: 'cancelled',
  reason: 'cancelled',
  text: 'The message was taken back before the agent read it.',
} as const

/**
 * Undefined while the prompt has not ended. `text` is the model's text after its last calls, or the
 * text of the prompt's end where there is none. `message` is always the text of the end, so that
 * half an answer hides no error.
 */
export function answerOf(
  sessionId: string,
  promptId: string,
  log: readonly SessionEvent[],
): ChatResponse | undefined {
  const names = new Map<string, string>()
  const toolResults: ToolResult[] = []
  const withdrawn = new Set<string>()
  const said = new Map<string, string>()
  const usage: TokenUsage = {}
  let end: { stopReason: StopReason; reason: EndReason; text?: string | undefined } | undefined

  for (const event of log) {
    const meta = metaOf(event)
    if (meta.promptId !== promptId || isLive(event)) continue
    addUsage(usage, meta.usage)
    if (event.sessionUpdate === 'agent_message_chunk') {
      said.set(event.messageId, textOf(event))
    } else if (event.sessionUpdate === 'tool_call') {
      names.set(event.toolCallId, event.name)
      // Text before calls announces them; the answer comes after them.
      said.clear()
    } else if (isOutcome(event)) {
      toolResults.push(toolResultOf(event, names.get(event.toolCallId) ?? 'unknown'))
    }
    const inner = sandlotEventOf(event)
    if (inner?.type === 'message_withdrawn') withdrawn.add(inner.messageId)
    if (inner?.type === 'prompt_ended') end = inner
    if (inner?.type === 'message_unqueued' && inner.why === 'withdrawn') end = TAKEN_BACK
  }
  if (end === undefined) return undefined
  for (const messageId of withdrawn) said.delete(messageId)
  const text = [...said.values()].filter((part) => part !== '').join('\n\n')
  // Announced in the model's order, ended in any: the answer keeps the model's.
  const order = [...names.keys()]
  toolResults.sort((a, b) => order.indexOf(a.callId) - order.indexOf(b.callId))
  const answer: ChatResponse = {
    sessionId,
    promptId,
    text: text === '' ? (end.text ?? '') : text,
    stopReason: end.stopReason,
    reason: end.reason,
    toolResults,
    usage,
  }
  if (end.text !== undefined) answer.message = end.text
  return answer
}

function toolResultOf(
  event: Extract<SessionEvent, { sessionUpdate: 'tool_call_update' }>,
  name: string,
): ToolResult {
  const meta = metaOf(event)
  const { outputInfo } = meta
  return {
    callId: event.toolCallId,
    name,
    status: event.status === 'completed' ? 'completed' : 'failed',
    reason: failureOf(meta),
    text: event.rawOutput?.forModel ?? '',
    outputUrl: outputInfo?.url,
    truncated: outputInfo?.truncated ?? false,
  }
}

function addUsage(sum: TokenUsage, more: TokenUsage | undefined): void {
  if (more === undefined) return
  for (const key of ['input', 'output', 'cached', 'cacheWritten', 'cacheWrittenHour', 'reasoning'] as const) {
    const value = more[key]
    if (value !== undefined) sum[key] = (sum[key] ?? 0) + value
  }
}
