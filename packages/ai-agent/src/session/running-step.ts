/**
 * Which prompt the code that runs at this moment works for. It follows every `await` of a prompt's
 * loop, and costs nothing until the watchdog asks for it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

interface RunningStep {
  sessionId: string
  promptId: string
}

const steps = new AsyncLocalStorage<RunningStep>()

/**
 * The name under which another thread's inspector finds `steps`: it can evaluate names of the
 * global object only.
 */
const GLOBAL_NAME = 'sandlot.running-step'

/** Run `work`, and everything that it starts, as a step of this prompt. */
export function inStep<T>(step: RunningStep, work: () => T): T {
  return steps.run(step, work)
}

/** Makes the running step readable by `ASK_RUNNING_STEP`. Idempotent. */
export function exposeRunningStep(): void {
  Object.defineProperty(globalThis, Symbol.for(GLOBAL_NAME), {
    value: () => steps.getStore(),
    configurable: true,
  })
}

/** The blocking step, absent outside of prompts, and the position of its code. */
export interface Blame {
  step?: RunningStep
  stack: string
}

/** An expression for the inspector: a `Blame` as JSON. */
export const ASK_RUNNING_STEP = `JSON.stringify({
  step: globalThis[Symbol.for(${JSON.stringify(GLOBAL_NAME)})]?.(),
  stack: String(new Error('blocked').stack),
})`
