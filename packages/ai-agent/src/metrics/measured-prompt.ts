/**
 * Measures one running prompt: wraps its model to time requests, reads its events, and adds the
 * times to its end.
 */
import type { PromptTiming } from '@sandlot/shared/chat/event-meta'
import {
  type SessionEvent,
  isOutcome,
  metaOf,
  sandlotEventOf,
  type EventGroup,
} from '@sandlot/shared/chat/events'
import { type Model, type ModelAnswer, ModelError, askedBy } from '../model/model.ts'
import type { AgentMetrics } from './agent-metrics.ts'
import type { PromptRecord } from './report.ts'
import type { PromptTrace } from './tracing.ts'

const USED = ['input', 'output', 'cached', 'reasoning'] as const

export class MeasuredPrompt {
  readonly #into: AgentMetrics
  readonly #now: () => number
  readonly #trace: PromptTrace | undefined
  /** When the last outcome was stored, until the next request. */
  #outcomeAt: number | undefined
  /**
   * When the last answer was complete, until its first call starts. Undefined, too, once an
   * approval was asked for.
   */
  #answerAt: number | undefined
  #turns = 0
  #cost: number | null = null
  readonly #tokens = { input: 0, output: 0, cached: 0, reasoning: 0 }
  readonly #timing: PromptTiming = {}
  #ended: PromptRecord | undefined

  /** `now`: milliseconds of a monotonic clock. `trace`: the same as spans. */
  constructor(into: AgentMetrics, now: () => number = () => performance.now(), trace?: PromptTrace) {
    this.#into = into
    this.#now = now
    this.#trace = trace
  }

  /** Its usage and duration. Undefined until its end has passed. */
  get ended(): PromptRecord | undefined {
    return this.#ended
  }

  /** The same model, with its requests measured. */
  model(model: Model): Model {
    return askedBy(model, (request, signal, onPiece) =>
      this.#measured(model, (measured) =>
        model.stream(request, signal, (piece) => {
          measured()
          onPiece(piece)
        }),
      ),
    )
  }

  /**
   * The same groups, the last with the times; a group counts as stored when the consumer takes the
   * next.
   */
  async *groups(groups: AsyncIterable<EventGroup>): AsyncGenerator<EventGroup, void> {
    try {
      for await (const group of groups) {
        // Before it is stored: what waits for the end of the prompt then finds it counted.
        this.#count(group)
        this.#trace?.events(group)
        yield this.#ended === undefined ? group : group.map((event) => this.#timed(event))
        this.#recordTimes(group)
      }
    } finally {
      this.#trace?.end()
    }
  }

  /** `ask` calls its argument when a piece of the answer has come. */
  async #measured(
    model: Model,
    ask: (onAnswering: () => void) => Promise<ModelAnswer>,
  ): Promise<ModelAnswer> {
    const began = this.#now()
    const traced = this.#trace?.request(model)
    this.#into.request()
    if (this.#outcomeAt !== undefined) {
      const waited = began - this.#outcomeAt
      this.#into.continuation.add(waited)
      this.#timing.continuationMs = Math.max(waited, this.#timing.continuationMs ?? 0)
    }
    this.#outcomeAt = undefined
    let first = true
    const onAnswering = (): void => {
      if (!first) return
      first = false
      const waited = this.#now() - began
      this.#into.firstToken.add(waited)
      this.#timing.firstTokenMs ??= waited
      traced?.first(waited)
    }
    try {
      const answer = await ask(onAnswering)
      // Nothing was shown of it.
      onAnswering()
      this.#answerAt = this.#now()
      traced?.answered(answer)
      this.#into.health.served(model.name)
      return answer
    } catch (error) {
      traced?.broken(error)
      if (error instanceof ModelError) this.#into.health.failed(model.name, error.class)
      throw error
    }
  }

  #recordTimes(group: EventGroup): void {
    for (const event of group) {
      if (isOutcome(event)) {
        this.#outcomeAt = this.#now()
      } else if (event.sessionUpdate === 'tool_call_update' && event.status === 'in_progress') {
        if (this.#answerAt !== undefined) this.#into.callStart.add(this.#now() - this.#answerAt)
        this.#answerAt = undefined
      }
      const sandlotEvent = sandlotEventOf(event)
      // A person's time is not ours.
      if (sandlotEvent?.type === 'approval_asked') this.#answerAt = undefined
    }
  }

  #count(group: EventGroup): void {
    for (const event of group) {
      const { turn = 0, usage, cost, model = '' } = metaOf(event)
      this.#turns = Math.max(this.#turns, turn)
      if (event.sessionUpdate === 'usage_update' && usage !== undefined) {
        this.#into.usage(model, usage)
        for (const kind of USED) this.#tokens[kind] += usage[kind] ?? 0
        if (cost !== undefined) this.#cost = (this.#cost ?? 0) + cost
      }
      const sandlotEvent = sandlotEventOf(event)
      if (sandlotEvent?.type !== 'prompt_ended') continue
      this.#ended = {
        reason: sandlotEvent.reason,
        turns: this.#turns,
        cost: this.#cost,
        tokens: this.#tokens,
        ...this.#timing,
      }
      this.#into.prompt(this.#ended)
    }
  }

  #timed(event: SessionEvent): SessionEvent {
    if (sandlotEventOf(event)?.type !== 'prompt_ended') return event
    const meta = { ...metaOf(event), promptTiming: { ...this.#timing } }
    return { ...event, _meta: { ...event._meta, sandlot: meta } }
  }
}
