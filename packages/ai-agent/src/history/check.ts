/**
 * Checks that a provider would accept these messages: pairs, ids, order, roles. Runs before every
 * request, because one broken pair makes a session useless for good. Pure.
 */
import type { AssistantMessage, ModelMessage, ToolMessage } from '../model/model.ts'
import { NO_RESULT } from './model-messages.ts'

interface HistoryProblem {
  /** Place of the message in the list. */
  at: number
  /** In words, for the log and for people. */
  problem: string
}

/** Everything that is wrong, in order; empty when the messages may be sent. */
export function historyProblems(messages: readonly ModelMessage[]): HistoryProblem[] {
  const problems: HistoryProblem[] = []
  const ids = new Set<string>()
  /** Calls of the last answer that wait for their results, in order. */
  let open: string[] = []
  const report = (at: number, problem: string): void => void problems.push({ at, problem })

  for (const [at, message] of messages.entries()) {
    if (message.role === 'tool') {
      const expected = open.shift()
      if (expected !== message.callId) {
        const instead = expected === undefined ? 'no call waits for one' : `the next is that of ${expected}`
        report(at, `a result of ${message.callId}, but ${instead}`)
        // The rest of the batch is judged by itself.
        if (expected !== undefined) open = open.filter((id) => id !== message.callId)
      }
      continue
    }
    for (const id of open) report(at, `the call ${id} has no result before the next message`)
    open = []
    if (message.role === 'system' && at > 0) report(at, 'a system message in the middle')
    if (message.role !== 'assistant') continue
    if (at === 0 || messages[at - 1]?.role === 'system') report(at, 'an answer to nothing')
    if (message.calls.length === 0 && message.content.trim() === '') report(at, 'an answer without words')
    for (const { id, name, args } of message.calls) {
      if (id === '') report(at, 'a call without an id')
      if (ids.has(id)) report(at, `the id ${id} belongs to two calls`)
      if (name === '') report(at, `the call ${id} has no name`)
      if (!isJson(args)) report(at, `the arguments of ${id} are not JSON`)
      ids.add(id)
    }
    open = message.calls.map(({ id }) => id)
  }
  for (const id of open) report(messages.length, `the call ${id} has no result`)
  if (messages.at(-1)?.role === 'assistant' && open.length === 0)
    report(messages.length, 'it ends with an answer, so that there is nothing to say')
  if (!messages.some(({ role }) => role === 'user')) report(messages.length, 'nothing of the user is in it')
  return problems
}

function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value ?? null) !== undefined
  } catch (error) {
    // A circle, or a number that JSON does not know.
    if (error instanceof TypeError) return false
    throw error
  }
}

/**
 * The messages with every mendable problem mended: a result for every call, at its place and once;
 * a result of no call left out; ids and names made up where they lack; system messages in the
 * middle as the user's. What was well stays as it is.
 */
export function repairHistory(messages: readonly ModelMessage[]): ModelMessage[] {
  const mended: ModelMessage[] = []
  const ids = new Set<string>()
  for (const [at, message] of messages.entries()) {
    if (message.role === 'tool') continue
    if (message.role === 'system') {
      mended.push(at === 0 ? message : { role: 'user', content: message.content })
    } else if (message.role === 'user') {
      mended.push(message)
    } else {
      addAnswer(mended, message, resultsBehind(messages, at), ids)
    }
  }
  if (mended.at(-1)?.role === 'assistant' || !mended.some(({ role }) => role === 'user')) {
    mended.push({ role: 'user', content: 'Go on.' })
  }
  return mended
}

/** The results between this answer and the next message that is none. */
function resultsBehind(messages: readonly ModelMessage[], at: number): ToolMessage[] {
  const results: ToolMessage[] = []
  for (const message of messages.slice(at + 1)) {
    if (message.role !== 'tool') break
    results.push(message)
  }
  return results
}

function addAnswer(
  mended: ModelMessage[],
  message: AssistantMessage,
  results: readonly ToolMessage[],
  ids: Set<string>,
): void {
  if (message.calls.length === 0 && message.content.trim() === '') return
  if (!mended.some(({ role }) => role === 'user')) mended.push({ role: 'user', content: 'Go on.' })
  const waiting = [...results]
  const pairs = message.calls.map((call, place) => {
    const found = waiting.findIndex(({ callId }) => callId === call.id)
    const [result] = found === -1 ? [] : waiting.splice(found, 1)
    const id = freeId(call.id, ids, `${mended.length}_${place + 1}`)
    return {
      call: {
        ...call,
        id,
        name: call.name === '' ? 'unnamed' : call.name,
        args: isJson(call.args) ? call.args : {},
      },
      result: { ...(result ?? { role: 'tool' as const, content: NO_RESULT }), callId: id },
    }
  })
  mended.push({ ...message, calls: pairs.map(({ call }) => call) }, ...pairs.map(({ result }) => result))
}

function freeId(wanted: string, ids: Set<string>, place: string): string {
  let id = wanted === '' ? `call_${place}` : wanted
  while (ids.has(id)) id = `${id}_${place}`
  ids.add(id)
  return id
}
