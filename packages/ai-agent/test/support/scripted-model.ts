/**
 * A scripted model, for tests that are not about bytes. It fails loudly when its script runs out.
 */
import { ContextWindow } from '../../src/model/context-window.ts'
import type { Model, ModelAnswer, ModelRequest } from '../../src/model/model.ts'

/** One answer, or what is done in place of one: it may throw, wait for the signal, or look at the request. */
export type ScriptedAnswer =
  | Partial<ModelAnswer>
  | ((request: ModelRequest, signal: AbortSignal) => Partial<ModelAnswer> | Promise<Partial<ModelAnswer>>)

export interface ScriptedModel extends Model {
  /** Requests in their order. */
  readonly requests: readonly ModelRequest[]
}

/** `answers`: in order, or by the place of the request, from 0. */
export function scriptedModel(
  answers: readonly ScriptedAnswer[] | ((place: number) => ScriptedAnswer),
  {
    contextWindow = 100_000,
    ...about
  }: Partial<Pick<Model, 'name' | 'wire' | 'origin' | 'price'>> & { contextWindow?: number } = {},
): ScriptedModel {
  const requests: ModelRequest[] = []
  return {
    name: 'scripted',
    demo: false,
    window: new ContextWindow({ set: contextWindow }),
    ...about,
    requests,
    async stream(request, signal, onPiece) {
      const place = requests.push(structuredClone(request)) - 1
      const next = typeof answers === 'function' ? answers(place) : answers[place]
      if (next === undefined) throw new Error(`the script has no answer to request ${place + 1}`)
      const said = typeof next === 'function' ? await next(request, signal) : next
      const answer: ModelAnswer = {
        text: '',
        thought: '',
        calls: [],
        finish: 'stop',
        usage: { input: 10, output: 5 },
        ...said,
      }
      if (answer.text !== '') onPiece({ type: 'text', text: answer.text })
      return answer
    },
  }
}
