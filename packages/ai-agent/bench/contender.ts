/** One way to run a prompt with tools, and one to read a plain stream, as the goals of the bench call them. */
import type { Way } from '../../../test/bench/measure.ts'

export interface Contender {
  name: string
  /** The key of its requests. */
  whose: string
  /** A whole prompt: the model's call, the tool `echo` by `say`, the model's answer. Rejects when it does not come to its end. */
  runTools: (model: string, say: (text: string) => string) => Promise<void>
  /** A prompt without tools, to its end. Answers when its first text was there, by `performance.now()`. */
  firstToken: (model: string) => Promise<number | undefined>
  /** Begin a prompt whose model speaks without end. Resolves when its first text is there. */
  speak: (model: string) => Promise<Stoppable>
  /** Begin a prompt whose call runs the command of process-tree.ts. Resolves when the command has begun. Absent: it has no tools that could be stopped. */
  runTree?: (model: string) => Promise<Stoppable>
}

/** A prompt that is under way. */
export interface Stoppable {
  /**
   * Stops as the user would. Resolves when the prompt is over and every waiter has been notified.
   */
  stop: () => Promise<void>
}

/** Ours first. */
export type Contenders = readonly [Contender, ...Contender[]]

/** The contenders as ways of `inTurns`. */
export function waysOf(
  [ours, ...others]: Contenders,
  once: (contender: Contender) => Promise<number | undefined>,
): [Way, ...Way[]] {
  const way = (contender: Contender): Way => ({ name: contender.name, once: () => once(contender) })
  return [way(ours), ...others.map(way)]
}

/**
 * An operation that its signal ends: `run` calls `begun` when there is something to stop, and
 * settles, either way, when it is over.
 */
export async function stoppable(
  run: (signal: AbortSignal, begun: () => void) => Promise<unknown>,
): Promise<Stoppable> {
  const controller = new AbortController()
  const begun = Promise.withResolvers<void>()
  const over = run(controller.signal, begun.resolve)
  const settled = Promise.allSettled([over])
  await Promise.race([begun.promise, over])
  return {
    async stop() {
      controller.abort()
      await settled
    },
  }
}
