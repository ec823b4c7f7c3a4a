/**
 * Errors that a strict provider would find in a request body, read from the sent bytes and from
 * nothing of ours: the second opinion next to src/history/check.ts.
 */
import type { RecordedBody } from '../support/fake-provider.ts'

interface WireCall {
  id?: unknown
  type?: unknown
  function?: { name?: unknown; arguments?: unknown }
}

export function wireProblems(body: RecordedBody): string[] {
  const problems: string[] = []
  const seen = new Set<string>()
  let open: string[] = []
  const { messages } = body
  for (const [at, message] of messages.entries()) {
    const tell = (problem: string): void => void problems.push(`message ${at} (${message.role}): ${problem}`)
    if (message.role === 'tool') {
      const expected = open.shift()
      if (expected !== message.tool_call_id) tell(`${message.tool_call_id} instead of ${String(expected)}`)
      if (typeof message.content !== 'string' || message.content === '') tell('no text')
      continue
    }
    if (open.length > 0) tell(`${open.join()} have no results`)
    open = []
    if (message.role === 'system' && at !== 0) tell('a system message in the middle')
    if (!['system', 'user', 'assistant'].includes(message.role)) tell('an unknown role')
    if (message.role === 'user' && !hasWords(message.content)) tell('a user without words')
    if (message.role !== 'assistant') continue
    if (messages[at - 1]?.role === 'system' || at === 0) tell('an answer to nothing')
    const calls = (message.tool_calls ?? []) as WireCall[]
    if (calls.length === 0 && !hasWords(message.content)) tell('neither words nor calls')
    if ('tool_calls' in message && calls.length === 0) tell('an empty list of calls')
    for (const call of calls) {
      const { id } = call
      if (typeof id !== 'string' || id === '') tell('a call without id')
      else if (seen.has(id)) tell(`${id} twice`)
      else seen.add(id)
      if (call.type !== 'function') tell('a call that is no function')
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(call.function?.name)))
        tell(`the name ${String(call.function?.name)}`)
      if (!isObjectText(call.function?.arguments)) tell(`arguments ${String(call.function?.arguments)}`)
      open.push(String(id))
    }
    if (calls.length > 0 && body.tools === undefined) tell('calls, and no tools member')
  }
  if (open.length > 0) problems.push(`at the end ${open.join()} have no results`)
  const last = messages.at(-1)
  if (last?.role !== 'user' && last?.role !== 'tool') problems.push(`it ends with ${last?.role}`)
  if (JSON.stringify(body).includes('\\u0000')) problems.push('a NUL')
  if (!JSON.stringify(body).isWellFormed()) problems.push('half a character')
  return problems
}

function hasWords(content: unknown): boolean {
  if (Array.isArray(content)) return content.length > 0
  return typeof content === 'string' && content.trim() !== ''
}

function isObjectText(text: unknown): boolean {
  if (typeof text !== 'string') return false
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch (error) {
    if (error instanceof SyntaxError) return false
    throw error
  }
}
