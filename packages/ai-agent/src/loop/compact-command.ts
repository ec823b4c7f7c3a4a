/**
 * `/compact`: a message that is no message to the model but makes room in its window now. It is a
 * prompt like any other in the log: it can be stopped, survives a restart, and its end says what
 * became of it. What was said stays.
 */
import type { Command } from '@sandlot/shared/chat/sandlot-event'
import {
  type SessionEvent,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
  type EventGroup,
} from '@sandlot/shared/chat/events'
import { STOP_REASON_OF } from '@sandlot/shared/chat/reasons'
import type { LoopContext } from './context.ts'
import { readerOf } from './context-size.ts'
import { fittingTools, isTooSmall } from './fit-tools.ts'
import { modelOf } from './ask-model.ts'
import { tooSmallText } from './endings.ts'
import { endBeforeRequest } from './stop-conditions.ts'
import { messagesTokens, toolsTokens } from '../model/tokens.ts'
import type { Model } from '../model/model.ts'
import { modelMessages } from '../history/model-messages.ts'
import { type MadeRoom, makeRoomNow } from './make-room.ts'

type Ended = Extract<ReturnType<typeof sandlotEventOf>, { type: 'prompt_ended' }>

/** The command that a message is. What follows it is what the summary must not lose. */
export function commandIn(text: string): Command | undefined {
  const [is, focus = ''] = /^\s*\/compact(?:\s+([^]*))?$/.exec(text) ?? []
  if (is === undefined) return undefined
  return { name: 'compact', ...(focus.trim() === '' ? {} : { focus: focus.trim() }) }
}

/** The command that this prompt is, as it was submitted. */
export function commandOf(log: readonly SessionEvent[], promptId: string): Command | undefined {
  for (const event of log) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'prompt_started' && metaOf(event).promptId === promptId) return happened.command
  }
  return undefined
}

/** Do it. Returns the prompt's end, unless it was stopped, which the caller says. */
export async function* runCommand(
  ctx: LoopContext,
  { focus }: Command,
): AsyncGenerator<EventGroup, SessionEvent> {
  const model = modelOf(ctx)
  const before = estimate(ctx, model)
  // An earlier process may have come as far as this.
  let made: MadeRoom = 'done'
  if (!isDone(ctx)) {
    const over = await endBeforeRequest(ctx)
    if (over !== undefined && !ctx.signal.aborted) return over
    if (isTooSmall(ctx, model))
      return ended(ctx, { cause: 'context_overflow' }, tooSmallText(model.name, model.window))
    made = yield* makeRoomNow(ctx, model, focus)
  }
  const now = estimate(ctx, model)
  const counts =
    now < before
      ? ` It takes about ${count(now)} of ${count(model.window.tokens)} tokens now; it took ${count(before)}.`
      : ''
  const text = WORDS[typeof made === 'string' ? made : 'failed']
  return ended(ctx, made, made === 'done' ? text + counts : text)
}

const WORDS = {
  done: 'The conversation was made shorter for the model. Everything stays here and in the log.',
  nothing: 'There is nothing to compact: the model reads no more than your last exchange with it.',
  failed: 'The model gave no summary, so nothing was changed. The log has the reason. Try again later.',
}

function ended(ctx: LoopContext, made: MadeRoom, text: string): SessionEvent {
  const failure = typeof made === 'string' ? undefined : made
  const did = typeof made === 'string' ? made : 'failed'
  const reason = failure === undefined ? 'completed' : 'error'
  const end: Ended = {
    type: 'prompt_ended',
    stopReason: STOP_REASON_OF[reason],
    reason,
    text,
    ...failure,
    command: { name: 'compact', did },
  }
  return makeSandlotEvent(end, { promptId: ctx.promptId }, ctx.now())
}

function isDone(ctx: LoopContext): boolean {
  return ctx
    .log()
    .some((event) => sandlotEventOf(event)?.type === 'compacted' && metaOf(event).promptId === ctx.promptId)
}

/** Before and after by the same measure: a provider counts only what it was sent. */
function estimate(ctx: LoopContext, model: Model): number {
  const messages = modelMessages(ctx.log(), ctx.system, readerOf(model))
  return messagesTokens(messages) + toolsTokens(fittingTools(ctx, model))
}

function count(tokens: number): string {
  return Math.round(tokens).toLocaleString('en')
}
