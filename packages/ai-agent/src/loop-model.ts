/**
 * One turn's question to the model: live text while it arrives, retries with what was shown withdrawn, and the settled
 * answer as a group for the loop to store together with its calls.
 */
import {
  type EventOf,
  type SessionEvent,
  type TokenUsage,
  makeMeta,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
} from '@sandlot/shared/events'
import { messageOf } from '@sandlot/shared/errors'
import { modelMessages } from './history.ts'
import type { EventGroup, LoopContext } from './loop-context.ts'
import { BUG_TEXT } from './loop-endings.ts'
import { pause, retryVerdict } from './loop-retry.ts'
import { type ModelAnswer, type ModelCall, ModelError } from './model/model.ts'

export type Asked =
  | {
      got: 'answer'
      /** To store: thoughts, message, usage. */
      settled: SessionEvent[]
      text: string
      calls: ModelCall[]
      /** Why the prompt is over. Undefined with calls, and when the answer was empty. */
      ending: 'completed' | 'length' | 'refusal' | undefined
    }
  | { got: 'stopped'; settled: SessionEvent[]; text: string }
  | { got: 'error'; message: string }

/** Ask until there is an answer, a Stop, or an error that no retry mends. */
export async function* askModel(ctx: LoopContext, turn: number): AsyncGenerator<EventGroup, Asked> {
  const request = { messages: modelMessages(ctx.log(), ctx.system), tools: ctx.tools }
  const signal = AbortSignal.any([ctx.signal, ctx.leaving])
  for (let attempt = 1; ; attempt++) {
    const speech = new Speech(ctx, turn)
    try {
      const stream = ctx.model.stream(request, signal)
      for (;;) {
        const next = await stream.next()
        if (next.done === true) return answered(ctx, turn, speech, next.value)
        if (next.value.type !== 'call_started') yield [speech.add(next.value.type, next.value.text)]
      }
    } catch (error) {
      if (ctx.signal.aborted) return { got: 'stopped', settled: speech.settled(), text: speech.text }
      ctx.leaving.throwIfAborted()
      if (!(error instanceof ModelError)) {
        ctx.warn({ error: messageOf(error), promptId: ctx.promptId, turn }, 'the model client threw')
        yield* speech.withdraw('error')
        return { got: 'error', message: BUG_TEXT }
      }
      const verdict = retryVerdict(error, attempt, ctx.retry)
      const { class: errorClass, status } = error
      ctx.warn({ errorClass, status, attempt, promptId: ctx.promptId, turn }, 'a model request failed')
      yield* speech.withdraw(errorClass)
      if (!verdict.again) return { got: 'error', message: verdict.message }
      await pause(verdict.waitMs, signal)
      ctx.leaving.throwIfAborted()
      if (ctx.signal.aborted) return { got: 'stopped', settled: [], text: '' }
    }
  }
}

/** After a crash: the message that was on its way when the process died is withdrawn, whether or not anybody saw it. */
export function withdrawCutOff(ctx: LoopContext, turn: number): EventGroup {
  const ids = messageIds(ctx, turn)
  return [ids.thought, ids.message].map((messageId) =>
    makeSandlotEvent(
      { type: 'message_withdrawn', messageId, why: 'interrupted' },
      { promptId: ctx.promptId, turn },
      ctx.now(),
    ),
  )
}

/**
 * Ids of the attempt that is on its way, derived from the log, so that after a crash the next process knows which ids
 * the screens may have seen. Each withdrawn attempt makes new ones.
 */
function messageIds(ctx: LoopContext, turn: number): { message: string; thought: string } {
  const stem = `${ctx.promptId.replace(/^p_/, '')}_${turn}`
  const withdrawn = ctx.log().filter((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'message_withdrawn' && happened.messageId.startsWith(`m_${stem}_`)
  }).length
  return { message: `m_${stem}_${withdrawn + 1}`, thought: `t_${stem}_${withdrawn + 1}` }
}

