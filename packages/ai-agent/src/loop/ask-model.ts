/**
 * One turn's question to the model: live text while it arrives, retries with what was shown marked
 * as cut, room made when the window is full, another model when this one cannot serve, and the
 * settled answer as a group for the loop to store.
 */
import {
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
  type EventGroup,
  type SessionEvent,
} from '@sandlot/shared/chat/events'
import { messageOf } from '@sandlot/shared/base/errors'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { overflowedBefore } from '../history/compaction.ts'
import { fits, makeRoom, mayNotFit } from './make-room.ts'
import { fittingTools, isTooSmall } from './fit-tools.ts'
import { LARGER_WINDOW, learnWindow, modelInChat } from './learn-window.ts'
import { historyProblems, repairHistory } from '../history/check.ts'
import { type Reader, isEmpty, modelMessages, turnsOf } from '../history/model-messages.ts'
import { plainHistory } from '../history/plain.ts'
import { withoutRepetition } from '../limits/repetition.ts'
import { RepetitionError, StreamedAnswer, streamAnswer, withdrawnFor } from './streamed-answer.ts'
import type { LoopContext } from './context.ts'
import { readerOf } from './context-size.ts'
import {
  type ErrorAbout,
  BUG_TEXT,
  CHANT_TEXT,
  brokenHistoryText,
  tooSmallText,
  writtenCallText,
} from './endings.ts'
import { endBeforeRequest } from './stop-conditions.ts'
import {
  ModelError,
  type Model,
  type ModelAnswer,
  type ModelCall,
  type ModelMessage,
  type ModelRequest,
} from '../model/model.ts'
import { writtenCall } from '../model/written-calls.ts'
import { pause, retryVerdict } from './retry.ts'
import { acquireSlot } from './acquire-slot.ts'
import { usageEvent } from './usage.ts'
import { loadReplays, refusedReplay, storedCause, storedReplay } from './replays.ts'

export type Asked =
  | {
      got: 'answer'
      /** To store: thoughts, message, usage. */
      settled: SessionEvent[]
      text: string
      calls: ModelCall[]
      /** Why the prompt is over. Undefined with calls, and when the answer was empty. */
      ending: 'completed' | 'length' | 'refusal' | undefined
      requestDigest: string | undefined
    }
  | { got: 'stopped'; settled: SessionEvent[]; text: string }
  /** It said the same words without end, also when it was asked again. */
  | { got: 'chant'; settled: SessionEvent[]; message: string }
  /** The repair used up the budget for another request. */
  | { got: 'over'; end: SessionEvent }
  | ({ got: 'error'; message: string } & ErrorAbout)

/** Ask until there is an answer, a Stop, or an error that nothing mends. */
export async function* askModel(ctx: LoopContext, turn: number): AsyncGenerator<EventGroup, Asked> {
  const signal = AbortSignal.any([ctx.signal, ctx.released])
  let attempt = 0
  let written = 0
  let whole = false
  let cuts = 0
  for (let refused = false; ;) {
    attempt++
    const model = modelOf(ctx)
    if (isTooSmall(ctx, model)) {
      const fields = { promptId: ctx.promptId, turn, model: model.name, advice: LARGER_WINDOW }
      ctx.warn({ ...fields, tokens: model.window.tokens }, 'the window has no room for a message')
      return { got: 'error', cause: 'context_overflow', message: tooSmallText(model.name, model.window) }
    }
    if ((await acquireSlot(ctx, turn, model, refused)) === 'left')
      return { got: 'stopped', settled: [], text: '' }
    refused = false
    const reader = { ...readerOf(model), stored: await loadReplays(ctx, model) }
    const checked = checkedMessages(ctx, turn, reader)
    if ('broken' in checked) return { got: 'error', cause: 'internal', message: checked.broken }
    const speech = new StreamedAnswer(ctx, turn)
    try {
      const { wire } = reader
      const request = { messages: checked.messages, tools: fittingTools(ctx, model), whole, wire }
      const answer = await listen(ctx, model, request, signal, speech)
      if (isSecondEmpty(ctx, model, answer) && (yield* askedOtherwise(ctx, turn, model, answer, whole))) {
        whole = !whole
        continue
      }
      const read = yield* readWrittenCall(ctx, turn, model, speech, answer, written++)
      if (read !== 'again') return read ?? (await answered(ctx, turn, model, speech, answer))
    } catch (error) {
      const request = { turn, attempt, model, messages: checked.messages, speech, signal }
      const next = yield* afterFailure(ctx, request, error)
      if (next.got !== 'again') return next
      cuts = next.attempt > 0 && isSilentCut(error, model, speech) ? cuts + 1 : 0
      whole = cuts >= SILENT_CUTS
      ;({ attempt, refused } = next)
    }
  }
}

