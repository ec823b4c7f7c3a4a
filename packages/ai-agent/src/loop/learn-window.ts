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
import type { Model } from '../model/model.ts'
import { messagesTokens } from '../model/tokens.ts'
import type { LoopContext } from './context.ts'
import { readerOf } from './context-size.ts'

/** Estimated tokens by which a request must have grown, so that its count says something. */
const GROWN = 256
/** Counts that grow by no more than this share of what was expected stay where they are. */
const STAYS = 0.1
/** Tokens of the smallest window that counts tell of: below it they are of something else. */
const LEAST = 2_000
/** Tokens. A count that grew by more is not looked at: normally none is, for it takes time. */
const GREW = 512
/** For the log: users see no names of options. */
export const LARGER_WINDOW =
  'For a larger window set OLLAMA_CONTEXT_LENGTH or num_ctx (Ollama), -c (llama.cpp), --max-model-len (vLLM) or the context length (LM Studio) at its server.'

/** Sets the window and says so, once in a chat. Returns true if it is news. */
export function* learnWindow(
  ctx: LoopContext,
  turn: number,
  model: Model,
  tokens: number,
  why: 'counted' | 'refused',
): Generator<EventGroup, boolean> {
  if (!model.window.learn(tokens)) return false
  const fields = { promptId: ctx.promptId, turn, model: model.name, tokens, why, advice: LARGER_WINDOW }
  ctx.warn(fields, 'the model holds less than assumed')
  const event = { type: 'window_learnt', model: model.name, tokens: model.window.tokens, why } as const
  const isNoted = ctx.log().some((one) => {
    const happened = sandlotEventOf(one)
    return happened?.type === event.type && happened.model === event.model && happened.tokens === event.tokens
  })
  if (!isNoted) yield [makeSandlotEvent(event, { promptId: ctx.promptId, turn }, ctx.now())]
  return true
}

/**
 * Before a request: what the server says of its window, if it was not asked lately, and what the
 * counts of earlier requests say.
 */
export async function* checkWindow(
  ctx: LoopContext,
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
  promptId: string | undefined
  turn: number | undefined
}

/**
 * Tokens that the provider counts at most, if its last counts say so: two equal ones of requests of
 * which the later is larger, or three of growing requests that hardly grow. What a provider no
 * longer counts of a conversation (earlier reasoning) makes a count smaller only once; counts that
 * leave out what was cached are far apart.
 */
function countedLimit(log: readonly SessionEvent[], system: string, reader: Reader): number | undefined {
  const [last, before] = lastCounts(log, reader.model, 2)
  if (last === undefined || before === undefined || last.input < LEAST) return undefined
  if (last.input - before.input > GREW) return undefined
  const estimate = ({ promptId, turn }: Count): number => {
    const start = log.findIndex((event) => metaOf(event).promptId === promptId && metaOf(event).turn === turn)
    return messagesTokens(modelMessages(log.slice(0, start), system, reader))
  }
  const [e2, e1] = [estimate(last), estimate(before)]
  if (e2 - e1 < GROWN) return undefined
  const counts = lastCounts(log, reader.model)
  const most = counts.reduce((sum, { input }) => Math.max(sum, input), 0)
  if (Math.min(last.input, before.input) < most / 2) return undefined
  if (last.input === before.input) return last.input
  const first = counts[2]
  if (first === undefined || first.input < most / 2) return undefined
  const e0 = estimate(first)
  // The count that this chat has for a token of our estimate.
  const rate = Math.min(1, first.input / e0)
  const stays = (earlier: Count, later: Count, grown: number): boolean =>
    grown >= GROWN && later.input - earlier.input <= STAYS * rate * grown
  return stays(first, before, e1 - e0) && stays(before, last, e2 - e1)
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
    counts.push({ input: usage.input, promptId, turn })
  }
  return counts
}
