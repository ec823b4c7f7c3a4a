export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | typeof END_SIGNAL

/**
 * Sent by `down --end` to `up` to end prompts too. After other signals the next start resumes them.
 */
export const END_SIGNAL = 'SIGUSR2'

/** The signal for ai-agent, whose SIGINT ends prompts and sandboxes. */
export function agentSignal(stop: StopSignal): 'SIGINT' | 'SIGTERM' {
  return stop === END_SIGNAL ? 'SIGINT' : 'SIGTERM'
}

interface StopSignals {
  /** Aborted at the first signal; its reason is a {@link StopRequest}. */
  signal: AbortSignal
  /** Settles with the first signal; never rejects. */
  requested: Promise<StopSignal>
  /** Calls `act` at a second Ctrl-C. */
  onImpatience(act: () => void): void
  [Symbol.dispose](): void
}

export class StopRequest extends Error {
  override readonly name = 'StopRequest'
  readonly stop: StopSignal
  constructor(stop: StopSignal) {
    super(`ended by ${stop}`)
    this.stop = stop
  }
}

/** Listens for the signals that stop a command, until disposed. */
export function listenForStop(): StopSignals {
  const controller = new AbortController()
  let impatient: (() => void) | undefined
  const { promise, resolve } = Promise.withResolvers<StopSignal>()
  const handle = (stop: StopSignal): void => {
    if (controller.signal.aborted) {
      if (stop === 'SIGINT') impatient?.()
      return
    }
    controller.abort(new StopRequest(stop))
    resolve(stop)
  }
  const names: StopSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP', END_SIGNAL]
  for (const name of names) process.on(name, handle)
  return {
    signal: controller.signal,
    requested: promise,
    onImpatience(act) {
      impatient = act
    },
    [Symbol.dispose]() {
      for (const name of names) process.off(name, handle)
    },
  }
}

/** A signal that aborts with `outer` and at the end of the block. */
export function abortedAtEnd(outer: AbortSignal): { signal: AbortSignal; [Symbol.dispose](): void } {
  const controller = new AbortController()
  return {
    signal: AbortSignal.any([outer, controller.signal]),
    [Symbol.dispose]: () => controller.abort(),
  }
}
