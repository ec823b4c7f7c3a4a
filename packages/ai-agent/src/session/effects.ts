/**
 * What else changes in the transaction that stores an event: derived from the event, so that the
 * log stays the truth.
 */
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf } from '@sandlot/shared/events'
import type { Effects } from '@sandlot/storage/sessions/store'
import { isUncountedAnswer } from '../limits/day-budgets.ts'

interface EffectsContext {
  userId: string
  /** The model's name, for usage. */
  model: string
  /** Name of the tool of an announced call. */
  toolOf: (callId: string) => string
}

/** The effects of a group. Later events win where two touch the same. */
export function effectsOf(events: readonly SessionEvent[], context: EffectsContext): Effects {
  const effects: Effects = {}
  for (const event of events) Object.assign(effects, effectsOfOne(event, context))
  const [first] = events
  if (first !== undefined && isUncountedAnswer(events)) {
    const { promptId = '', at } = metaOf(first)
    effects.usage = { promptId, model: context.model, input: 0, output: 0, cached: 0, reasoning: 0, at }
  }
  // An answer is stored together with the calls that it makes.
  const calls = events.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call').length
  if (effects.usage !== undefined && calls > 0) effects.usage.calls = calls
  return effects
}

function effectsOfOne(event: SessionEvent, { userId, model, toolOf }: EffectsContext): Effects {
  const meta = metaOf(event)
  const promptId = meta.promptId ?? ''
  if (event.sessionUpdate === 'current_mode_update') return { mode: event.currentModeId }
  if (event.sessionUpdate === 'usage_update') {
    // Without counts it only says how full the window is.
    if (meta.usage === undefined) return {}
    const { input = 0, output = 0, cached = 0, reasoning = 0 } = meta.usage
    const cost = meta.cost === undefined ? {} : { cost: meta.cost }
    const tokens = { input, output, cached, reasoning, ...cost }
    return { usage: { promptId, model: meta.model ?? model, ...tokens, at: meta.at } }
  }
  if (isOutcome(event)) {
    const { reason, outputInfo, timing } = meta
    const callId = event.toolCallId
    return {
      outcome: {
        callId,
        tool: toolOf(callId),
        status: event.status === 'completed' ? 'completed' : 'failed',
        reason,
        runMs: timing?.runMs ?? 0,
        waitMs: timing?.waitMs ?? 0,
      },
      ...(outputInfo === undefined
        ? {}
        : { output: { callId, totalBytes: outputInfo.bytes, lines: outputInfo.lines } }),
    }
  }
  if (event.sessionUpdate === 'session_info_update' && typeof event.title === 'string')
    return { title: event.title }

  const happened = sandlotEventOf(event)
  switch (happened?.type) {
    case 'prompt_started':
      return {
        runningPromptId: promptId,
        ...(happened.requestId === undefined
          ? {}
          : { submission: { userId, requestId: happened.requestId, promptId } }),
      }
    case 'prompt_ended':
      return { runningPromptId: null }
    case 'approval_asked':
      return {
        approvalAsked: { toolCallId: happened.toolCallId, askedAt: meta.at, expiresAt: happened.expiresAt },
      }
    case 'approval_answered':
      return {
        approvalAnswered: {
          toolCallId: happened.toolCallId,
          answeredAt: meta.at,
          optionId: happened.optionId ?? null,
          by: happened.by,
        },
      }
    default:
      return {}
  }
}
