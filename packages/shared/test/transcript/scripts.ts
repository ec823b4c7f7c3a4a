/** Sessions for tests, as a store and an agent would make them: settled events numbered densely, live ones between. */
import fc from 'fast-check'
import { type EventOf, makeSandlotEvent, type SessionEvent } from '../../src/chat/events.ts'
import { makeMeta, type MetaFields } from '../../src/chat/event-meta.ts'
import type { SandlotEvent } from '../../src/chat/sandlot-event.ts'

/** Numbers settled events as a store does. */
export class Recorder {
  readonly events: SessionEvent[] = []
  #seq = 0
  #at = 1_000

  settled(event: (at: number) => SessionEvent): void {
    const made = event(this.#at++)
    this.events.push({
      ...made,
      _meta: { sandlot: { ...made._meta.sandlot, seq: ++this.#seq } },
    })
  }

  live(event: (at: number) => SessionEvent): void {
    this.events.push(event(this.#at++))
  }

  happened(event: SandlotEvent, fields: MetaFields = {}): void {
    this.settled((at) => makeSandlotEvent(event, fields, at))
  }
}

export function text(
  kind: 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk',
  messageId: string,
  value: string,
  fields: MetaFields = {},
): (at: number) => SessionEvent {
  return (at) => ({
    sessionUpdate: kind,
    messageId,
    content: { type: 'text', text: value },
    _meta: makeMeta(fields, at),
  })
}

export function call(toolCallId: string, fields: MetaFields = {}): (at: number) => EventOf<'tool_call'> {
  return (at) => ({
    sessionUpdate: 'tool_call',
    toolCallId,
    title: `run ${toolCallId}`,
    name: 'run_shell_command',
    kind: 'execute',
    status: 'pending',
    rawInput: { command: toolCallId },
    _meta: makeMeta(fields, at),
  })
}

export function callUpdate(
  toolCallId: string,
  more: Partial<EventOf<'tool_call_update'>>,
  fields: MetaFields = {},
): (at: number) => EventOf<'tool_call_update'> {
  return (at) => ({ sessionUpdate: 'tool_call_update', toolCallId, ...more, _meta: makeMeta(fields, at) })
}

export function outcome(
  toolCallId: string,
  forModel: string,
  fields: MetaFields = {},
): (at: number) => SessionEvent {
  return callUpdate(
    toolCallId,
    { status: 'completed', rawOutput: { forModel } },
    { exit: { code: 0 }, ...fields },
  )
}

/** A call that is being written, so long by now. */
export function draft(
  messageId: string,
  place: number,
  chars: number,
  fields: MetaFields = {},
): (at: number) => SessionEvent {
  const event = {
    type: 'call_drafted',
    messageId,
    place,
    name: 'run_shell_command',
    chars,
    text: 'x'.repeat(chars),
  } as const
  return (at) => makeSandlotEvent(event, { ...fields, live: true }, at)
}

const piece = fc.string({ minLength: 1, maxLength: 6, unit: 'grapheme' })

const note = fc.constantFrom<SandlotEvent>(
  { type: 'compacted', summary: '', upTo: 0, prunedUpTo: 1 },
  { type: 'compacted', summary: 'They spoke.', upTo: 1 },
  { type: 'model_changed', model: 'other', why: 'quota' },
)

/** One turn: perhaps a thought and a text (perhaps withdrawn once), then calls whose outputs interleave. */
const turn = fc.record({
  notes: fc.array(note, { maxLength: 2 }),
  thought: fc.array(piece, { maxLength: 3 }),
  withdrawn: fc.boolean(),
  answer: fc.array(piece, { maxLength: 4 }),
  calls: fc.array(
    fc.record({
      output: fc.array(piece, { maxLength: 4 }),
      drafts: fc.nat({ max: 2 }),
      asks: fc.boolean(),
      fails: fc.boolean(),
    }),
    { maxLength: 3 },
  ),
})

/** Whole sessions of a few prompts, each event as the agent would have sent it. */
export const session: fc.Arbitrary<SessionEvent[]> = fc
  .array(fc.array(turn, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 })
  .map((prompts) => {
    const recorder = new Recorder()
    prompts.forEach((turns, p) => {
      const promptId = `p${p}`
      recorder.happened({ type: 'prompt_started', requestId: `r${p}` }, { promptId })
      recorder.settled(text('user_message_chunk', `u${p}`, `prompt ${p}`, { promptId }))
      for (let n = 1; n <= p % 3; n++) {
        const content = { type: 'image', mimeType: 'image/png', data: '', uri: `/${p}/${n}` } as const
        const image = text('user_message_chunk', `u${p}_${n}`, '', { promptId })
        recorder.settled((at) => ({ ...image(at), content }) as SessionEvent)
      }
      turns.forEach((one, t) => {
        const fields = { promptId, turn: t + 1 }
        const stream = (
          kind: 'agent_message_chunk' | 'agent_thought_chunk',
          id: string,
          pieces: string[],
        ): void => {
          let offset = 0
          for (const part of pieces) {
            recorder.live(text(kind, id, part, { ...fields, live: true, offset }))
            offset += part.length
          }
        }
        const write = (messageId: string): void => {
          one.calls.forEach(({ drafts }, place) => {
            for (let n = 1; n <= drafts; n++) recorder.live(draft(messageId, place, n, fields))
          })
        }
        for (const happened of one.notes) recorder.happened(happened, fields)
        if (one.withdrawn && one.answer.length > 0) {
          stream('agent_message_chunk', `m${p}.${t}.a`, one.answer)
          write(`m${p}.${t}.a`)
          const shown = { role: 'assistant', text: one.answer.join('') } as const
          const event = { type: 'message_withdrawn', messageId: `m${p}.${t}.a`, why: 'timeout' } as const
          recorder.happened(t % 2 === 0 ? { ...event, shown } : event, fields)
        }
        for (const [kind, id, pieces] of [
          ['agent_thought_chunk', `t${p}.${t}`, one.thought],
          ['agent_message_chunk', `m${p}.${t}`, one.answer],
        ] as const) {
          if (pieces.length === 0) continue
          stream(kind, id, pieces)
          if (kind === 'agent_message_chunk') write(id)
          recorder.settled(text(kind, id, pieces.join(''), fields))
        }
        if (one.answer.length === 0) write(`m${p}.${t}`)
        const ids = one.calls.map((_, c) => `c${p}.${t}.${c}`)
        for (const id of ids) recorder.settled(call(id, fields))
        one.calls.forEach((made, c) => {
          const id = ids[c] ?? ''
          if (made.asks) {
            recorder.happened({ type: 'approval_asked', toolCallId: id, options: [], expiresAt: 9e9 }, fields)
            recorder.happened(
              { type: 'approval_answered', toolCallId: id, allowed: true, by: 'user' },
              fields,
            )
          }
          recorder.settled(
            callUpdate(id, { status: 'in_progress' }, { ...fields, attempt: { n: 1, boot: 'b' } }),
          )
        })
        const longest = Math.max(0, ...one.calls.map((made) => made.output.length))
        const ends = one.calls.map(() => 0)
        for (let i = 0; i < longest; i++) {
          one.calls.forEach((made, c) => {
            const data = made.output[i]
            if (data === undefined) return
            const offset = ends[c] ?? 0
            const end = offset + new TextEncoder().encode(data).length
            ends[c] = end
            recorder.live(
              callUpdate(ids[c] ?? '', {}, { ...fields, live: true, output: { offset, end, data } }),
            )
          })
        }
        one.calls.forEach((made, c) => {
          const result = made.output.join('')
          recorder.settled(
            made.fails
              ? callUpdate(
                  ids[c] ?? '',
                  { status: 'failed', rawOutput: { forModel: result } },
                  { ...fields, reason: 'timeout' },
                )
              : outcome(ids[c] ?? '', result, fields),
          )
        })
        if (ids.length > 0) recorder.happened({ type: 'turn_ended', callIds: ids }, fields)
      })
      recorder.happened({ type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' }, { promptId })
    })
    return recorder.events
  })
