/**
 * Changes in the transaction that stores an event, derived from the event, so that the log stays
 * the truth.
 */
import {
  isOutcome,
  type OutcomeEvent,
  metaOf,
  sandlotEventOf,
  type SessionEvent,
} from '@sandlot/shared/chat/events'
import { failureOf } from '@sandlot/shared/chat/reasons'
import type { NewNotification } from '@sandlot/storage/tables/records'
import type { Effects } from '@sandlot/storage/tables/records'
import { isUncountedAnswer } from '../limits/period-budgets.ts'

/** The longest tool name that is counted: a model may write any. */
const MAX_NAME_CHARS = 256

interface EffectsContext {
  userId: string
  /** The model's name, for usage. */
  model: string
  /** Name of the tool of an announced call. */
  toolOf: (callId: string) => string
  /** The author of the running prompt; undefined: it is unattended, and causes no notification. */
  promptAuthor: () => string | undefined
}

/** The effects of a group. Later events win where two touch the same. */
export function effectsOf(events: readonly SessionEvent[], context: EffectsContext): Effects {
  const effects: Effects = {}
  for (const event of events) Object.assign(effects, effectsOfOne(event, context))
  const notifications = events.flatMap((event) => notificationsOf(event, context))
  if (notifications.length > 0) effects.notifications = notifications
  const [first] = events
  if (first !== undefined && isUncountedAnswer(events)) {
    const { promptId = '', at } = metaOf(first)
    effects.usage = { promptId, model: context.model, input: 0, output: 0, reasoning: 0, at }
  }
  // An answer is stored together with the calls that it makes.
  const calls = events.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call').length
  if (effects.usage !== undefined && calls > 0) effects.usage.calls = calls
  return effects
}

/**
 * The notices of one event: the owner's of what waits, the author's of an end, of those whom a
 * comment mentions. A prompt that was stopped causes none.
 */
function notificationsOf(
  event: SessionEvent,
  { userId, toolOf, promptAuthor }: EffectsContext,
): NewNotification[] {
  const happened = sandlotEventOf(event)
  if (happened?.type === 'comment') {
    const { author } = metaOf(event)
    const { commentId: ref, mentions } = happened
    const others = new Set(mentions.filter((id) => id !== author?.id))
    return [...others].map((id) => ({ userId: id, kind: 'mentioned', ref, about: author?.name ?? '' }))
  }
  if (happened?.type !== 'approval_asked' && happened?.type !== 'prompt_ended') return []
  const author = promptAuthor()
  if (author === undefined) return []
  if (happened.type === 'approval_asked') {
    const { toolCallId } = happened
    return [{ userId, kind: 'approval', ref: toolCallId, about: toolOf(toolCallId) }]
  }
  if (happened.stopReason === 'cancelled') return []
  return [{ userId: author, kind: 'ended', ref: metaOf(event).promptId ?? '' }]
}

function effectsOfOne(event: SessionEvent, context: EffectsContext): Effects {
  const meta = metaOf(event)
  const promptId = meta.promptId ?? ''
  if (event.sessionUpdate === 'current_mode_update') return { mode: event.currentModeId }
  if (event.sessionUpdate === 'usage_update') return usageEffects(event, context)
  if (isOutcome(event)) return outcomeEffects(event, context)
  if (event.sessionUpdate === 'session_info_update' && typeof event.title === 'string')
    return { title: event.title }

  const happened = sandlotEventOf(event)
  switch (happened?.type) {
    case 'prompt_started':
      return {
        runningPromptId: promptId,
        ...(happened.requestId === undefined
          ? {}
          : {
              submission: {
                userId: meta.author?.id ?? context.userId,
                requestId: happened.requestId,
                promptId,
              },
            }),
      }
    case 'prompt_ended':
      return { runningPromptId: null, ended: { reason: happened.reason, at: meta.at } }
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

function usageEffects(event: SessionEvent, { model }: EffectsContext): Effects {
  const { usage, cost, promptId = '', at, model: answeredBy = model } = metaOf(event)
  // Without counts it only reports the size of the context.
  if (usage === undefined) return {}
  const { input = 0, output = 0, cached, reasoning = 0 } = usage
  return { usage: { promptId, model: answeredBy, input, output, cached, reasoning, cost, at } }
}

function outcomeEffects(event: OutcomeEvent, { toolOf }: EffectsContext): Effects {
  const meta = metaOf(event)
  const { outputInfo, timing, promptId = '', at } = meta
  const callId = event.toolCallId
  return {
    outcome: {
      promptId,
      callId,
      tool: toolOf(callId).slice(0, MAX_NAME_CHARS),
      status: event.status === 'completed' ? 'completed' : 'failed',
      reason: failureOf(meta),
      runMs: timing?.runMs ?? 0,
      waitMs: timing?.waitMs ?? 0,
      outputBytes: outputInfo?.bytes,
      at,
    },
    ...(outputInfo === undefined
      ? {}
      : { output: { callId, totalBytes: outputInfo.bytes, lines: outputInfo.lines } }),
  }
}
