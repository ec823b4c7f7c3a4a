/**
 * Runs the prompts of one session, one after another: drives the loop and stores what it yields.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import { type EventGroup, type SessionEvent, isOutcome, sandlotEventOf } from '@sandlot/shared/chat/events'
import { notOwner } from '@sandlot/storage/storage-error'
import { type PromptEnd, queuedMessages, unfinishedPrompt, unqueued } from '../history/read-log.ts'
import { startsJob } from '../tools/background/jobs.ts'
import type { Answers } from './answers.ts'
import { breakOff } from './break-off.ts'
import type { SessionCore } from './core.ts'
import { storableGroup } from './outcome-images.ts'
import { PromptWaiters } from './prompt-waiters.ts'
import { type BegunPrompt, messagesAfter, promptOf } from './prompt/next.ts'
import { cancelOrphanedCommands } from './prompt/orphaned-commands.ts'
import { PromptRun, type RunListeners } from './prompt/run.ts'
import { onEnd, onStart, promptEndIn } from './prompt/steps.ts'
import { Running } from './running.ts'
import { inStep } from './running-step.ts'

/** A prompt whose beginning is in the log. */
interface UnfinishedPrompt extends BegunPrompt {
  /** An earlier process began it, or it broke off. */
  resumed?: boolean
  /** See `LoopContext`. */
  resumeCounts?: boolean
  /** A person has stopped it in between. */
  stopped?: boolean
}

export class Runner {
  readonly #core: SessionCore
  readonly #answers: Answers
  readonly #waiters = new PromptWaiters()
  readonly #listeners: RunListeners

  /** `pollJobs`: see `RunListeners`. */
  constructor(core: SessionCore, answers: Answers, pollJobs: () => void) {
    this.#core = core
    this.#answers = answers
    this.#listeners = { pollJobs, notifyWaiters: () => this.notifyWaiters() }
  }

  /** See `PromptWaiters.wait`. */
  ended(promptId: string): Promise<PromptEnd> {
    return this.#waiters.wait(promptId, this.#core.state())
  }

  /** A prompt has ended, or a message that waited was withdrawn. */
  notifyWaiters(): void {
    this.#waiters.notify(this.#core.state())
  }

  /**
   * Go on with the prompt that was begun and has no end: after a restart, and after a store that
   * failed had broken a prompt off in the middle. Only inside `inTurn`.
   */
  async resumeUnfinished(resumeCounts = true): Promise<void> {
    if (!(await this.#core.saveEnd())) return
    const begun = this.#core.running === undefined ? unfinishedPrompt(this.#core.log) : undefined
    if (begun === undefined) return
    this.start({ ...begun, resumed: true, resumeCounts })
    await this.#answers.denyUnanswerable()
  }

  /** See `Session.goOn`. Only inside `inTurn`. */
  async goOn(): Promise<boolean> {
    await this.resumeUnfinished()
    if (this.#core.running !== undefined) return true
    const next = promptOf(queuedMessages(this.#core.log).slice(0, 1), this.#core)
    if (next === undefined) return false
    await this.#core.store(next.events)
    this.start(next)
    return true
  }

  /** Run it. */
  start({
    promptId,
    unattended,
    resumed = false,
    resumeCounts = true,
    stopped = false,
    ...onBehalf
  }: UnfinishedPrompt): void {
    const running = new Running(promptId, unattended, onBehalf)
    if (stopped) running.stop.abort('cancelled')
    else if (this.#core.parts.ending.aborted) running.stop.abort('interrupted')
    this.#core.running = running
    this.#core.publishSummary()
    const run = new PromptRun(this.#core, running, { resumed, resumeCounts }, this.#listeners)
    running.driven = inStep({ sessionId: this.#core.id, promptId }, () => this.#drive(run))
  }

  /** Consumes the loop, and breaks the prompt off where that fails. Never rejects. */
  async #drive(run: PromptRun): Promise<void> {
    const { core, running } = run
    try {
      await this.#consume(run)
    } catch (error) {
      if (core.released.aborted || core.releasedBy(error)) return
      const fields = { sessionId: core.id, promptId: running.promptId, error: messageOf(error) }
      core.parts.log.warn(fields, 'the prompt was interrupted by an error')
      const storeEnd = (end: SessionEvent): Promise<void> => this.#store(run, [end])
      const ends = { answers: this.#answers, waiters: this.#waiters, storeEnd }
      await breakOff({ core, running, cause: error, ...ends })
    } finally {
      core.parts.promptQueue.leave(running.promptId)
      if (core.lost) this.#lose()
    }
  }

  /** Stores each group before the loop continues. */
  async #consume(run: PromptRun): Promise<void> {
    const { released } = run.core
    for await (const group of await begin(run)) {
      // Released: what is not stored never happened. The next start, or the next owner, resumes.
      if (released.aborted) return
      await this.#take(run, group)
      if (released.aborted) return
    }
  }

  async #take(run: PromptRun, group: EventGroup): Promise<void> {
    const { core } = run
    if (run.resumed) await cancelOrphanedCommands(core, group)
    let taken = group
    if (promptEndIn(group) !== undefined)
      for (const { before } of onEnd) if (before !== undefined) taken = await before(run, taken)
    const { store } = core.parts
    const storable = await storableGroup(taken, (bytes) => store.outputs.missingRoom(core.userId, bytes))
    await core.inTurn(() => this.#store(run, storable))
    await core.journal.caughtUp()
  }

  /** The prompt continues elsewhere; waiters for its end here are released. */
  #lose(): void {
    this.#core.running = undefined
    this.#waiters.notify(this.#core.state(), notOwner(this.#core.id))
  }

  async #store(run: PromptRun, group: EventGroup): Promise<void> {
    const { core } = run
    const end = promptEndIn(group)
    if (end === undefined) return this.#storeStep(group)
    core.parts.promptQueue.leave(run.promptId)
    const next = promptOf(messagesAfter(core.log, end), core)
    if (next === undefined) {
      await core.store(group)
      core.running = undefined
    } else {
      // In the same transaction: a crash in between would leave a message waiting for nothing.
      await core.store([...group, ...next.events])
      this.start(next)
    }
    for (const { after } of onEnd) after?.(run, next === undefined, end)
  }

  /** A group without the prompt's end. */
  async #storeStep(group: EventGroup): Promise<void> {
    const core = this.#core
    if (isAlreadyWithdrawn(core.log, group)) return
    await core.store(group)
    if (group.some((event) => isOutcome(event) && startsJob(event))) this.#listeners.pollJobs()
    const asked = group.some((event) => sandlotEventOf(event)?.type === 'approval_asked')
    if (!asked) return
    await this.#answers.denyUnanswerable()
    // A person may take hours; others work in the meantime.
    if (core.running !== undefined && core.approvals.pending().length > 0)
      core.parts.promptQueue.leave(core.running.promptId)
  }
}

/** The prompt's groups, after the steps of its start; none where the session is released. */
async function begin(run: PromptRun): Promise<AsyncIterable<EventGroup> | EventGroup[]> {
  const { journal, released } = run.core
  await journal.caughtUp()
  for (const { start } of onStart) {
    const started = start(run)
    if (started !== undefined) await started
    if (released.aborted) return []
  }
  return run.groups()
}

/**
 * The loop takes a message that was withdrawn after it had looked at the log: who wrote first has
 * it.
 */
function isAlreadyWithdrawn(log: readonly SessionEvent[], group: EventGroup): boolean {
  const [first] = group
  const taken = first === undefined ? undefined : sandlotEventOf(first)
  return taken?.type === 'message_unqueued' && unqueued(log, taken.messageId) !== undefined
}
