/**
 * An answer as the loop can work with it. Our own clients give such ones; a program's own need not, and a model may nest its
 * arguments deeper than anything can walk that calls itself.
 */
import { deeperThan } from '../json-depth.ts'
import type { ModelAnswer, ModelCall } from './model.ts'

const MAX_DEPTH = 100

/** Throws `TypeError` when there is no answer at all. What only lacks something gets the empty form of it. */
export function soundAnswer(answer: Partial<ModelAnswer> | undefined): ModelAnswer {
  if (typeof answer !== 'object') throw new TypeError('The model client returned no answer.')
  const { text, thought, calls, finish = 'unknown', usage = {}, replay } = answer
  return {
    text: textOf(text),
    thought: textOf(thought),
    calls: (calls ?? []).map(soundCall),
    finish,
    usage,
    ...(replay === undefined ? {} : { replay }),
  }
}

function soundCall(call: ModelCall): ModelCall {
  const named = { ...call, id: textOf(call.id), name: textOf(call.name) }
  return canBeSent(call.args) ? named : { ...named, args: {}, invalid: call.invalid ?? 'malformed' }
}

function textOf(value: string | undefined): string {
  return typeof value === 'string' ? value : ''
}

function canBeSent(args: unknown): boolean {
  if (deeperThan(args, MAX_DEPTH)) return false
  try {
    JSON.stringify(args)
    return true
  } catch (error) {
    if (error instanceof TypeError) return false // a number that JSON does not know
    throw error
  }
}
