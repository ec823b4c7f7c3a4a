/**
 * Detects a model in a circle: the same calls with the same arguments *and the same results*, one
 * turn or a few turns long, repeated. Polling something that changes is no circle. Pure functions
 * over a prompt's turns.
 */
import { metaOf } from '@sandlot/shared/chat/events'
import { canonicalJson, parseExactJson } from '../model/json.ts'
import type { Turn } from './model-messages.ts'

/** Turns of the longest circle that is seen. */
const LONGEST = 5
/** Rounds of a circle after which its next call is refused. */
const ROUNDS = 3

export const NO_PROGRESS =
  'This call was made before with the same arguments, again and again, and always with the same result. It was not run. ' +
  'Try another way, or tell the user what you know and what you are missing.'

interface AskedCall {
  name: string
  args?: unknown
}

/** True if these calls, made after the turns `turns`, only continue a circle. */
export function makeNoProgress(turns: readonly Turn[], calls: readonly AskedCall[]): boolean {
  if (calls.length === 0) return false
  const before = withCalls(turns)
  const asked = askedText(calls)
  const last = before.at(-1)
  if (last !== undefined && wasRefused(last))
    return before.slice(-LONGEST - 1).some((turn) => askedText(callsOf(turn)) === asked)
  for (let length = 1; length <= LONGEST; length++) {
    const rounds = before.slice(-length * ROUNDS)
    if (rounds.length < length * ROUNDS) return false
    const seen = rounds.map(resultText)
    const circle = seen.every((text, place) => text !== '' && text === seen[place % length])
    const first = rounds[0]
    if (circle && first !== undefined && askedText(callsOf(first)) === asked) return true
  }
  return false
}

/** It was warned once and continued: the prompt is over. */
export function isStuck(turns: readonly Turn[]): boolean {
  const [one, other] = withCalls(turns).slice(-2)
  return one !== undefined && other !== undefined && wasRefused(one) && wasRefused(other)
}

/** An empty answer between two rounds is no way out. */
function withCalls(turns: readonly Turn[]): Turn[] {
  return turns.filter(({ calls }) => calls.length > 0)
}

function wasRefused({ calls }: Turn): boolean {
  return calls.every(({ outcome }) => outcome !== undefined && metaOf(outcome).reason === 'no_progress')
}

function callsOf({ calls }: Turn): AskedCall[] {
  return calls.map(({ call }) => ({ name: call.name, args: call.rawInput }))
}

function askedText(calls: readonly AskedCall[]): string {
  return canonicalJson(calls.map(({ name, args }) => [name, decoded(args)]))
}

/** Calls and how they ended; empty for a turn that is not over. */
function resultText(turn: Turn): string {
  if (turn.calls.some(({ outcome }) => outcome === undefined)) return ''
  const results = turn.calls.map(({ outcome }) => [outcome?.status, outcome?.rawOutput?.forModel])
  return JSON.stringify([askedText(callsOf(turn)), results])
}

/** A refused call keeps its arguments as they came, which may be JSON text. */
function decoded(args: unknown): unknown {
  if (typeof args !== 'string') return args ?? {}
  const read = parseExactJson(args)
  return read.ok ? read.value : args // not JSON: the text itself is what is compared
}
