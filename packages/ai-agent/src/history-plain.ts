/**
 * A history in the plainest form that every provider takes: nothing that only one of them understands, no two messages of
 * the user in a row, no empty one. For a provider that refused the ordinary form.
 */
import type { ModelCall, ModelMessage } from './model/model.ts'

export function plainHistory(messages: readonly ModelMessage[]): ModelMessage[] {
  const plain: ModelMessage[] = []
  for (const message of messages) {
    const last = plain.at(-1)
    if (message.role === 'assistant') {
      const { role, content, calls } = message
      const bare = calls.map(withoutReplay)
      if (calls.length === 0 && last?.role === 'assistant' && last.calls.length === 0) {
        plain[plain.length - 1] = { ...last, content: joined(last.content, content) }
      } else plain.push({ role, content: calls.length === 0 ? said(content) : content, calls: bare })
    } else if (message.role === 'user' && last?.role === 'user') {
      const images = [...(last.images ?? []), ...(message.images ?? [])]
      const content = joined(last.content, message.content)
      plain[plain.length - 1] = { role: 'user', content, ...(images.length === 0 ? {} : { images }) }
    } else {
      plain.push({ ...message, content: said(message.content) })
    }
  }
  return plain
}

function withoutReplay({ id, name, args, invalid }: ModelCall): ModelCall {
  return { id, name, args, ...(invalid === undefined ? {} : { invalid }) }
}

/** Several providers refuse an empty message. */
function said(content: string): string {
  return content.trim() === '' ? '(empty)' : content
}

function joined(first: string, second: string): string {
  return [first, second].filter((text) => text.trim() !== '').join('\n\n')
}