type Kind = 'text' | 'thought'

/** What the model has said so far in one attempt. */
class Speech {
  text = ''
  thought = ''
  readonly #ctx: LoopContext
  readonly #turn: number
  readonly #ids: { message: string; thought: string }

  constructor(ctx: LoopContext, turn: number) {
    this.#ctx = ctx
    this.#turn = turn
    this.#ids = messageIds(ctx, turn)
  }

  /** The live event of one more piece. */
  add(kind: Kind, piece: string): SessionEvent {
    const offset = this[kind].length
    this[kind] += piece
    return this.#chunk(kind, piece, { live: true, offset })
  }

  /** The whole messages: what was said so far, or the answer's own text. Empty ones are left out. */
  settled(answer: Pick<ModelAnswer, 'text' | 'thought'> = this): SessionEvent[] {
    const events: SessionEvent[] = []
    if (answer.thought !== '') events.push(this.#chunk('thought', answer.thought.toWellFormed(), {}))
    if (answer.text !== '') events.push(this.#chunk('text', answer.text.toWellFormed(), {}))
    return events
  }

  /** The settled empty message that carries what the provider wants back, when nothing else could. */
  carrier(): SessionEvent {
    return this.#chunk('text', '', {})
  }

  /** Takes back what was shown. Nothing to do when nothing was. */
  async *withdraw(why: string): AsyncGenerator<EventGroup, void> {
    if (this.text === '' && this.thought === '') return
    const at = this.#ctx.now()
    const meta = { promptId: this.#ctx.promptId, turn: this.#turn }
    const ids = this.thought === '' ? [this.#ids.message] : [this.#ids.thought, this.#ids.message]
    yield ids.map((messageId) => makeSandlotEvent({ type: 'message_withdrawn', messageId, why }, meta, at))
  }

  #chunk(
    kind: Kind,
    text: string,
    live: { live: true; offset: number } | Record<string, never>,
  ): EventOf<'agent_message_chunk' | 'agent_thought_chunk'> {
    return {
      sessionUpdate: kind === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk',
      messageId: kind === 'text' ? this.#ids.message : this.#ids.thought,
      content: { type: 'text', text },
      _meta: makeMeta({ promptId: this.#ctx.promptId, turn: this.#turn, ...live }, this.#ctx.now()),
    }
  }
}

function answered(ctx: LoopContext, turn: number, speech: Speech, answer: ModelAnswer): Asked {
  const settled = speech.settled(answer)
  if (answer.replay !== undefined) {
    if (settled.length === 0) settled.push(speech.carrier())
    const [first, ...rest] = settled
    if (first !== undefined) {
      const sandlot = { ...metaOf(first), forProvider: { answer: answer.replay } }
      settled.splice(0, settled.length, { ...first, _meta: { ...first._meta, sandlot } }, ...rest)
    }
  }
  const usage = usageEvent(ctx, turn, answer.usage)
  if (usage !== undefined) settled.push(usage)
  return { got: 'answer', settled, text: answer.text, calls: answer.calls, ending: endingOf(answer) }
}

/** Calls decide, not the finish word: with calls the prompt goes on. */
function endingOf(answer: ModelAnswer): 'completed' | 'length' | 'refusal' | undefined {
  if (answer.calls.length > 0) return undefined
  if (answer.finish === 'length') return 'length'
  if (answer.finish === 'content_filter') return 'refusal'
  return answer.text.trim() === '' ? undefined : 'completed'
}

/** Tokens in the context after this answer. Nothing when the provider did not count. */
function usageEvent(ctx: LoopContext, turn: number, usage: TokenUsage): SessionEvent | undefined {
  if (usage.input === undefined && usage.output === undefined) return undefined
  return {
    sessionUpdate: 'usage_update',
    used: (usage.input ?? 0) + (usage.output ?? 0),
    size: ctx.model.contextWindow,
    _meta: makeMeta({ promptId: ctx.promptId, turn, usage }, ctx.now()),
  }
}
