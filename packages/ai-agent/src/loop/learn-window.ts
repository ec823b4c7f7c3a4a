/**
 * Learns that a model holds less than was taken for its window: from its provider's counts, which
 * stop growing while the requests grow, or from the limit that a refusal names.
 */
import {
  type EventGroup,
  type SessionEvent,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
} from '@sandlot/shared/chat/events'
import { type Reader, modelMessages } from '../history/model-messages.ts'
import type { ModelWindow } from '../model/context-window.ts'
import type { Model } from '../model/model.ts'
import { messagesTokens } from '../model/tokens.ts'
import type { LoopContext } from './context.ts'
import { readerOf } from './context-size.ts'

/** Estimated tokens by which a request must have grown, so that its count says something. */
const GROWN = 256
/** Counts that grow by no more than this share of what was expected stay where they are. */
const STAYS = 0.1
/** Tokens of the smallest window that counts show: below it they are of something else. */
const LEAST = 2_000
/** For the log: users see no names of options. */
export const LARGER_WINDOW =
  'For a larger window set OLLAMA_CONTEXT_LENGTH or num_ctx (Ollama), -c (llama.cpp), --max-model-len (vLLM) or the context length (LM Studio) at its server.'

type Context = Pick<LoopContext, 'log' | 'system' | 'promptId' | 'warn' | 'now'>

/**
 * Sets the window and says so, once in a chat. Returns true if it is news. A window that is set or
 * published is not changed by counts: other chats rely on it, see `modelInChat`.
 */
export function* learnWindow(
  ctx: Context,
  turn: number,
  model: Model,
  tokens: number,
  why: 'counted' | 'refused',
): Generator<EventGroup, boolean> {
  const { name, window } = model
  const isOfChat = why === 'counted' && window.isGiven
  if (!(isOfChat ? tokens < window.tokens : window.learn(tokens))) return false
  const fields = { promptId: ctx.promptId, turn, model: name, tokens, why, advice: LARGER_WINDOW }
  ctx.warn(fields, 'the model holds less than assumed')
  const event = { type: 'window_learnt', model: name, tokens: Math.min(tokens, window.tokens), why } as const
  const isNoted = ctx.log().some((one) => {
    const happened = sandlotEventOf(one)
    return happened?.type === event.type && happened.model === event.model && happened.tokens === event.tokens
  })
  if (isOfChat || !isNoted) yield [makeSandlotEvent(event, { promptId: ctx.promptId, turn }, ctx.now())]
  return true
}

/** The model with the window that this chat has counted, if its own is set or published. */
export function modelInChat(model: Model, log: readonly SessionEvent[]): Model {
  const { window } = model
  if (!window.isGiven) return model
  const learnt = log
    .map(sandlotEventOf)
    .findLast(
      (happened) =>
        happened?.type === 'window_learnt' && happened.model === model.name && happened.why === 'counted',
    )
  if (learnt?.type !== 'window_learnt' || learnt.tokens >= window.tokens) return model
  const { tokens } = learnt
  const inChat: ModelWindow = {
    get tokens() {
      return Math.min(tokens, window.tokens)
    },
    from: 'learnt',
    isGiven: true,
    learn: (fewer) => window.learn(fewer),
    refresh: (again) => window.refresh(again),
  }
  // Not a copy: its wire may change with an answer.
  return new Proxy(model, {
    get: (_, key) => (key === 'window' ? inChat : Reflect.get(model, key)),
  })
}

/**
 * Before a request: what the server says of its window, if it was not asked lately, and what the
 * counts of earlier requests say.
 */
export async function* checkWindow(
  ctx: Context,
  turn: number,
  model: Model,
): AsyncGenerator<EventGroup, void> {
  const asked = model.window.refresh()
  if (asked !== undefined) await asked
  const tokens = countedLimit(ctx.log(), ctx.system, readerOf(model))
  if (tokens !== undefined) yield* learnWindow(ctx, turn, model, tokens, 'counted')
}

interface Count {
  /** The provider's count of the request. */
  input: number
  /** The part of it, or next to it, that was in the provider's cache. */
  cached: number
  promptId: string | undefined
  turn: number | undefined
}

/**
 * Tokens that the provider counts at most, if its last counts say so: two equal ones of requests of
 * which the later is larger, or three of growing requests that hardly grow. What a provider no
 * longer counts of a conversation (earlier reasoning) makes a count smaller only once; a count that
 * may leave out what was cached says nothing, nor do images, of which each provider counts another
 * number of tokens. Reads only what is new, unless the last count stays.
 */
function countedLimit(log: readonly SessionEvent[], system: string, reader: Reader): number | undefined {
  const startOf = ({ promptId, turn }: Count): number =>
    log.findIndex((event) => metaOf(event).promptId === promptId && metaOf(event).turn === turn)
  const stays = (earlier: Count, later: Count, rate = 1): boolean => {
    if (later.cached > earlier.cached) return false
    const [, ...added] = modelMessages(log.slice(startOf(earlier), startOf(later)), '', reader)
    const grown = messagesTokens(added, 0)
    return grown >= GROWN && later.input - earlier.input <= STAYS * rate * grown
  }
  const [last, before] = lastCounts(log, reader.model, 2)
  if (last === undefined || before === undefined || last.input < LEAST) return undefined
  if (!stays(before, last)) return undefined
  const counts = lastCounts(log, reader.model)
  const most = counts.reduce((sum, { input }) => Math.max(sum, input), 0)
  if (Math.min(last.input, before.input) < most / 2) return undefined
  if (last.input === before.input) return last.input
  const first = counts[2]
  if (first === undefined || first.input < most / 2) return undefined
  const whole = messagesTokens(modelMessages(log.slice(0, startOf(first)), system, reader), 0)
  // The count that this chat has for a token of our estimate.
  const rate = Math.min(1, first.input / whole)
  return stays(first, before, rate) && stays(before, last, rate)
    ? Math.max(first.input, before.input, last.input)
    : undefined
}

/** Up to `most` counts of this model, newest first, since something was left out. */
function lastCounts(
  log: readonly SessionEvent[],
  model: string | undefined,
  most = Number.POSITIVE_INFINITY,
): Count[] {
  const counts: Count[] = []
  for (let at = log.length - 1; at >= 0 && counts.length < most; at--) {
    const event = log[at]
    if (event === undefined) continue
    const happened = sandlotEventOf(event)?.type
    if (happened === 'compacted' || happened === 'history_mended') break
    if (event.sessionUpdate !== 'usage_update') continue
    const { usage, model: counter, promptId, turn } = metaOf(event)
    if (usage !== undefined && turn === undefined) continue
    if (usage?.input === undefined || counter !== model) break
    counts.push({ input: usage.input, cached: usage.cached ?? 0, promptId, turn })
  }
  return counts
}
