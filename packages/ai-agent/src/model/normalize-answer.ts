/**
 * Normalizes a model client's answer for the loop. Our own clients return complete ones; a
 * program's client need not, and a model may nest its arguments too deep for recursive code.
 */
import { canonicalJson, deeperThan } from './json.ts'
import type { ModelAnswer, ModelCall } from './model.ts'

const MAX_DEPTH = 100

/** Fills missing members with empty ones. Throws `TypeError` when there is no answer at all. */
export function normalizeAnswer(answer: Partial<ModelAnswer> | undefined): ModelAnswer {
  if (typeof answer !== 'object') throw new TypeError('The model client returned no answer.')
  const { text, thought, calls, finish = 'unknown', usage = {}, replay, wire, requestDigest } = answer
  return {
    text: textOf(text),
    thought: textOf(thought),
    calls: withoutRepetitions((calls ?? []).map(soundCall)),
    finish,
    usage,
    replay,
    wire,
    requestDigest,
  }
}

function soundCall(call: ModelCall): ModelCall {
  const named = { ...call, id: textOf(call.id), name: textOf(call.name) }
  const args = sendable(call.args)
  return args === undefined
    ? { ...named, args: {}, invalid: call.invalid ?? 'malformed' }
    : { ...named, args: args.value }
}

function textOf(value: string | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** A copy of the arguments as JSON has them; undefined where they are no JSON. */
function sendable(args: unknown): { value: unknown } | undefined {
  if (typeof args === 'string') return { value: args }
  if (deeperThan(args, MAX_DEPTH)) return undefined
  try {
    const json = JSON.stringify(args) as string | undefined
    return { value: json === undefined ? undefined : JSON.parse(json) }
  } catch (error) {
    if (error instanceof TypeError) return undefined // a number that JSON does not know
    throw error
  }
}

/**
 * A provider that sends a message twice in one answer repeats its calls, ids and all: each is meant
 * once. Calls without an id cannot be distinguished, and all are meant.
 */
export function withoutRepetitions(calls: readonly ModelCall[]): ModelCall[] {
  const seen = new Set<string>()
  return calls.filter(({ id, name, args }) => {
    if (id === '' || deeperThan(args, MAX_DEPTH)) return true
    const key = JSON.stringify([id, name, canonicalJson(args ?? null)])
    return !seen.has(key) && seen.add(key)
  })
}