/** Requests in a row that broke without a byte, after which a whole answer is asked for. */
const SILENT_CUTS = 2

/** A server that refuses a request after the head of its answer says nothing in a stream. */
function isSilentCut(error: unknown, model: Model, speech: StreamedAnswer): boolean {
  const isCut =
    error instanceof ModelError &&
    error.status === undefined &&
    (error.class === 'stream_interrupted' || error.class === 'provider_error')
  return isCut && model.wire !== undefined && speech.text === '' && speech.thought === ''
}

/** The model has nothing to say, again in this prompt. */
function isSecondEmpty(ctx: LoopContext, model: Model, answer: ModelAnswer): boolean {
  const { text, thought, calls, finish } = answer
  if (model.wire === undefined || calls.length > 0 || text.trim() !== '' || thought !== '') return false
  const before = turnsOf(ctx.log(), ctx.promptId).at(-1)
  return before !== undefined && isEmpty(before) && finish !== 'length' && finish !== 'content_filter'
}

/**
 * True if an empty answer is asked for in another way: first whole, then with more room, if the
 * length of the conversation may be why. Counts what the empty one took.
 */
async function* askedOtherwise(
  ctx: LoopContext,
  turn: number,
  model: Model,
  { usage }: ModelAnswer,
  whole: boolean,
): AsyncGenerator<EventGroup, boolean> {
  const again =
    !whole ||
    (mayNotFit(ctx, model) &&
      !overflowedBefore(ctx.log(), ctx.promptId, turn) &&
      (yield* makeRoom(ctx, turn, model, 'overflow')))
  ctx.released.throwIfAborted()
  if (!again || ctx.signal.aborted || (await endBeforeRequest(ctx)) !== undefined) return false
  const counted = usageEvent(ctx, undefined, model, usage)
  if (counted !== undefined) yield [counted]
  return true
}

// ── Before ───────────────────────────────────────────────────────────────────────────────────────

/**
 * The messages to send. Problems are mended where that is possible; else the sentence that names
 * them.
 */
function checkedMessages(
  ctx: LoopContext,
  turn: number,
  reader: Reader,
): { messages: ModelMessage[] } | { broken: string } {
  const messages = modelMessages(ctx.log(), ctx.system, reader)
  const problems = historyProblems(messages)
  if (problems.length === 0) return { messages }
  const words = problems.map(({ at, problem }) => `message ${at + 1}: ${problem}`)
  ctx.warn({ promptId: ctx.promptId, turn, problems: words.slice(0, 20) }, 'the history was not valid')
  const mendedMessages = repairHistory(messages)
  const left = historyProblems(mendedMessages)
  return left.length === 0 ? { messages: mendedMessages } : { broken: brokenHistoryText(words) }
}

// ── While ────────────────────────────────────────────────────────────────────────────────────────

/** The answer, shown while it comes; resolves once a reader that sets the pace has taken it. */
async function listen(
  ctx: LoopContext,
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  speech: StreamedAnswer,
): Promise<ModelAnswer> {
  let answers = false
  const answering = (): void => {
    if (!answers) ctx.slot?.answered(model.name, true)
    answers = true
  }
  try {
    const answer = await streamAnswer(model, request, signal, (piece) => {
      answering()
      const event = piece.type === 'call' ? speech.draft(piece) : speech.add(piece.type, piece.text)
      if (event !== undefined) ctx.show(event)
    })
    answering()
    return answer
  } finally {
    await orAborted(ctx.caughtUp(), signal)
  }
}

/** Why what was said is taken back. */
const CHANTING = 'chanting'

/** Why an answer is taken back whose call stands in its text. */
const WRITTEN_CALL = 'written_call'

/**
 * Withdraws an answer without calls that calls a tool in its text, and counts what it cost: it is
 * asked for again once. `before`: how often that was done since this turn was taken up. Undefined
 * for every other answer.
 */
