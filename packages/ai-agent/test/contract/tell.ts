/** A settled log in the words of a scenario, and in a form that does not depend on ids, ports and times. */
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf, textOf } from '@sandlot/shared/chat/events'
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'

/** A line for each thing that was said or done. */
export function tell(log: readonly SessionEvent[]): string[] {
  return log.flatMap((event) => tellOne(event) ?? [])
}

function tellOne(event: SessionEvent): string | undefined {
  const { reason, usage } = metaOf(event)
  switch (event.sessionUpdate) {
    case 'user_message_chunk':
      return event.content.type === 'text' ? `user: ${textOf(event)}` : `user: ${event.content.type}`
    case 'agent_thought_chunk':
      return `thought: ${textOf(event)}`
    case 'agent_message_chunk':
      return `text: ${textOf(event)}`
    case 'tool_call':
      return `call: ${event.name} ${stringifyExactly(event.rawInput)}`
    case 'tool_call_update':
      if (!isOutcome(event)) return undefined
      return `result: ${reason ?? event.rawOutput?.forModel}`
    case 'usage_update': {
      const { input = 10, output = 5, cached = 0, reasoning = 0 } = usage ?? {}
      const isUsual = input === 10 && output === 5
      return isUsual
        ? undefined
        : `usage: ${input} in, ${cached} cached, ${output} out, ${reasoning} reasoning`
    }
    default:
      return tellHappened(event)
  }
}

function tellHappened(event: SessionEvent): string | undefined {
  const happened = sandlotEventOf(event)
  switch (happened?.type) {
    case 'turn_ended':
      return happened.callIds.length === 0 ? 'empty' : undefined
    case 'message_withdrawn':
      return happened.messageId.startsWith('m_') ? `withdrawn: ${happened.why}` : undefined
    case 'compacted':
      return `compacted: ${happened.why}`
    case 'history_mended':
      return 'mended'
    case 'model_chosen':
    case 'model_changed':
      return `model: ${happened.model}`
    case 'prompt_resumed':
      return 'resumed'
    case 'prompt_ended':
      return `end: ${[happened.reason, happened.cause].filter(Boolean).join(' ')}`
    default:
      return undefined
  }
}

/** Members that depend on the moment, and those that only the provider of the wire reads. */
const OWN = new Set(['at', 'timing', 'expiresAt', 'requestDigest', 'replay', 'origin', 'boot'])

/** The log with its ids numbered in the order in which they come. */
export function normal(log: readonly SessionEvent[]): unknown {
  const names = new Map<string, string>()
  const text = JSON.stringify(log, (name, value: unknown) => {
    if (OWN.has(name)) return undefined
    if (name === 'forProvider' && Object.keys(value ?? {}).join() === 'replay') return undefined
    const mended = name === 'event' && (value as { type?: string } | undefined)?.type === 'history_mended'
    return mended ? 'history_mended' : value
  })
  return JSON.parse(
    text.replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1').replaceAll(/\b[a-z]_[a-z0-9]{16,}/g, (id) => {
      // A message and its prompt differ in the first letter.
      const [kind, rest] = [id.slice(0, 2), id.slice(2)]
      if (!names.has(rest)) names.set(rest, String(names.size + 1))
      return `${kind}${names.get(rest)}`
    }),
  )
}
