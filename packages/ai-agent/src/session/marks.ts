/**
 * Marks answers with the request that they were given to. The digests are made while the provider
 * is at work, so nobody waits for them; the mark goes into the log together with the answer.
 */
import { setImmediate as afterThis } from 'node:timers/promises'
import { type SessionEvent, metaOf, sandlotEventOf, type EventGroup } from '@sandlot/shared/events'
import type { Effects } from '@sandlot/storage/sessions/store'
import type { Model, ModelRequest } from '../model/model.ts'
import { RequestMarker } from '../replay/mark.ts'

export class RequestMarks {
  readonly #marker = new RequestMarker()
  #asked: ReturnType<RequestMarker['mark']> | undefined

  /** As `model.stream`. `upTo`: number of the last event. */
  async *ask(
    model: Model,
    request: ModelRequest,
    signal: AbortSignal,
    upTo: number,
  ): ReturnType<Model['stream']> {
    const answer = model.stream(request, signal)
    let first: ReturnType<typeof answer.next> | undefined = answer.next()
    void Promise.allSettled([first])
    await afterThis()
    this.#note(model, request, upTo)
    try {
      for (;;) {
        const next = await (first ?? answer.next())
        first = undefined
        if (next.done === true) return next.value
        yield next.value
      }
    } finally {
      await answer.return({ text: '', thought: '', calls: [], finish: 'unknown', usage: {} })
    }
  }

  /**
   * The group with the mark on the answer that it brings, if it brings one. Call `kept` once it is
   * stored.
   */
  onAnswer(group: EventGroup): { events: EventGroup; effects: Effects; kept: () => void } {
    // A summary was asked for behind the conversation: that request is not made from the log alone.
    if (group.some((event) => sandlotEventOf(event)?.type === 'compacted')) this.#asked = undefined
    const asked = this.#asked
    const place = group.findIndex(isAnswer)
    const event = group[place]
    if (asked === undefined || event === undefined)
      return { events: group, effects: {}, kept: () => undefined }
    this.#asked = undefined
    const sandlot = { ...metaOf(event), request: asked.mark }
    const marked: SessionEvent = { ...event, _meta: { ...event._meta, sandlot } }
    const events = group.with(place, marked)
    return { events, effects: { requestFrame: asked.frame }, kept: asked.kept }
  }

  #note(model: Model, request: ModelRequest, upTo: number): void {
    const { messages, tools = [], maxTokens } = request
    const wire = model.wire?.()
    const [system] = messages
    if (wire === undefined || system?.role !== 'system') return
    const frame = {
      system: system.content,
      tools,
      wire,
      reader: { model: model.name, contextWindow: model.contextWindow },
      maxTokens,
    }
    this.#asked = this.#marker.mark(request, frame, upTo)
  }
}

/**
 * An answer begins with what was said, or with the calls, or, when it was empty, with the end of
 * the turn.
 */
function isAnswer(event: SessionEvent): boolean {
  const { turn, event: happened } = metaOf(event)
  if (turn === undefined) return false
  return (
    event.sessionUpdate === 'agent_thought_chunk' ||
    event.sessionUpdate === 'agent_message_chunk' ||
    event.sessionUpdate === 'tool_call' ||
    event.sessionUpdate === 'usage_update' ||
    happened?.type === 'turn_ended'
  )
}
