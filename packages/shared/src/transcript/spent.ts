/** Usage of a prompt and a chat, as a part of the fold. Pure. */
import { type SessionEvent, metaOf, sandlotEventOf } from '../chat/events.ts'

/** A sum of model answers. */
export interface Spent {
  /** Includes those that the provider did not count. */
  readonly answers: number
  readonly input: number
  readonly output: number
  /** A part of `input`. */
  readonly cached: number
  /** A part of `output`. */
  readonly reasoning: number
  /** US dollars of the answers with known cost. */
  readonly known: number
  /** Answers of unknown cost. */
  readonly unpriced: number
}

const NOTHING: Spent = {
  answers: 0,
  input: 0,
  output: 0,
  cached: 0,
  reasoning: 0,
  known: 0,
  unpriced: 0,
}

export interface SpentSoFar {
  readonly chat: Spent
  /** The running or last prompt. */
  readonly prompt: Spent
  /** The turn of an answer without counts so far; null: there is none. */
  readonly uncounted: number | null
  /** The last counted turn. */
  readonly counted: number | null
}

export const NOTHING_SPENT: SpentSoFar = { chat: NOTHING, prompt: NOTHING, uncounted: null, counted: null }

/** Reasons of answers that were cut off before their provider could count them. */
const CUT_OFF: ReadonlySet<string> = new Set(['cancelled', 'interrupted', 'loop'])

/** Fold one settled event; the same object if it has no effect. */
export function foldSpent(spent: SpentSoFar, event: SessionEvent): SpentSoFar {
  const meta = metaOf(event)
  if (event.sessionUpdate === 'usage_update') {
    // Without counts it only reports the size of the context.
    if (meta.usage === undefined) return spent
    const { input = 0, output = 0, cached = 0, reasoning = 0 } = meta.usage
    const price = meta.cost === undefined ? { known: 0, unpriced: 1 } : { known: meta.cost, unpriced: 0 }
    const before = spent.uncounted === meta.turn ? spent : settled(spent)
    const answer = { answers: 1, input, output, cached, reasoning, ...price }
    return { ...added(before, answer), uncounted: null, counted: meta.turn ?? null }
  }
  const { turn } = meta
  if (
    turn !== undefined &&
    (event.sessionUpdate === 'agent_message_chunk' ||
      event.sessionUpdate === 'agent_thought_chunk' ||
      event.sessionUpdate === 'tool_call')
  ) {
    if (turn === spent.uncounted || turn === spent.counted) return spent
    return { ...settled(spent), uncounted: turn, counted: null }
  }
  const happened = sandlotEventOf(event)
  switch (happened?.type) {
    case 'prompt_started':
      return { ...settled(spent), prompt: NOTHING, counted: null }
    case 'compacted':
      // The last counts belonged to the summary, not to the turn's answer.
      return spent.counted === null ? spent : { ...spent, counted: null }
    case 'prompt_ended':
      return CUT_OFF.has(happened.reason) ? { ...spent, uncounted: null } : settled(spent)
    default:
      return spent
  }
}

/** An answer without counts by now never gets any. */
function settled(spent: SpentSoFar): SpentSoFar {
  if (spent.uncounted === null) return spent
  return { ...added(spent, { ...NOTHING, answers: 1, unpriced: 1 }), uncounted: null }
}

function added(spent: SpentSoFar, one: Spent): SpentSoFar {
  return { ...spent, chat: sum(spent.chat, one), prompt: sum(spent.prompt, one) }
}

function sum(a: Spent, b: Spent): Spent {
  return {
    answers: a.answers + b.answers,
    input: a.input + b.input,
    output: a.output + b.output,
    cached: a.cached + b.cached,
    reasoning: a.reasoning + b.reasoning,
    known: a.known + b.known,
    unpriced: a.unpriced + b.unpriced,
  }
}

/** US dollars; null: no cost is known. */
export function costOf({ answers, unpriced, known }: Spent): number | null {
  return answers > 0 && unpriced === answers ? null : known
}
