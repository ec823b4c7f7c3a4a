/**
 * One answer of a model, listened to until it is whole, only repeats itself, or is not wanted any
 * more.
 */
import { orAborted } from '@sandlot/shared/async/or-aborted'
import {
  makeSandlotEvent,
  sandlotEventOf,
  type EventGroup,
  type EventOf,
  type SessionEvent,
} from '@sandlot/shared/chat/events'
import { draftText } from '@sandlot/shared/transcript/call-drafts'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { RepetitionDetector } from '../limits/repetition.ts'
import type { Model, ModelAnswer, ModelChunk, ModelRequest } from '../model/model.ts'
import { normalizeAnswer } from '../model/normalize-answer.ts'
import type { LoopContext } from './context.ts'

/** The answer was cut off because it only repeated itself: it might never have ended. */
export class RepetitionError extends Error {
  override readonly name = 'RepetitionError'
  constructor() {
    super('The model said the same words again and again.')
  }
}

/**
 * Hands each piece to `onPiece` as it arrives, synchronously, and none after the signal aborts.
 * Rejects with `RepetitionError`, what the model or `onPiece` throws, or the signal's reason: at
 * once, also where the client ignores it. The request is closed then: the provider must not go on
 * at our cost.
 */
export async function streamAnswer(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  onPiece?: (piece: ModelChunk) => void,
): Promise<ModelAnswer> {
  const watches = { text: new RepetitionDetector(), thought: new RepetitionDetector() }
  const cutOff = new AbortController()
  const wanted = AbortSignal.any([signal, cutOff.signal])
  const take = (piece: ModelChunk): void => {
    if (wanted.aborted) return
    try {
      onPiece?.(piece)
    } catch (error) {
      cutOff.abort(error)
      return
    }
    if (piece.type !== 'call' && watches[piece.type].add(piece.text)) cutOff.abort(new RepetitionError())
  }
  return normalizeAnswer(await orAborted(model.stream(request, wanted, take), wanted))
}

/*
 * The model's answer in one attempt: live while it arrives, settled when it is complete, withdrawn
 * when it broke off.
 */

/**
 * After a crash: the message that was on its way when the process died is withdrawn, whether or not
 * a client showed it.
 */
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
 * Ids of the attempt that is on its way, derived from the log, so that after a crash the next
 * process knows which ids the screens may have seen. Each withdrawn attempt makes new ones.
 */
function messageIds(ctx: SpeechContext, turn: number): { message: string; thought: string } {
  const stem = `${ctx.promptId.replace(/^p_/, '')}_${turn}`
  const withdrawn = ctx.log().filter((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'message_withdrawn' && happened.messageId.startsWith(`m_${stem}_`)
  }).length
  return { message: `m_${stem}_${withdrawn + 1}`, thought: `t_${stem}_${withdrawn + 1}` }
}

/** The number of withdrawn answers of this turn for this reason. */
export function withdrawnFor(ctx: LoopContext, turn: number, why: string): number {
  const stem = `m_${ctx.promptId.replace(/^p_/, '')}_${turn}_`
  return ctx.log().filter((event) => {
    const happened = sandlotEventOf(event)
    return (
      happened?.type === 'message_withdrawn' && happened.why === why && happened.messageId.startsWith(stem)
    )
  }).length
}

type Kind = 'text' | 'thought'
type SpeechContext = Pick<LoopContext, 'promptId' | 'log' | 'now'>

/** Milliseconds between two looks at a call that is being written. */
const DRAFT_MS = 100

/** The model's answer so far in one attempt. */
export class StreamedAnswer {
  text = ''
  thought = ''
  readonly #ctx: SpeechContext
  readonly #turn: number
  readonly #ids: { message: string; thought: string }
  /** By place: when a call was shown last. */
  readonly #drafted = new Map<number, number>()

  constructor(ctx: SpeechContext, turn: number) {
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

  /** The live event of a call that is being written; undefined when it was shown a moment ago. */
  draft({ place, name, args }: Extract<ModelChunk, { type: 'call' }>): SessionEvent | undefined {
    const at = this.#ctx.now()
    const last = this.#drafted.get(place)
    if (last !== undefined && Math.abs(at - last) < DRAFT_MS) return undefined
    this.#drafted.set(place, at)
    const text = draftText(args)
    const messageId = this.#ids.message
    return makeSandlotEvent(
      { type: 'call_drafted', messageId, place, name, chars: args.length, text },
      { promptId: this.#ctx.promptId, turn: this.#turn, live: true },
      at,
    )
  }

  /**
   * The whole messages: what was said so far, or the answer's own text. Empty ones are left out.
   */
  settled(answer: Pick<ModelAnswer, 'text' | 'thought'> = this): SessionEvent[] {
    const events: SessionEvent[] = []
    if (answer.thought !== '') events.push(this.#chunk('thought', answer.thought.toWellFormed(), {}))
    if (answer.text !== '') events.push(this.#chunk('text', answer.text.toWellFormed(), {}))
    return events
  }

  /**
   * The settled empty message that carries what the provider wants back, when nothing else could.
   */
  carrier(): SessionEvent {
    return this.#chunk('text', '', {})
  }

  /**
   * Withdraws a shown answer from the conversation. `read`: the part that stays on the screen,
   * marked as cut. Nothing to do when nothing was shown.
   */
  *withdraw(why: string, read: Pick<ModelAnswer, 'text' | 'thought'> = this): Generator<EventGroup, void> {
    if (this.text === '' && this.thought === '' && this.#drafted.size === 0) return
    const at = this.#ctx.now()
    const meta = { promptId: this.#ctx.promptId, turn: this.#turn }
    const withdrawn = (messageId: string, role: 'assistant' | 'thought', text: string): SessionEvent => {
      const event = { type: 'message_withdrawn', messageId, why } as const
      const shown = { role, text: text.toWellFormed() }
      return makeSandlotEvent(text === '' ? event : { ...event, shown }, meta, at)
    }
    const thought = this.thought === '' ? [] : [withdrawn(this.#ids.thought, 'thought', read.thought)]
    yield [...thought, withdrawn(this.#ids.message, 'assistant', read.text)]
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
