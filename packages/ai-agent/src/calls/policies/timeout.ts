/**
 * Puts the time limit into the context and is the backstop: two seconds after the limit, or after a
 * cancel, the call is over whether its tool noticed or not. Time spent waiting for the sandbox to
 * wake is not the call's time.
 */
import { setImmediate } from 'node:timers/promises'
import {
  NotRunError,
  SHUTDOWN,
  abandonedOutcome,
  isShutdown,
  outcomeOfThrown,
} from '../../tools/tool-error.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { Policy, ToolCall, ToolOutcome, ToolUpdate } from '../../tools/tool.ts'
import { createDeadline } from './deadline.ts'

const BACKSTOP_MS = 2000
/** So long a tool may speak without a pause. */
const BREATH_MS = 20
const MIN_MS = 1000
const MAX_MS = 300_000
const GAVE_UP = Symbol('gave up')
/** Nothing hangs for ever, not even a sandbox that neither wakes nor fails. */
const WAKE_MS = 180_000

export function timeout(defaultMs: number): Policy {
  return (next) =>
    async function* limited(call, ctx) {
      ctx.signal.throwIfAborted()
      const limitMs = limitOf(call, defaultMs)
      const deadline = createDeadline(limitMs)
      const signal = AbortSignal.any([ctx.signal, deadline.signal])
      const running = next(call, {
        ...ctx,
        signal,
        deadline: { limitMs, remainingMs: () => deadline.remainingMs() },
        sandbox: () => deadline.extend(WAKE_MS, () => call.clock.wait(ctx.sandbox())),
        // A person takes as long as it takes; the question has a time limit of its own.
        ask: () => deadline.extend(Number.POSITIVE_INFINITY, () => call.clock.wait(ctx.ask())),
      })
      try {
        const outcome = yield* withBackstop(running, signal)
        // At a shutdown a tool detaches from what it runs; one that does not is abandoned without
        // an outcome.
        if (outcome === undefined && isShutdown(signal)) throw SHUTDOWN
        return outcome ?? abandonedOutcome(signal)
      } catch (thrown) {
        // Only our own limit ends here; every other abort is `settle`'s business.
        if (!deadline.signal.aborted || ctx.signal.aborted) throw thrown
        const outcome = outcomeOfThrown(thrown, signal, ctx.log, call.hasBegun())
        return thrown instanceof NotRunError ? outcome : timedOutText(outcome, limitMs)
      } finally {
        deadline.clear()
      }
    }
}

/**
 * The model's own wish where the tool has such an argument, else the tool's, else the configured
 * one.
 */
function limitOf(call: ToolCall, defaultMs: number): number {
  const asked = call.args['timeout_ms']
  const wanted = typeof asked === 'number' ? asked : (call.tool.runs?.timeoutMs ?? defaultMs)
  return Math.min(Math.max(wanted, MIN_MS), MAX_MS)
}

function timedOutText(outcome: ToolOutcome, limitMs: number): ToolOutcome {
  if (outcome.status !== 'failed' || outcome.reason !== 'timeout') return outcome
  return { ...outcome, forModel: `The call did not end within its limit of ${limitMs} ms and was ended.` }
}

/** Passes `running` on; undefined when it did not end in time after an abort. */
async function* withBackstop(
  running: AsyncGenerator<ToolUpdate, ToolOutcome>,
  signal: AbortSignal,
): AsyncGenerator<ToolUpdate, ToolOutcome | undefined> {
  const gaveUp = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const onAbort = (): void => {
    timer = setTimeout(() => gaveUp.abort(GAVE_UP), BACKSTOP_MS)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  let finished = false
  let breathed = performance.now()
  try {
    for (;;) {
      const step = await orAborted(running.next(), gaveUp.signal)
      if (step.done === true) {
        finished = true
        return step.value
      }
      yield step.value
      // One that never waits for anything would keep everybody else waiting, our own timers and a
      // Stop among them.
      if (performance.now() - breathed < BREATH_MS) continue
      await setImmediate()
      breathed = performance.now()
    }
  } catch (thrown) {
    if (thrown !== GAVE_UP) throw thrown
    return undefined
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    // Not awaited: `return` queues after a step that may never end. Its failure has no caller left.
    if (!finished)
      void Promise.allSettled([running.return({ status: 'failed', reason: 'interrupted', forModel: '' })])
  }
}
