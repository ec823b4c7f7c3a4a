/** Watches one running prompt from outside: its requests as a model, its events as they pass. Changes neither. */
import { isLive, isOutcome, metaOf, sandlotEventOf } from '@sandlot/shared/events'
import type { EventGroup } from '../loop-context.ts'
import type { Model } from '../model/model.ts'
import type { AgentMetrics } from './agent-metrics.ts'

export class MeasuredPrompt {
  readonly #into: AgentMetrics
  readonly #now: () => number
  /** When the last outcome was stored, until the next request. */
  #outcomeAt: number | undefined
  /** When the last answer was complete, until its first call starts. Undefined too once somebody was asked. */
  #answerAt: number | undefined
  #turns = 0
  #cost: number | null = null

  /** `now`: milliseconds on a clock that never jumps. */
  constructor(into: AgentMetrics, now: () => number = () => performance.now()) {
    this.#into = into
    this.#now = now
  }

  /** The same model; its requests are noted. */
  model(model: Model): Model {
    return { ...model, stream: (request, signal) => this.#noted(model.stream(request, signal)) }
  }

  /** The same groups; its times are noted when whoever takes it has stored it. */
  async *groups(groups: AsyncIterable<EventGroup>): AsyncGenerator<EventGroup, void> {
    for await (const group of groups) {
      // Before it is stored: whoever waits for the end then finds it counted.
      this.#count(group)
      yield group
      this.#note(group)
    }
  }

  async *#noted(answer: ReturnType<Model['stream']>): ReturnType<Model['stream']> {
    const began = this.#now()
    this.#into.request()
    if (this.#outcomeAt !== undefined) this.#into.continuation.add(began - this.#outcomeAt)
    this.#outcomeAt = undefined
    let first = true
    let finished = false
    try {
      for (;;) {
        const step = await answer.next()
        if (first) this.#into.firstToken.add(this.#now() - began)
        first = false
        if (step.done === true) {
          finished = true
          this.#answerAt = this.#now()
          return step.value
        }
        yield step.value
      }
    } catch (error) {
      // It has ended by itself.
      finished = true
      throw error
    } finally {
      if (!finished) await answer.return(undefined as never)
    }
  }

  #note(group: EventGroup): void {
    for (const event of group) {
      if (isLive(event)) continue
      if (isOutcome(event)) {
        this.#outcomeAt = this.#now()
      } else if (event.sessionUpdate === 'tool_call_update' && event.status === 'in_progress') {
        if (this.#answerAt !== undefined) this.#into.callStart.add(this.#now() - this.#answerAt)
        this.#answerAt = undefined
      }
      const happened = sandlotEventOf(event)
      // A person's time is not ours.
      if (happened?.type === 'approval_asked') this.#answerAt = undefined
    }
  }

  #count(group: EventGroup): void {
    for (const event of group) {
      const { turn = 0, usage, cost } = metaOf(event)
      this.#turns = Math.max(this.#turns, turn)
      if (event.sessionUpdate === 'usage_update' && usage !== undefined) {
        this.#into.usage(usage)
        if (cost !== undefined) this.#cost = (this.#cost ?? 0) + cost
      }
      const happened = sandlotEventOf(event)
      if (happened?.type === 'prompt_ended')
        this.#into.prompt({ reason: happened.reason, turns: this.#turns, cost: this.#cost })
    }
  }
}
