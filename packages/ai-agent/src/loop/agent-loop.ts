/**
 * The agent loop. It reads the log, chooses the next step (ask the model; run the calls that have
 * no outcome yet; end) and does it. A restart in the middle of a prompt is the same function called
 * again on the same log.
 *
 * Each yield is a group: settled events that are stored in one transaction. The generator continues
 * only after its consumer has stored the group, so nothing takes effect before it is in the log.
 * Live events do not come this way: `show` takes them at once.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import {
  type SessionEvent,
  isLive,
  isOutcome,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
  type EventGroup,
} from '@sandlot/shared/chat/events'
import { newId } from '@sandlot/shared/base/ids'
import { storableText } from '@sandlot/shared/base/storable-text'
import { commandOf, runCommand } from './compact-command.ts'
import { makeRoomIfFull, mayNotFit } from './make-room.ts'
import { checkWindow } from './learn-window.ts'
import { type Turn, modelCallOf, turnsOf, turnsSinceLastUserMessage } from '../history/model-messages.ts'
import { nextStep, pendingApproval, queuedMessages } from '../history/read-log.ts'
import type { LoopContext } from './context.ts'
import {
  CANCELLED_TEXT,
  INTERRUPTED_TEXT,
  LEFT_LINE_TEXT,
  LENGTH_TEXT,
  LOOP_TEXT,
  REFUSAL_TEXT,
  endEvent,
  errorEvent,
  maxTurnsText,
  missingOutcomes,
  noAnswerText,
  BLOCKED_TEXT,
  poisonText,
} from './endings.ts'
import { ToolRequestAdapter } from '../calls/tool-request-adapter.ts'
import { callRefusal, endBeforeRequest } from './stop-conditions.ts'
import { askModel, modelOf, type Asked } from './ask-model.ts'
import { withdrawCutOff } from './streamed-answer.ts'
import { acquireSlot } from './acquire-slot.ts'
import type { ModelCall } from '../model/model.ts'
import { makeNoProgress } from '../history/no-progress.ts'
import { sentMessage } from '../history/session-messages.ts'
import { takeEndedJobs } from '../tools/background/ends.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'

/**
 * The most resumes of a prompt that may have ended its process. One that does so each time would do
 * so for ever.
 */
const MOST_RESUMES = 3

/**
 * Run one prompt to its end. The last group contains `prompt_ended`. Throws only for bugs and a
 * failing store.
 */
