/**
 * Makes room in the model's window. Old results are left out first; where that is not enough, a
 * summary stands for the older part of the conversation. What is decided becomes a `compacted`
 * event, so that every later request, also after a restart, is computed from the log; the events
 * that it stands for stay where they are.
 */
import {
  type EventOf,
  type SessionEvent,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
  type EventGroup,
} from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { messageOf } from '@sandlot/shared/base/errors'
import type { ErrorCause } from '@sandlot/shared/chat/reasons'
import { modelMessages, systemText } from '../history/model-messages.ts'
import type { LoopContext } from './context.ts'
import { endBeforeRequest } from './stop-conditions.ts'
import { pause, retryVerdict } from './retry.ts'
import { usageEvent } from './usage.ts'
import { messagesTokens, textTokens, toolsTokens } from '../model/tokens.ts'
import { RepetitionError, streamAnswer } from './streamed-answer.ts'
import { type Model, type ModelAnswer, type ModelMessage, ModelError } from '../model/model.ts'
import { contextSize, readerOf } from './context-size.ts'
import { loadReplays, refusedReplay, storedCause } from './replays.ts'
import { fittingTools, isTooSmall } from './fit-tools.ts'
import { planCut, planPruning, planPruningOfAll } from './plan.ts'
import { mechanicalSummary, summaryMessages, summaryText } from './summary.ts'

/** Room is made when the next request would pass this share of the window. */
const FULL = 0.8
/** Leaving out results is enough when it brings the request below this share. */
const ROOMY = 0.6
/**
 * Share of the window that a summary may take: one that does not end would leave no room at all.
 */
const SUMMARY = 0.2
/** The same of one that was not written by a model. */
const MECHANICAL = 0.1
/** Tokens of the smallest window that servers load a model with by default. */
const SMALLEST = 2_048
/** Requests for one summary. */
const ATTEMPTS = 2

type Why = 'window' | 'overflow' | 'asked'
type Compacted = Extract<
  NonNullable<EventOf<'session_info_update'>['_meta']['sandlot']['event']>,
  { type: 'compacted' }
>

/** Why the model gave no summary, with the provider's own name for the request. */
interface NoSummary {
  cause: ErrorCause
  requestId?: string
}

/** The result of making room. */
export type MadeRoom = 'done' | 'nothing' | NoSummary

/**
 * Before a request: nothing, unless it would come near the window. Returns whether there was
 * anything to leave out.
 */
export async function* makeRoomIfFull(
  ctx: LoopContext,
  turn: number,
  model: Model,
): AsyncGenerator<EventGroup, boolean> {
  if (sizeOf(ctx, model) <= model.window.tokens * FULL || justMadeRoom(ctx, model)) return false
  return yield* makeRoom(ctx, turn, model, 'window')
}

/**
 * Room was made in this prompt and not much has come since. What is left (system prompt, tools, the
 * last turn) is then too large by itself: to summarise again before every request would cost as
 * much as the work. An overflow still makes room.
 */
function justMadeRoom(ctx: LoopContext, model: Model): boolean {
  const log = ctx.log()
  const made = log.findLastIndex(
    (event) => sandlotEventOf(event)?.type === 'compacted' && metaOf(event).promptId === ctx.promptId,
  )
  if (made === -1) return false
  // The new size marks the end: a process that died between two steps leaves the rest of them to
  // this one.
  const isPublished = (event: SessionEvent): boolean =>
    event.sessionUpdate === 'usage_update' && metaOf(event).turn !== undefined
  if (!log.slice(made).some(isPublished)) return false
  // Another model has another window.
  if (log.slice(made).some((event) => sandlotEventOf(event)?.type === 'model_changed')) return false
  const tokensOf = (events: readonly SessionEvent[]): number =>
    messagesTokens(modelMessages(events, ctx.system, readerOf(model)))
  const since = tokensOf(log) - tokensOf(log.slice(0, made + 1))
  return since < model.window.tokens * (FULL - ROOMY)
}

/**
 * Make room now. Returns whether there was anything to leave out: nothing where the instructions
 * leave no room for a message. Stops early when the prompt is stopped.
 */
