/**
 * A history in the plainest form that every provider takes: nothing that only one of them
 * understands, no two messages of the user in a row, no empty one. For a provider that refused the
 * ordinary form.
 */
import { createHash } from 'node:crypto'
import type { ModelCall, ModelMessage } from '../model/model.ts'

export function plainHistory(messages: readonly ModelMessage[]): ModelMessage[] {
  const plain: ModelMessage[] = []
  for (const message of messages) {
    const last = plain.at(-1)
    if (message.role === 'assistant') {
      const { role, content, calls } = message
      const bare = calls.map((call) => bareCall(call, plainId(call.id)))
      if (calls.length === 0 && last?.role === 'assistant' && last.calls.length === 0) {
        plain[plain.length - 1] = { ...last, content: joined(last.content, content) }
      } else plain.push({ role, content: calls.length === 0 ? said(content) : content, calls: bare })
    } else if (message.role === 'user' && last?.role === 'user') {
      const images = [...(last.images ?? []), ...(message.images ?? [])]
      const content = joined(last.content, message.content)
      plain[plain.length - 1] = { role: 'user', content, ...(images.length === 0 ? {} : { images }) }
    } else {
      const content = said(message.content)
      plain.push(
        message.role === 'tool'
          ? { ...message, callId: plainId(message.callId), content }
          : { ...message, content },
      )
    }
  }
  return plain
}

/** The call under this id, without what only the provider that made it understands. */
export function bareCall({ name, args, invalid }: ModelCall, id: string): ModelCall {
  return { id, name, args, invalid }
}

/** The strictest that there is: Mistral's nine letters and digits. */
function plainId(id: string): string {
  if (/^[A-Za-z0-9]{9}$/.test(id)) return id
  return createHash('sha256').update(id).digest('hex').slice(0, 9)
}

/** An id that one model gave, for another: of those that many providers take, some give others. */
export function foreignId(id: string): string {
  if (/^[A-Za-z0-9_-]{1,40}$/.test(id)) return id
  return `call_${createHash('sha256').update(id).digest('hex').slice(0, 24)}`
}

/** Several providers refuse an empty message. */
function said(content: string): string {
  return content.trim() === '' ? '(empty)' : content
}

function joined(first: string, second: string): string {
  return [first, second].filter((text) => text.trim() !== '').join('\n\n')
}