export async function* runPrompt(ctx: LoopContext): AsyncGenerator<EventGroup, void> {
  if (ctx.resumed && (yield* countResume(ctx)) === 'given up') return
  const command = commandOf(ctx.log(), ctx.promptId)
  if (command !== undefined) {
    const left = (await acquireSlot(ctx, undefined, modelOf(ctx))) === 'left'
    if (left) return yield [stopped(ctx, '', LEFT_LINE_TEXT)]
    const end = ctx.signal.aborted ? undefined : yield* runCommand(ctx, command)
    ctx.released.throwIfAborted()
    return yield [end === undefined || ctx.signal.aborted ? stopped(ctx) : end]
  }
  const first = nextStep(ctx.log(), ctx.promptId, ctx.maxTurns)
  if (ctx.resumed && first.do === 'ask') yield withdrawCutOff(ctx, first.turn)

  for (;;) {
    const step = nextStep(ctx.log(), ctx.promptId, ctx.maxTurns)
    switch (step.do) {
      case 'run':
        yield* runTurn(ctx, step.turn, step.calls, { settled: [] })
        break
      case 'close':
        yield [turnEnded(ctx, step.turn, step.callIds)]
        break
      case 'ask': {
        if ((await acquireSlot(ctx, step.turn, modelOf(ctx))) === 'left')
          return yield [stopped(ctx, '', step.turn === 1 ? LEFT_LINE_TEXT : undefined)]
        // Before a message that waits is taken: it becomes the next prompt, with a budget of its
        // own.
        const over = await endBefore(ctx)
        if (over !== undefined) return yield [over]
        yield* checkWindow(ctx, step.turn, modelOf(ctx))
        const madeRoom = yield* makeRoomIfFull(ctx, step.turn, modelOf(ctx))
        ctx.released.throwIfAborted()
        // A summary is a request too, and may have used up what was left.
        const overNow = madeRoom ? await endBefore(ctx) : undefined
        if (overNow !== undefined) return yield [overNow]
        yield* appendSteeringMessages(ctx)
        yield* reportFinishedJobs(ctx)
        if (ctx.signal.aborted) return yield [stopped(ctx)]
        const asked = yield* askModel(ctx, step.turn)
        if (asked.got !== 'answer') return yield endOfAsking(ctx, asked)
        const calls = withUniqueIds(asked.calls, ctx.batchContext(step.turn).before.announced)
        if (calls.length > 0) yield* runTurn(ctx, step.turn, calls, asked)
        else if (asked.ending === undefined) yield answerGroup(asked, [emptyTurn(ctx, step.turn)])
        else return yield answerGroup(asked, [endOfAnswer(ctx, asked.ending, asked.text)])
        break
      }
      case 'stop_at_max_turns':
        return yield [endEvent(ctx.promptId, 'max_turns', maxTurnsText(ctx.maxTurns), ctx.now())]
      case 'stop_in_circle':
        return yield [endEvent(ctx.promptId, 'loop', LOOP_TEXT, ctx.now())]
      case 'end': {
        if (ctx.signal.aborted) return yield [stopped(ctx)]
        const text = step.answered
          ? undefined
          : noAnswerText(ctx.log(), ctx.promptId, mayNotFit(ctx, modelOf(ctx)))
        return yield [endEvent(ctx.promptId, 'completed', text, ctx.now())]
      }
    }
  }
}

/**
 * Say in the log that the prompt is taken up, before anything else: what ends the process does so
 * behind it. A prompt that only waits for a person may do that over as many restarts as it takes,
 * and so may one that is not to blame for them. One that blocked everybody is not run again.
 */
async function* countResume(ctx: LoopContext): AsyncGenerator<EventGroup, 'go on' | 'given up'> {
  const log = ctx.log()
  if (ctx.blockedAgent) {
    yield* giveUp(ctx, BLOCKED_TEXT)
    return 'given up'
  }
  if (ctx.resumeCounts === false || pendingApproval(log, ctx.promptId)) return 'go on'
  const times = log.filter(
    (event) => sandlotEventOf(event)?.type === 'prompt_resumed' && metaOf(event).promptId === ctx.promptId,
  ).length
  if (times < MOST_RESUMES) {
    const event = { type: 'prompt_resumed', times: times + 1 } as const
    yield [makeSandlotEvent(event, { promptId: ctx.promptId }, ctx.now())]
    return 'go on'
  }
  yield* giveUp(ctx, poisonText(times + 1))
  return 'given up'
}

function* giveUp(ctx: LoopContext, text: string): Generator<EventGroup, void> {
  for (const outcome of missingOutcomes(ctx.log(), ctx.promptId, 'interrupted', ctx.now())) yield [outcome]
  yield [errorEvent(ctx.promptId, { cause: 'given_up' }, text, ctx.now())]
}

// ── Calls ────────────────────────────────────────────────────────────────────────────────────────

/**
 * Run a turn's calls. `answer` (the message that made them) and all announcements are one group, so
 * that the log never has a turn with a part of its calls. So are the last outcome and the turn's
 * end: each group is a write to the disk.
 */
