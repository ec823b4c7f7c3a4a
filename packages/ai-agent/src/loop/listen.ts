/**
 * One answer of a model, listened to until it is whole, only repeats itself, or nobody wants it any
 * more.
 */
import { RepetitionDetector } from '../limits/repetition.ts'
import type { Model, ModelAnswer, ModelChunk, ModelRequest } from '../model/model.ts'
import { normalizeAnswer } from '../model/normalize-answer.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'

/** The answer was cut off because it only repeated itself: it might never have ended. */
export class RepetitionError extends Error {
  override readonly name = 'RepetitionError'
  constructor() {
    super('The model said the same words again and again.')
  }
}

const NOTHING: ModelAnswer = { text: '', thought: '', calls: [], finish: 'unknown', usage: {} }

/**
 * Yields what `say` makes of each piece, if anything. Throws `RepetitionError`, what the model
 * throws, or the signal's reason: at once, also where the client does not hear of it.
 */
export async function* listen<Said>(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  say: (piece: ModelChunk) => Said | undefined,
): AsyncGenerator<Said, ModelAnswer> {
  const watches = { text: new RepetitionDetector(), thought: new RepetitionDetector() }
  const stream = model.stream(request, signal)
  let whole = false
  try {
    for (;;) {
      const next = await orAborted(stream.next(), signal)
      if (next.done === true) {
        whole = true
        return normalizeAnswer(next.value)
      }
      const piece = next.value
      const said = say(piece)
      if (said !== undefined) yield said
      if (piece.type !== 'call' && watches[piece.type].add(piece.text)) throw new RepetitionError()
    }
  } finally {
    // Closes the request: the provider must not go on at our cost. A client that does not hear the
    // Stop is left behind.
    const closed = whole || Promise.allSettled([stream.return(NOTHING)])
    if (!signal.aborted) await closed
  }
}
