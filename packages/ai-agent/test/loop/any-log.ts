/** Logs of any session, for property tests: prompts, turns, calls with and without outcomes, steered messages. */
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import fc from 'fast-check'

interface AnyCall {
  result: 'completed' | 'failed' | 'none'
  length: number
  edits: boolean
}
interface AnyTurn {
  text: string
  calls: AnyCall[]
  steered: boolean
}
export interface AnyPrompt {
  turns: AnyTurn[]
  ends: boolean
}

const call = fc.record({
  result: fc.constantFrom('completed', 'completed', 'failed', 'none' as const),
  length: fc.integer({ min: 0, max: 3_000 }),
  edits: fc.boolean(),
})
const turn = fc.record({
  text: fc.constantFrom('', 'I look.', 'Hm. '.repeat(40)),
  calls: fc.array(call, { maxLength: 4 }),
  steered: fc.boolean(),
})
export const anyPrompts: fc.Arbitrary<AnyPrompt[]> = fc.array(
  fc.record({ turns: fc.array(turn, { maxLength: 5 }), ends: fc.boolean() }),
  { minLength: 1, maxLength: 5 },
)

/** Ends with a message of the user that waits for its answer. */
export function logOf(prompts: readonly AnyPrompt[]): SessionEvent[] {
  const log: SessionEvent[] = []
  const add = (event: SessionEvent): void => {
    const seq = log.length + 1
    log.push({ ...event, _meta: { sandlot: { ...event._meta.sandlot, seq } } })
  }
  for (const [index, prompt] of [...prompts, { turns: [], ends: false }].entries()) {
    const promptId = `p_${index}`
    add(makeSandlotEvent({ type: 'prompt_started', model: 'fake' }, { promptId }, 1))
    add(said(`message ${index}`, promptId))
    for (const [at, turn] of prompt.turns.entries()) addTurn(add, turn, promptId, at + 1)
    const end = { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' } as const
    if (prompt.ends) add(makeSandlotEvent({ ...end, text: 'That was it.' }, { promptId }, 1))
  }
  return log
}

/** `log` with one more event. */
export function withEvent(log: readonly SessionEvent[], event: SessionEvent): SessionEvent[] {
  const sandlot = { ...event._meta.sandlot, seq: log.length + 1 }
  return [...log, { ...event, _meta: { sandlot } }]
}

function addTurn(add: (event: SessionEvent) => void, turn: AnyTurn, promptId: string, number: number): void {
  const meta = (more = {}) => makeMeta({ promptId, turn: number, ...more }, 1)
  const id = (at: number): string => `${promptId}_${number}_${at}`
  if (turn.text !== '') {
    const content = { type: 'text', text: turn.text } as const
    add({ sessionUpdate: 'agent_message_chunk', messageId: `m_${id(0)}`, content, _meta: meta() })
  }
  for (const [at, { edits }] of turn.calls.entries()) {
    add({
      sessionUpdate: 'tool_call',
      toolCallId: id(at),
      title: 'Look',
      name: 'look',
      kind: edits ? 'edit' : 'read',
      status: 'pending',
      rawInput: { at },
      locations: [{ path: `/workspace/${id(at)}` }],
      _meta: meta(),
    })
  }
  for (const [at, { result, length }] of turn.calls.entries()) {
    if (result === 'none') continue
    const rawOutput = { forModel: `${id(at)} ${'x'.repeat(length)}` }
    add({ sessionUpdate: 'tool_call_update', toolCallId: id(at), status: result, rawOutput, _meta: meta() })
  }
  const callIds = turn.calls.map((_, at) => id(at))
  if (callIds.length > 0)
    add(makeSandlotEvent({ type: 'turn_ended', callIds }, { promptId, turn: number }, 1))
  if (turn.steered) add(said(`and ${id(9)}`, promptId))
}

function said(text: string, promptId: string): SessionEvent {
  const content = { type: 'text', text } as const
  return {
    sessionUpdate: 'user_message_chunk',
    messageId: `m_${text.replaceAll(' ', '_')}`,
    content,
    _meta: makeMeta({ promptId }, 1),
  }
}
