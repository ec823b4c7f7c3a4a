/** One call that a message has twice. */
import { canonicalJson } from './canonical-json.ts'
import { deeperThan } from './json-depth.ts'
import type { ModelCall } from './model.ts'

/** What is nested deeper does not run, and cannot be written as text. */
const MAX_DEPTH = 100

/**
 * A provider that sends a message twice in one answer repeats its calls, ids and all: each is meant once. Calls without an
 * id are told apart by nothing, and all are meant.
 */
export function withoutRepetitions(calls: readonly ModelCall[]): ModelCall[] {
  const seen = new Set<string>()
  return calls.filter(({ id, name, args }) => {
    if (id === '' || deeperThan(args, MAX_DEPTH)) return true
    const key = JSON.stringify([id, name, canonicalJson(args ?? null)])
    return !seen.has(key) && seen.add(key)
  })
}