async function* readWrittenCall(
  ctx: LoopContext,
  turn: number,
  model: Model,
  speech: StreamedAnswer,
  answer: ModelAnswer,
  before: number,
): AsyncGenerator<EventGroup, Asked | 'again' | undefined> {
  const { text, calls, finish, usage } = answer
  const readable = calls.length === 0 && finish !== 'content_filter'
  const tool = readable ? writtenCall(text, ctx.tools)?.name : undefined
  if (tool === undefined) return undefined
  ctx.warn({ promptId: ctx.promptId, turn, model: model.name }, 'the model wrote a call as text')
  // A client that shows nothing leaves nothing to withdraw, so the log alone does not count.
  const again = before === 0 && withdrawnFor(ctx, turn, WRITTEN_CALL) === 0
  yield* speech.withdraw(WRITTEN_CALL, answer)
  const counted = usageEvent(ctx, undefined, model, usage)
  if (counted !== undefined) yield [counted]
  if (!again) return { got: 'error', cause: 'malformed_tool_call', message: writtenCallText(tool) }
  const end = await endBeforeRequest(ctx)
  return end === undefined || ctx.signal.aborted ? 'again' : { got: 'over', end }
}

function chanted(speech: StreamedAnswer): Asked {
  return { got: 'chant', settled: speech.settled(saidOnce(speech)), message: CHANT_TEXT }
}

function saidOnce({ text, thought }: StreamedAnswer): Pick<ModelAnswer, 'text' | 'thought'> {
  return { text: withoutRepetition(text), thought: withoutRepetition(thought) }
}

// ── After a failure ──────────────────────────────────────────────────────────────────────────────

interface Request {
  turn: number
  /** From 1, for this model. */
  attempt: number
  model: Model
  messages: readonly ModelMessage[]
  speech: StreamedAnswer
  signal: AbortSignal
}

/** Withdraws what was shown, and waits or mends where a retry makes sense. */
async function* afterFailure(
  ctx: LoopContext,
  { turn, attempt, model, messages, speech, signal }: Request,
  error: unknown,
): AsyncGenerator<EventGroup, Asked | { got: 'again'; attempt: number; refused: boolean }> {
  if (ctx.signal.aborted) return { got: 'stopped', settled: speech.settled(), text: speech.text }
  ctx.released.throwIfAborted()
  if (error instanceof RepetitionError) {
    if (withdrawnFor(ctx, turn, CHANTING) > 0) return chanted(speech)
    yield* speech.withdraw(CHANTING, saidOnce(speech))
    return { got: 'again', attempt, refused: false }
  }
  if (!(error instanceof ModelError)) {
    ctx.warn({ error: messageOf(error), promptId: ctx.promptId, turn }, 'the model client threw')
    yield* speech.withdraw('internal')
    return { got: 'error', cause: 'internal', message: BUG_TEXT }
  }
  const { class: errorClass, status, requestId, setIn } = error
  const failed = { errorClass, status, requestId, attempt, promptId: ctx.promptId, turn }
  const wrong = setIn === undefined ? {} : { error: error.message }
  ctx.warn({ ...failed, ...wrong }, 'a model request failed')
  yield* speech.withdraw(errorClass)
  const verdict = retryVerdict(error, attempt, ctx.retry)
  // Everybody who asks this model waits in one line, in place of each trying again.
  const refused = verdict.again && errorClass === 'rate_limit' && ctx.slot !== undefined
  if (!refused) ctx.slot?.answered(model.name, false)
  let next = attempt
  if (verdict.again) {
    ctx.show(waited(ctx, turn, errorClass, attempt, verdict.waitMs))
    await ctx.caughtUp()
    if (refused) ctx.slot?.refused(model.name, verdict.waitMs)
    else await pause(verdict.waitMs, signal)
  } else if (yield* mended(ctx, turn, model, messages, error)) {
    next = 0
    // A summary is a request too, and may have used up what was left.
    const end = await endBeforeRequest(ctx)
    if (end !== undefined && !ctx.signal.aborted) return { got: 'over', end }
  } else {
    return { got: 'error', cause: storedCause(errorClass), setIn, requestId, message: verdict.message }
  }
  ctx.released.throwIfAborted()
  if (ctx.signal.aborted) return { got: 'stopped', settled: [], text: '' }
  return { got: 'again', attempt: next, refused }
}

/** The live event that says why nothing is seen to happen, and until when. */
function waited(
  ctx: LoopContext,
  turn: number,
  why: ModelErrorClass,
  retry: number,
  waitMs: number,
): SessionEvent {
  const event = { type: 'model_waited', why, waitMs, retry, of: ctx.retry.attempts - 1 } as const
  return makeSandlotEvent(event, { promptId: ctx.promptId, turn, live: true }, ctx.now())
}

