/** One way to run a prompt with tools, and one to read a plain stream, as the goals of the bench call them. */
import type { Way } from '../../sandbox/bench/measure.ts'

export interface Contender {
  name: string
  /** The key of its requests. */
  whose: string
  /** A whole prompt: the model's call, the tool `echo` by `say`, the model's answer. Rejects when it does not come to its end. */
  runTools: (model: string, say: (text: string) => string) => Promise<void>
  /** A prompt without tools, to its end. Answers when its first text was there, by `performance.now()`. */
  firstToken: (model: string) => Promise<number | undefined>
}

/** As a way of `inTurns`, with what `once` makes of it. */
export function wayOf(
  contender: Contender,
  once: (contender: Contender) => Promise<number | undefined>,
): Way {
  return { name: contender.name, once: () => once(contender) }
}
