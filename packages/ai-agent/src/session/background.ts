/**
 * Background commands that end while no prompt runs: by themselves, or with their sandbox (a
 * restart, a lease, out of memory). Their cards say so while the chat is open; a prompt
 * looks at them itself.
 */
import { messageOf, SandlotError } from '@sandlot/shared/errors'
import type { SessionCore } from './core.ts'
import { takeEndedJobs } from '../tools/background/ends.ts'
import { openJobsOf } from '../tools/background/jobs.ts'

/** Between two looks, in milliseconds. A look asks the sandbox that is there, and starts none. */
const LOOK_EVERY_MS = 5_000

export class BackgroundWatch {
  readonly #core: SessionCore
  #timer: NodeJS.Timeout | undefined
  #looking = false

  constructor(core: SessionCore) {
    this.#core = core
  }

  /** Look now and from time to time, as long as there are readers and commands. Idempotent. */
  start(): void {
    if (this.#timer !== undefined || !this.#isWanted()) return
    this.#timer = setInterval(() => void this.#tick(), LOOK_EVERY_MS)
    this.#timer.unref()
    void this.#tick()
  }

  #isWanted(): boolean {
    const { parts, journal, released, deleted, log } = this.#core
    if (parts.lookAtJobs === undefined || released.aborted || deleted || journal.readers === 0) return false
    return openJobsOf(log).length > 0
  }

  async #tick(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    try {
      if (this.#isWanted()) await this.#look()
    } catch (error) {
      const gone =
        this.#core.released.aborted || (error instanceof SandlotError && error.code === 'not_found')
      const fields = { sessionId: this.#core.id, error: messageOf(error) }
      if (!gone) this.#core.parts.log.warn(fields, 'background commands could not be looked at')
    } finally {
      this.#looking = false
      if (!this.#isWanted()) {
        clearInterval(this.#timer)
        this.#timer = undefined
      }
    }
  }

  async #look(): Promise<void> {
    const core = this.#core
    const { lookAtJobs, now } = core.parts
    if (lookAtJobs === undefined || core.running !== undefined) return
    const ended = takeEndedJobs({
      log: () => core.log,
      look: (jobs) => lookAtJobs(core.userId, jobs),
      now,
    })
    for await (const group of ended) {
      const stored = await core.inTurn(async () => {
        if (core.running !== undefined) return false
        await core.store(group)
        return true
      })
      // The prompt that has begun meanwhile says it.
      if (!stored) return
    }
  }
}
