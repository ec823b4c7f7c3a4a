/**
 * Background commands of an open chat. Their end while no prompt runs, by themselves or with their
 * sandbox (a restart, a lease, out of memory), is reported: a prompt polls them itself. Ports on
 * which the sandbox listens are shown, and not stored.
 */
import { messageOf, SandlotError } from '@sandlot/shared/base/errors'
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { SessionCore } from './core.ts'
import { takeEndedJobs } from '../tools/background/ends.ts'
import { openJobsOf } from '../tools/background/jobs.ts'

/** Between two looks, in milliseconds. A look asks the sandbox that is there, and starts none. */
const POLL_MS = 3_000

export class BackgroundWatch {
  readonly #core: SessionCore
  #timer: NodeJS.Timeout | undefined
  #polling = false
  /** The ports shown to readers. */
  #ports = ''

  constructor(core: SessionCore) {
    this.#core = core
  }

  /** Look now and from time to time, as long as there are readers and commands. Idempotent. */
  start(): void {
    if (this.#timer !== undefined || !this.#isWanted()) return
    this.#timer = setInterval(() => void this.#tick(), POLL_MS)
    this.#timer.unref()
    void this.#tick()
  }

  /** There is a new reader, which has seen nothing of what is not stored. */
  shownTo(): void {
    this.#ports = ''
    this.start()
  }

  #isWanted(): boolean {
    const { journal, released, deleted, log } = this.#core
    if (released.aborted || deleted || journal.readers === 0) return false
    return openJobsOf(log).length > 0
  }

  async #tick(): Promise<void> {
    if (this.#polling) return
    this.#polling = true
    try {
      if (this.#isWanted()) await Promise.all([this.#checkJobs(), this.#checkPorts()])
    } catch (error) {
      const gone =
        this.#core.released.aborted || (error instanceof SandlotError && error.code === 'not_found')
      const fields = { sessionId: this.#core.id, error: messageOf(error) }
      if (!gone) this.#core.parts.log.warn(fields, 'background commands could not be checked')
    } finally {
      this.#polling = false
      if (!this.#isWanted()) {
        clearInterval(this.#timer)
        this.#timer = undefined
        this.#show([])
      }
    }
  }

  async #checkPorts(): Promise<void> {
    const { parts, userId } = this.#core
    this.#show(await parts.jobs.portsOf(userId))
  }

  #show(ports: readonly number[]): void {
    const { journal, parts, released } = this.#core
    const all = ports.join(' ')
    if (all === this.#ports || released.aborted) return
    this.#ports = all
    journal.show(makeSandlotEvent({ type: 'ports_open', ports: [...ports] }, { live: true }, parts.now()))
  }

  async #checkJobs(): Promise<void> {
    const core = this.#core
    const { jobs: jobParts, now } = core.parts
    if (core.running !== undefined) return
    const ended = takeEndedJobs({
      log: () => core.log,
      poll: (jobs) => jobParts.poll(core.userId, jobs),
      now,
    })
    for await (const group of ended) {
      const stored = await core.inTurn(async () => {
        if (core.running !== undefined) return false
        await core.store(group)
        return true
      })
      // The prompt that has begun since reports it.
      if (!stored) return
    }
  }
}