async function* runTurn(
  ctx: LoopContext,
  turn: number,
  calls: readonly ModelCall[],
  answer: Answer,
): AsyncGenerator<EventGroup, void> {
  const context = ctx.batchContext(turn)
  const refusal = (callId: string) => callRefusal(ctx, callId)
  const batch = { ...context, approvals: { ...context.approvals, refusal } }
  const made = new Map(calls.map((call) => [call.id, call]))
  const toAnnounce = calls.filter((call) => !batch.before.announced(call.id)).length
  let announcing: SessionEvent[] | undefined = toAnnounce > 0 ? [] : undefined
  let announced = 0

  const turns = turnsOf(ctx.log(), ctx.promptId)
  const logged = turns.find(({ number }) => number === turn)?.calls.map(({ call }) => modelCallOf(call))
  const whole = logged ?? calls
  const before = turnsSinceLastUserMessage(ctx.log(), ctx.promptId).filter(({ number }) => number < turn)
  // Decided from the log, so that a restart in the middle of the turn decides the same.
  const named = logged ?? new ToolRequestAdapter(batch.tools).normalizeBatch(calls)
  const noProgress = makeNoProgress(before, named)
  const running = ctx.runCalls(
    noProgress ? calls.map((call) => ({ ...call, noProgress })) : [...calls],
    batch,
  )
  const open = new Set(calls.map(({ id }) => id))
  let finished = false
  try {
    for (;;) {
      const event = await nextSettled(ctx, running)
      if (event === undefined) break
      if (announcing !== undefined && event.sessionUpdate === 'tool_call') {
        announcing.push(withProviderFields(event, made.get(event.toolCallId)))
        if (++announced < toAnnounce) continue
        yield answerGroup(answer, announcing)
        announcing = undefined
      } else {
        if (announcing !== undefined) yield answerGroup(answer, announcing)
        announcing = undefined
        const group = [event]
        if (isOutcome(event) && open.delete(event.toolCallId) && open.size === 0) {
          const callIds = whole.map(({ id }) => id)
          group.push(turnEnded(ctx, turn, callIds))
        }
        yield group
      }
    }
    finished = true
  } catch (error) {
    ctx.released.throwIfAborted()
    ctx.warn({ error: messageOf(error), promptId: ctx.promptId, turn }, 'the scheduler threw')
    finished = true
  } finally {
    if (!finished) await running.return([])
  }
  // The scheduler gives every call an outcome. If it ever does not, the history must be valid all
  // the same.
  const lost = ctx.signal.aborted ? 'cancelled' : 'tool_error'
  for (const outcome of missingOutcomes(ctx.log(), ctx.promptId, lost, ctx.now())) yield [outcome]
}

/** The next settled event of these calls; live ones before it are shown. Undefined: the end. */
async function nextSettled(
  ctx: LoopContext,
  running: ReturnType<LoopContext['runCalls']>,
): Promise<SessionEvent | undefined> {
  for (;;) {
    const next = await running.next()
    if (next.done === true) return undefined
    if (!isLive(next.value)) return next.value
    ctx.show(next.value)
    await ctx.caughtUp()
  }
}

function turnEnded(ctx: LoopContext, turn: number, callIds: string[]): SessionEvent {
  return makeSandlotEvent({ type: 'turn_ended', callIds }, { promptId: ctx.promptId, turn }, ctx.now())
}

type Answer = { settled: readonly SessionEvent[]; requestDigest?: string | undefined }

/** An answer and what it leads to, with the digest of its request on the first event. */
function answerGroup({ settled, requestDigest }: Answer, more: readonly SessionEvent[]): EventGroup {
  const [first, ...rest] = [...settled, ...more]
  if (first === undefined || requestDigest === undefined) return [...settled, ...more]
  return [{ ...first, _meta: { ...first._meta, sandlot: { ...metaOf(first), requestDigest } } }, ...rest]
}

/** Keep with the announcement what the next request needs: it is rebuilt from the log. */
function withProviderFields(event: SessionEvent, call: ModelCall | undefined): SessionEvent {
  if (call === undefined || (call.replay === undefined && call.invalid === undefined)) return event
  const forProvider = {
    ...metaOf(event).forProvider,
    call: call.replay,
    invalid: call.invalid,
  }
  return { ...event, _meta: { ...event._meta, sandlot: { ...metaOf(event), forProvider } } }
}

/** The longest call id. */
const MAX_ID_CHARS = 256

/**
 * Ids unique in the session, over all its branches. The first use of an id keeps it: providers want
 * their own ids back.
 */