/**
 * True when something was changed so that a retry makes sense. Each change is in the log before it
 * is used.
 */
async function* mended(
  ctx: LoopContext,
  turn: number,
  model: Model,
  messages: readonly ModelMessage[],
  error: ModelError,
): AsyncGenerator<EventGroup, boolean> {
  if (error.class === 'context_overflow' || error.class === 'request_too_large') {
    if (overflowedBefore(ctx.log(), ctx.promptId, turn)) return false
    const { limit } = error
    const isLearnt = limit !== undefined && (yield* learnWindow(ctx, turn, model, limit, 'refused'))
    // It may have been loaded otherwise since.
    void model.window.refresh(true)
    // Tools may have become fewer.
    return (
      (yield* makeRoom(ctx, turn, model, 'overflow')) ||
      (isLearnt && (isTooSmall(ctx, model) || fits(ctx, model)))
    )
  }
  const refused = refusedReplay(ctx, turn, model, error)
  if (refused !== undefined) {
    yield [refused]
    return true
  }
  if (error.class === 'invalid_history') {
    if (JSON.stringify(plainHistory(messages)) === JSON.stringify(messages)) return false
    const event = { type: 'history_mended', why: error.forMembers } as const
    yield [makeSandlotEvent(event, { promptId: ctx.promptId, turn }, ctx.now())]
    return true
  }
  const changed = changeOfModel(ctx, turn, error.class)
  if (changed === undefined) return false
  yield [changed]
  return true
}

// ── After an answer ──────────────────────────────────────────────────────────────────────────────

async function answered(
  ctx: LoopContext,
  turn: number,
  model: Model,
  speech: StreamedAnswer,
  answer: ModelAnswer,
): Promise<Asked> {
  const settled = speech.settled(answer)
  // Text that was shown turned out to be thoughts: the message is settled as an empty one.
  if (speech.text !== '' && answer.text === '') settled.push(speech.carrier())
  const forProvider = await storedReplay(ctx, turn, model, answer)
  if (forProvider !== undefined) {
    if (settled.length === 0) settled.push(speech.carrier())
    const [first, ...rest] = settled
    if (first !== undefined) {
      const sandlot = { ...metaOf(first), forProvider }
      settled.splice(0, settled.length, { ...first, _meta: { ...first._meta, sandlot } }, ...rest)
    }
  }
  const usage = usageEvent(ctx, turn, model, answer.usage)
  if (usage !== undefined) settled.push(usage)
  const { text, calls, requestDigest } = answer
  return { got: 'answer', settled, text, calls, ending: endingOf(answer), requestDigest }
}

/** Calls decide, not the finish word: with calls the prompt continues. */
function endingOf(answer: ModelAnswer): 'completed' | 'length' | 'refusal' | undefined {
  if (answer.calls.length > 0) return undefined
  if (answer.finish === 'length') return 'length'
  if (answer.finish === 'content_filter') return 'refusal'
  return answer.text.trim() === '' ? undefined : 'completed'
}

/*
 * Which model a prompt asks: the configured one, or after a failure that only another model mends,
 * the next on the list.
 */

/**
 * The provider cannot serve us now, whatever we ask. Everything else would fail with another model
 * too, or is ours to mend.
 */
const ANOTHER_MAY: readonly ModelErrorClass[] = ['overloaded', 'rate_limit', 'quota']

/** The model of this prompt with its window, as the log says: the same after a restart. */
export function modelOf(ctx: LoopContext): Model {
  const changed = changesOf(ctx).at(-1)
  return modelInChat(ctx.fallbacks?.find(({ name }) => name === changed) ?? ctx.model, ctx.log())
}

/** The event that switches the prompt to another model, if one is left for such a failure. */
function changeOfModel(ctx: LoopContext, turn: number, why: ModelErrorClass): SessionEvent | undefined {
  if (!ANOTHER_MAY.includes(why)) return undefined
  const tried = new Set([ctx.model.name, ...changesOf(ctx)])
  const next = ctx.fallbacks?.find(({ name }) => !tried.has(name))
  if (next === undefined) return undefined
  const event = { type: 'model_changed', model: next.name, why } as const
  return makeSandlotEvent(event, { promptId: ctx.promptId, turn }, ctx.now())
}

function changesOf(ctx: LoopContext): string[] {
  return ctx.log().flatMap((event) => {
    const happened = sandlotEventOf(event)
    return happened?.type === 'model_changed' && metaOf(event).promptId === ctx.promptId
      ? [happened.model]
      : []
  })
}
