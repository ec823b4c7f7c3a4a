/**
 * Makes room in the model's window. Old results are left out first; where that is not enough, a summary stands for the older
 * part of the conversation. What is decided becomes a `compacted` event, so that every later request, also after a
 * restart, is computed from the log; the events that it stands for stay where they are.
 */
import { type EventOf, type SessionEvent, makeSandlotEvent } from '@sandlot/shared/events'
import { makeMeta } from '@sandlot/shared/event-meta'
import { messageOf } from '@sandlot/shared/errors'
import { modelMessages } from '../history-messages.ts'
import type { EventGroup, LoopContext } from '../loop-context.ts'
import { pause, retryVerdict } from '../loop-retry.ts'
import { usageEvent } from '../loop-usage.ts'
import { type Model, type ModelAnswer, ModelError } from '../model/model.ts'
import { contextSize } from './context-size.ts'
import { planCut, planPruning, planPruningOfAll } from './plan.ts'
import { mechanicalSummary, summaryMessages, summaryText } from './summary.ts'

/** Room is made when the next request would pass this share of the window. */
const FULL = 0.8
/** Leaving out results is enough when it brings the request below this share. */
const ROOMY = 0.6
/** Tokens of the window that a summary which was not written by a model may take. */
const MECHANICAL = 0.1
/** Requests for one summary. */
const ATTEMPTS = 2

type Why = 'window' | 'overflow' | 'asked'
type Compacted = Extract<
  NonNullable<EventOf<'session_info_update'>['_meta']['sandlot']['event']>,
  { type: 'compacted' }
>

/** Before a request: nothing, unless it would come near the window. */
export async function* makeRoomIfFull(
  ctx: LoopContext,
  turn: number,
  model: Model,
): AsyncGenerator<EventGroup, void> {
  if (sizeOf(ctx, model) > model.contextWindow * FULL) yield* makeRoom(ctx, turn, model, 'window')
}

/** Make room now. Returns whether there was anything to leave out. Stops early when the prompt is stopped. */
export async function* makeRoom(
  ctx: LoopContext,
  turn: number,
  model: Model,
  why: Why,
): AsyncGenerator<EventGroup, boolean> {
  // What the provider refused is larger than what we thought; its own idea of the window is unknown.
  const window = why === 'overflow' ? Math.min(model.contextWindow, sizeOf(ctx, model)) : model.contextWindow
  let made = false

  const prunedUpTo = planPruning(ctx.log(), window)
  if (prunedUpTo !== undefined) {
    yield [compacted(ctx, turn, { summary: '', upTo: 0, prunedUpTo, why })]
    made = true
    if (sizeOf(ctx, model) <= window * ROOMY) return true
  }
  const upTo = planCut(ctx.log(), window)
  if (upTo !== undefined) {
    const written = await askForSummary(ctx, turn, model, window)
    if (ctx.signal.aborted || ctx.leaving.aborted) return made
    if (written !== undefined) {
      const summary = summaryText(written.text, ctx.log(), upTo)
      const usage = usageEvent(ctx, turn, model, written.usage)
      yield [...(usage === undefined ? [] : [usage]), compacted(ctx, turn, { summary, upTo, why })]
      yield* tellSize(ctx, turn, model)
      return true
    }
  }
  // Without a summary: leave out all that may go, and only then the older part itself.
  const allUpTo = planPruningOfAll(ctx.log())
  if (allUpTo !== undefined) {
    yield [compacted(ctx, turn, { summary: '', upTo: 0, prunedUpTo: allUpTo, why })]
    made = true
  }
  if (upTo !== undefined && sizeOf(ctx, model) > window * FULL) {
    const words = mechanicalSummary(ctx.log(), upTo, window * MECHANICAL)
    yield [compacted(ctx, turn, { summary: summaryText(words, ctx.log(), upTo), upTo, why })]
    made = true
  }
  if (made) yield* tellSize(ctx, turn, model)
  return made
}

/**
 * Because somebody asked: a summary of all but the last turn; where there is nothing for one, old results. What the model
 * does not summarise stays as it is: nobody is in need of room. `focus`: what the summary must not lose.
 */
export async function* makeRoomNow(
  ctx: LoopContext,
  model: Model,
  focus?: string,
): AsyncGenerator<EventGroup, 'done' | 'nothing' | 'failed'> {
  const upTo = planCut(ctx.log(), 0)
  if (upTo !== undefined) {
    const written = await askForSummary(ctx, undefined, model, model.contextWindow, focus)
    if (written === undefined) return 'failed'
    const summary = summaryText(written.text, ctx.log(), upTo)
    const usage = usageEvent(ctx, undefined, model, written.usage)
    yield [
      ...(usage === undefined ? [] : [usage]),
      compacted(ctx, undefined, { summary, upTo, why: 'asked' }),
    ]
  } else {
    const prunedUpTo = planPruningOfAll(ctx.log())
    if (prunedUpTo === undefined) return 'nothing'
    yield [compacted(ctx, undefined, { summary: '', upTo: 0, prunedUpTo, why: 'asked' })]
  }
  yield* tellSize(ctx, undefined, model)
  return 'done'
}

function sizeOf(ctx: LoopContext, model: Model): number {
  return contextSize(ctx.log(), ctx.system, ctx.tools, readerOf(model))
}

function readerOf(model: Model): { model: string; contextWindow: number } {
  return { model: model.name, contextWindow: model.contextWindow }
}

function compacted(ctx: LoopContext, turn: number | undefined, what: Omit<Compacted, 'type'>): SessionEvent {
  return makeSandlotEvent({ type: 'compacted', ...what }, { promptId: ctx.promptId, turn }, ctx.now())
}

/** So that the screen shows how full the window is now. An estimate: nobody has counted. */
async function* tellSize(
  ctx: LoopContext,
  turn: number | undefined,
  model: Model,
): AsyncGenerator<EventGroup, void> {
  const _meta = makeMeta({ promptId: ctx.promptId, turn }, ctx.now())
  yield [{ sessionUpdate: 'usage_update', used: sizeOf(ctx, model), size: model.contextWindow, _meta }]
}

/** The model's summary, or undefined when it gives none: then there are other ways. */
async function askForSummary(
  ctx: LoopContext,
  turn: number | undefined,
  model: Model,
  window: number,
  focus?: string,
): Promise<ModelAnswer | undefined> {
  const signal = AbortSignal.any([ctx.signal, ctx.leaving])
  const conversation = modelMessages(ctx.log(), ctx.system, readerOf(model))
  // The same tools as ever: without them providers refuse a history with calls, and forget what they cached of it.
  const request = { messages: summaryMessages(conversation, window * FULL, focus), tools: ctx.tools }
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      const stream = model.stream(request, signal)
      let next = await stream.next()
      while (next.done !== true) next = await stream.next()
      if (next.value.text.trim() !== '' && next.value.calls.length === 0) return next.value
      ctx.warn({ promptId: ctx.promptId, turn, attempt }, 'the model gave no summary')
    } catch (error) {
      if (signal.aborted) return undefined
      const fields = { promptId: ctx.promptId, turn, attempt, error: messageOf(error) }
      ctx.warn(fields, 'a summary could not be had')
      if (!(error instanceof ModelError)) return undefined
      const verdict = retryVerdict(error, attempt, ctx.retry)
      if (!verdict.again) return undefined
      await pause(verdict.waitMs, signal)
    }
  }
  return undefined
}