export async function* makeRoom(
  ctx: LoopContext,
  turn: number,
  model: Model,
  why: Why,
): AsyncGenerator<EventGroup, boolean> {
  if (isTooSmall(ctx, model)) return false
  // The refused request is larger than our estimate; the provider's own size of the context is
  // unknown.
  const window = why === 'overflow' ? Math.min(model.window.tokens, sizeOf(ctx, model)) : model.window.tokens
  let made = false

  const prunedUpTo = planPruning(ctx.log(), window)
  if (prunedUpTo !== undefined) {
    yield [compacted(ctx, turn, { summary: '', upTo: 0, prunedUpTo, why })]
    made = true
    if (sizeOf(ctx, model) <= window * ROOMY) {
      yield* publishSize(ctx, turn, model)
      return true
    }
  }
  const upTo = planCut(ctx.log(), window)
  if (upTo !== undefined) {
    const written = yield* askForSummary(ctx, turn, model, window)
    if (ctx.signal.aborted || ctx.released.aborted) return made
    if (!('cause' in written)) {
      const summary = summaryText(written.text, ctx.log(), upTo, window * SUMMARY)
      const usage = usageEvent(ctx, turn, model, written.usage)
      yield [...(usage === undefined ? [] : [usage]), compacted(ctx, turn, { summary, upTo, why })]
      yield* publishSize(ctx, turn, model)
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
    yield [
      compacted(ctx, turn, { summary: summaryText(words, ctx.log(), upTo, window * SUMMARY), upTo, why }),
    ]
    made = true
  }
  if (made) yield* publishSize(ctx, turn, model)
  return made
}

/**
 * On request: a summary of all but the last turn; where there is nothing for one, old
 * results. What the model does not summarise stays as it is: room is not needed. `focus`:
 * what the summary must not lose.
 */
export async function* makeRoomNow(
  ctx: LoopContext,
  model: Model,
  focus?: string,
): AsyncGenerator<EventGroup, MadeRoom> {
  const upTo = planCut(ctx.log(), 0)
  if (upTo !== undefined) {
    const written = yield* askForSummary(ctx, undefined, model, model.window.tokens, focus)
    if ('cause' in written) return written
    const summary = summaryText(written.text, ctx.log(), upTo, model.window.tokens * SUMMARY)
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
  yield* publishSize(ctx, undefined, model)
  return 'done'
}

/** True if the next request is likely to fit. */
export function fits(ctx: LoopContext, model: Model): boolean {
  return sizeOf(ctx, model) <= model.window.tokens
}

/** True if the next request may be longer than the model holds, whatever its window is said. */
export function mayNotFit(ctx: LoopContext, model: Model): boolean {
  const { tokens, from } = model.window
  return sizeOf(ctx, model) > (from === 'assumed' ? SMALLEST : tokens / 2)
}

function sizeOf(ctx: LoopContext, model: Model): number {
  return contextSize(ctx.log(), ctx.system, fittingTools(ctx, model), readerOf(model))
}

function compacted(ctx: LoopContext, turn: number | undefined, what: Omit<Compacted, 'type'>): SessionEvent {
  return makeSandlotEvent({ type: 'compacted', ...what }, { promptId: ctx.promptId, turn }, ctx.now())
}

/**
 * So that the screen shows how full the window is now, and the last of the steps. An estimate, not
 * a count.
 */
async function* publishSize(
  ctx: LoopContext,
  turn: number | undefined,
  model: Model,
): AsyncGenerator<EventGroup, void> {
  const _meta = makeMeta({ promptId: ctx.promptId, turn, windowFrom: model.window.from }, ctx.now())
  yield [{ sessionUpdate: 'usage_update', used: sizeOf(ctx, model), size: model.window.tokens, _meta }]
}

/**
 * The model's summary, or why it gives none: then there are other ways. What an answer
 * took that was none is stored without a turn: it is neither the turn's answer nor what the summary
 * took.
 */
async function* askForSummary(
  ctx: LoopContext,
  turn: number | undefined,
  model: Model,
  window: number,
  focus?: string,
): AsyncGenerator<EventGroup, ModelAnswer | NoSummary> {
  const signal = AbortSignal.any([ctx.signal, ctx.released])
  const conversation = async (): Promise<ModelMessage[]> => {
    const reader = { ...readerOf(model), stored: await loadReplays(ctx, model) }
    return modelMessages(ctx.log(), ctx.system, reader)
  }
  // The same tools as ever: without them providers refuse a history with calls, and forget what
  // they cached of it.
  const tools = fittingTools(ctx, model)
  const system = textTokens(systemText(ctx.log(), ctx.system))
  const most = Math.max(window * SUMMARY, window * FULL - system - toolsTokens(tools))
  const { wire } = model
  let messages = summaryMessages(await conversation(), most, focus)
  const unusable: NoSummary = { cause: 'protocol' }
  let failure = unusable
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    if (attempt > 1 && (await endBeforeRequest(ctx)) !== undefined) return failure
    let rejected: SessionEvent | undefined
    try {
      const answer = await streamAnswer(model, { messages, tools, wire }, signal)
      if (answer.text.trim() !== '' && answer.calls.length === 0) return answer
      ctx.warn({ promptId: ctx.promptId, turn, attempt }, 'the model gave no summary')
      failure = unusable
      rejected = usageEvent(ctx, undefined, model, answer.usage)
    } catch (error) {
      if (signal.aborted) return failure
      const fields = { promptId: ctx.promptId, turn, attempt, error: messageOf(error) }
      ctx.warn(fields, 'a summary could not be had')
      failure = unusable
      if (error instanceof RepetitionError) continue
      if (!(error instanceof ModelError)) return { cause: 'internal' }
      failure = { cause: storedCause(error.class), requestId: error.requestId }
      const refused = refusedReplay(ctx, turn, model, error)
      if (refused !== undefined) {
        yield [refused]
        messages = summaryMessages(await conversation(), most, focus)
        continue
      }
      const verdict = retryVerdict(error, attempt, ctx.retry)
      if (!verdict.again) return failure
      await pause(verdict.waitMs, signal)
    }
    if (rejected !== undefined) yield [rejected]
  }
  return failure
}