function withUniqueIds(calls: readonly ModelCall[], isUsed: (id: string) => boolean): ModelCall[] {
  const used = new Set<string>()
  return calls.map((call) => {
    const isText = call.id !== '' && call.id.length <= MAX_ID_CHARS && storableText(call.id) === call.id
    const usable = isText && !used.has(call.id) && !isUsed(call.id)
    const id = usable ? call.id : newId('c')
    used.add(id)
    return { ...call, id }
  })
}

// ── Messages that came while it worked ───────────────────────────────────────────────────────────

/** Steered messages join behind the results of the round, before the next request. */
async function* appendSteeringMessages(ctx: LoopContext): AsyncGenerator<EventGroup, void> {
  for (const message of queuedMessages(ctx.log())) {
    if (message.as === 'steer') yield sentMessage(message, ctx.promptId, ctx.now())
  }
}

/**
 * Background commands that have ended since. What cannot be looked at now is looked at before the
 * next request.
 */
async function* reportFinishedJobs(ctx: LoopContext): AsyncGenerator<EventGroup, void> {
  const { pollJobs } = ctx
  // A sandbox that does not answer must not hold up a Stop.
  const signal = AbortSignal.any([ctx.signal, ctx.released])
  const poll: typeof pollJobs = (jobs) => orAborted(pollJobs(jobs), signal)
  try {
    yield* takeEndedJobs({ ...ctx, poll })
  } catch (error) {
    ctx.released.throwIfAborted()
    if (ctx.signal.aborted) return
    ctx.warn({ error: messageOf(error), promptId: ctx.promptId }, 'background commands could not be checked')
  }
}

// ── Ends ─────────────────────────────────────────────────────────────────────────────────────────

/** Marks a turn in which the model said and called nothing. */
function emptyTurn(ctx: LoopContext, turn: number): SessionEvent {
  return turnEnded(ctx, turn, [])
}

function endOfAnswer(
  ctx: LoopContext,
  ending: 'completed' | 'length' | 'refusal',
  text: string,
): SessionEvent {
  const said = text.trim() !== ''
  const sentence = ending === 'length' ? LENGTH_TEXT : REFUSAL_TEXT
  return endEvent(ctx.promptId, ending, said || ending === 'completed' ? undefined : sentence, ctx.now())
}

function endOfAsking(ctx: LoopContext, asked: Exclude<Asked, { got: 'answer' }>): EventGroup {
  if (asked.got === 'chant')
    return [...asked.settled, endEvent(ctx.promptId, 'loop', asked.message, ctx.now())]
  if (asked.got === 'error') return [errorEvent(ctx.promptId, asked, asked.message, ctx.now())]
  if (asked.got === 'over') return [asked.end]
  return [...asked.settled, stopped(ctx, asked.text)]
}

/**
 * The end of a prompt that must not ask again. A Stop is one, also when it comes while the budgets
 * are looked at.
 */
async function endBefore(ctx: LoopContext): Promise<SessionEvent | undefined> {
  const over = ctx.signal.aborted ? undefined : await endBeforeRequest(ctx)
  return ctx.signal.aborted ? stopped(ctx) : over
}

/**
 * Stop, or a shutdown that ends prompts. `partial`: what the model had said when it was cut off.
 */
function stopped(ctx: LoopContext, partial = '', text = CANCELLED_TEXT): SessionEvent {
  const reason = ctx.signal.reason === 'interrupted' ? 'interrupted' : 'cancelled'
  const silent = partial.trim() === '' && saidNothing(turnsOf(ctx.log(), ctx.promptId))
  const sentence = reason === 'interrupted' ? INTERRUPTED_TEXT : text
  return endEvent(ctx.promptId, reason, ctx.stopText?.() ?? (silent ? sentence : undefined), ctx.now())
}

/** The last turn had no words for the user. */
function saidNothing(turns: readonly Turn[]): boolean {
  const last = turns.at(-1)
  return last === undefined || last.text.trim() === '' || last.calls.length > 0
}
