/** What a prompt and a chat have used up, as a part of the fold. Pure. */
import { type SessionEvent, metaOf, sandlotEventOf } from '../chat/events.ts'

/** A sum of answers of the model. */
export interface Spent {
  /** Also those that the provider did not count. */
  readonly answers: number
  readonly input: number
  readonly output: number
  /** Of `input`. */
  readonly cached: number
  /** Of `output`. */
  readonly reasoning: number
  /** US dollars of the answers of which they are known. */
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
  /** The prompt that runs, or ended last. */
  readonly prompt: Spent
  /** A turn whose answer has come and was not counted so far; null: there is none. */
  readonly uncounted: number | null
  /** The last turn that was counted. */
  readonly counted: number | null
}

export const NOTHING_SPENT: SpentSoFar = { chat: NOTHING, prompt: NOTHING, uncounted: null, counted: null }

/** Why an answer was cut off before its provider could count it. */
const CUT_OFF: ReadonlySet<string> = new Set(['cancelled', 'interrupted', 'loop'])

/** Fold one settled event; the same object where it says nothing of it. */
export function foldSpent(spent: SpentSoFar, event: SessionEvent): SpentSoFar {
  const meta = metaOf(event)
  if (event.sessionUpdate === 'usage_update') {
    // Without counts it only says how full the window is.
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
      // What was counted right before it was the summary, not the answer of the turn.
      return spent.counted === null ? spent : { ...spent, counted: null }
    case 'prompt_ended':
      return CUT_OFF.has(happened.reason) ? { ...spent, uncounted: null } : settled(spent)
    default:
      return spent
  }
}

/** An answer that was not counted by now never is. */
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

/** US dollars; null: of no answer it is known. */
export function costOf({ answers, unpriced, known }: Spent): number | null {
  return answers > 0 && unpriced === answers ? null : known
}
