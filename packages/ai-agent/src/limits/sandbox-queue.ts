/**
 * The line for sandboxes: where a host has no room for another one, the calls of prompts take turns
 * by person. The one in front tries until a sandbox has become idle.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { QueueWait } from '@sandlot/shared/chat/queue-wait'
import type { PromptQueue } from './prompt-queue.ts'

/** Milliseconds between two tries of the one in front. */
const RETRY_MS = 1_000

interface SandboxQueueParts {
  /** Sandboxes that may run at once; undefined: their memory is what is limited. */
  limit: number | undefined
  acquire: (userId: string, signal: AbortSignal) => Promise<Sandbox>
  /** True if this user's sandbox runs already. */
  connected: (userId: string) => Promise<Sandbox | undefined>
  queue: PromptQueue
  retryMs?: number
}

export class SandboxQueue {
  readonly #parts: SandboxQueueParts
  #count = 0
  /**
   * Signals of people who wait: aborted when one call of theirs has the sandbox, for their other
   * ones.
   */
  readonly #ready = new Map<string, AbortController>()

  /** `queue` has one place: who holds it tries. */
  constructor(parts: SandboxQueueParts) {
    this.#parts = parts
  }

  /**
   * The user's sandbox. `waiting` is called with the place in line whenever that changes, and with
   * place 0 at the end. Rejects as `acquire` does, but where the host is full it waits until the
   * signal aborts.
   */
  async acquire(
    userId: string,
    signal: AbortSignal,
    waiting: (wait: QueueWait) => void = () => undefined,
  ): Promise<Sandbox> {
    const { acquire, connected, queue } = this.#parts
    if (queue.size === 0 || (await connected(userId)) !== undefined) {
      const sandbox = await unlessFull(acquire(userId, signal))
      if (sandbox !== undefined) return sandbox
    }
    return this.#wait(userId, signal, waiting)
  }

  async #wait(userId: string, signal: AbortSignal, waiting: (wait: QueueWait) => void): Promise<Sandbox> {
    const { acquire, queue, limit, retryMs = RETRY_MS } = this.#parts
    const ready = this.#ready.get(userId) ?? new AbortController()
    this.#ready.set(userId, ready)
    const id = `${++this.#count}`
    const slot = queue.of({ id, person: userId }, AbortSignal.any([signal, ready.signal]))
    let shown = ''
    const show = (at: number, of: number): void => {
      const words = `${at} ${of}`
      if (words !== shown) waiting({ place: at, of, why: 'sandboxes', limit })
      shown = words
    }
    try {
      // The one that tries is before all of the line.
      for await (const wait of slot.enter('') ?? []) if (wait.place > 0) show(wait.place + 1, wait.of + 1)
      for (;;) {
        signal.throwIfAborted()
        const sandbox = await unlessFull(acquire(userId, signal))
        if (sandbox !== undefined) {
          this.#ready.delete(userId)
          ready.abort()
          return sandbox
        }
        show(1, queue.size)
        await sleep(retryMs, undefined, { signal })
      }
    } finally {
      queue.leave(id)
      show(0, 0)
    }
  }
}

/** Undefined: there is no room. */
async function unlessFull(acquired: Promise<Sandbox>): Promise<Sandbox | undefined> {
  try {
    return await acquired
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'host_full') return undefined
    throw error
  }
}
